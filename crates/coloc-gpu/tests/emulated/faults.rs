//! What goes wrong with drivers, and what must not go wrong with us.

use crate::monitor::monitor;
use crate::stage::on_fleet;
use coloc_emu::fleet::Fault;
use coloc_gpu::driver::{DriverError, Xids};
use coloc_gpu::health::{Fault as Found, Xid};
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

/// Waits until a condition holds.
fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn critical_errors_are_heard_of_each_gpu_also_of_one_that_is_gone() {
    const TEST: &str = "faults::critical_errors_are_heard_of_each_gpu_also_of_one_that_is_gone";
    on_fleet(TEST, "2xA100-40GB", |stage| {
        let uuids: Vec<_> = monitor(&stage, Duration::from_secs(5))
            .sample(Time(1))
            .samples
            .into_iter()
            .map(|sample| sample.gpu)
            .collect();
        let (rung, rings) = std::sync::mpsc::channel();
        let xids = Xids::listen(move || {
            let _ = rung.send(());
        });
        let mut heard = Vec::new();
        // No driver tells of errors from before a program listens: so until the first is heard.
        wait_for("the first", || {
            stage.inject(Fault::Xid { gpu: 1, code: 31 });
            heard = xids.take();
            !heard.is_empty()
        });
        assert!(heard.iter().all(|event| event.gpu == uuids[1] && event.xid == Xid(31)));
        assert!(rings.recv_timeout(Duration::from_secs(30)).is_ok(), "the listener is rung for");
        assert_eq!(xids.trouble(), None);
        let next = |code| {
            let mut found = Vec::new();
            wait_for("an error", || {
                found.extend(xids.take());
                found.iter().any(|event| event.xid == Xid(code))
            });
            found.into_iter().find(|event| event.xid == Xid(code)).expect("it was found").gpu
        };
        stage.inject(Fault::Xid { gpu: 0, code: 48 });
        assert_eq!(next(48), uuids[0]);
        stage.inject(Fault::Lost { gpu: 1 });
        assert_eq!(next(79), uuids[1], "it does not tell its name any more");
        stage.inject(Fault::Restored { gpu: 1 });
        stage.inject(Fault::Xid { gpu: 1, code: 95 });
        assert_eq!(next(95), uuids[1]);
    });
}

#[test]
fn the_condition_of_memory_is_seen_on_old_and_new_boards() {
    const TEST: &str = "faults::the_condition_of_memory_is_seen_on_old_and_new_boards";
    on_fleet(TEST, "1xA100-40GB,1xV100-16GB", |stage| {
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        let mut faults = |at| -> Vec<Vec<Found>> {
            let samples = monitor.sample(Time(at)).samples;
            samples.iter().map(|sample| sample.vitals.condition.faults().collect()).collect()
        };
        assert_eq!(faults(1), [vec![], vec![]]);
        for gpu in [0, 1] {
            stage.inject(Fault::Ecc { gpu, corrected: 7, uncorrected: 2 });
            stage.inject(Fault::Remap { gpu, failed: false });
        }
        let both = vec![Found::UncorrectedEcc { errors: 2 }, Found::RemapPending];
        assert_eq!(faults(5000), [both.clone(), both]);
        stage.inject(Fault::Remap { gpu: 0, failed: true });
        stage.inject(Fault::Restored { gpu: 0 });
        stage.inject(Fault::Restored { gpu: 1 });
        assert_eq!(faults(9000), [vec![Found::RemapFailed], vec![]], "a reset mends the rest");
    });
}
