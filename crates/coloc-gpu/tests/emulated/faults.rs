//! What goes wrong with drivers, and what must not go wrong with us.

use crate::monitor::monitor;
use crate::stage::on_fleet;
use coloc_emu::fleet::Fault;
use coloc_gpu::driver::DriverError;
use coloc_gpu::inventory::InventoryEvent;
use coloc_model::{GpuId, Time};
use std::time::{Duration, Instant};

#[test]
fn a_lost_gpu_is_a_state_and_not_a_crash() {
    on_fleet("faults::a_lost_gpu_is_a_state_and_not_a_crash", "3xA100-40GB", |stage| {
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        assert_eq!(monitor.sample(Time(1)).samples.len(), 3);
        stage.inject(Fault::Lost { gpu: 1 });
        let look = monitor.sample(Time(1000));
        assert_eq!(look.samples.len(), 2, "{look:?}");
        assert!(
            matches!(&look.events[..], [InventoryEvent::Lost { gpu: GpuId(1), .. }]),
            "{look:?}"
        );
        assert_eq!(monitor.sample(Time(2000)).samples.len(), 2);
        stage.inject(Fault::Restored { gpu: 1 });
        let look = monitor.sample(Time(20_000));
        assert!(
            matches!(&look.events[..], [InventoryEvent::Returned { gpu: GpuId(1), .. }]),
            "{look:?}"
        );
        assert_eq!(look.samples.len(), 3);
    });
}

#[test]
fn a_driver_that_hangs_blocks_nobody() {
    on_fleet("faults::a_driver_that_hangs_blocks_nobody", "1xA100-40GB", |stage| {
        let mut monitor = monitor(&stage, Duration::from_millis(500));
        assert_eq!(monitor.sample(Time(1)).samples.len(), 1);
        stage.inject(Fault::NvmlDelay { millis: 2000 });
        let began = Instant::now();
        let look = monitor.sample(Time(1000));
        assert!(matches!(look.trouble[..], [(None, DriverError::TimedOut { .. })]), "{look:?}");
        assert!(matches!(monitor.sample(Time(2000)).trouble[..], [(None, DriverError::Hung)]));
        assert!(began.elapsed() < Duration::from_millis(1900), "the owner goes on");
        stage.inject(Fault::NvmlDelay { millis: 0 });
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut at = 3000;
        while monitor.sample(Time(at)).samples.len() != 1 {
            assert!(Instant::now() < deadline, "the driver came back and was not noticed");
            std::thread::sleep(Duration::from_millis(50));
            at += 1000;
        }
    });
}

#[test]
fn calls_that_time_out_lose_a_sample_and_no_gpu() {
    on_fleet("faults::calls_that_time_out_lose_a_sample_and_no_gpu", "2xA100-40GB", |stage| {
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        monitor.sample(Time(1));
        stage.inject(Fault::NvmlTimeouts { calls: 1 });
        let look = monitor.sample(Time(1000));
        assert_eq!(look.events, [], "{look:?}");
        assert_eq!(monitor.sample(Time(2000)).samples.len(), 2);
    });
}
