//! Watching an emulated fleet.

use crate::stage::{Stage, on_fleet};
use coloc_emu::Place;
use coloc_gpu::driver::{Driver, Guarded};
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::process::Owner;
use coloc_gpu::sample::Source;
use coloc_model::{Bytes, Millis, Time};
use coloc_physics::Profile;
use std::time::{Duration, Instant};

pub(crate) fn monitor(stage: &Stage, deadline: Duration) -> Monitor {
    let sources = Sources { driver: Guarded::nvml(deadline), dmon: None, exporter: None };
    Monitor::new(sources, MonitorConfig::default(), stage.attribution())
}

#[test]
fn a_gpu_can_be_fully_utilized_and_nearly_idle() {
    on_fleet("monitor::a_gpu_can_be_fully_utilized_and_nearly_idle", "1xH100-80GB", |stage| {
        // A mix of small kernels: one after the other without a pause, each on a few SMs.
        let small_kernels = Profile::new(1.0, 0.06, 0.02, 0.03, Bytes::from_mib(1500));
        stage.occupy(Place::whole(0), Bytes::from_mib(1000), &small_kernels);
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut now = Time::START;
        // Counters that average over time need a moment.
        let sample = loop {
            now = now + Millis(1000);
            let sample = monitor.sample(now).samples.remove(0);
            let utilized = sample.vitals.utilization.map_or(0.0, |share| share.get());
            if sample.source == Some(Source::Gpm) && utilized > 0.99 {
                break sample;
            }
            assert!(Instant::now() < deadline, "{sample:?}");
            std::thread::sleep(Duration::from_millis(150));
        };
        let sm = sample.reading.sm.expect("GPM sees SMs").get();
        assert!(sm < 0.10, "{sample:?}");
        println!("utilization {:?}, SM activity {sm:.3}", sample.vitals.utilization);
    });
}

#[test]
fn processes_are_seen_with_their_user_and_memory() {
    on_fleet("monitor::processes_are_seen_with_their_user_and_memory", "2xA100-40GB", |stage| {
        let profile = Profile::new(0.5, 0.3, 0.2, 0.2, Bytes::from_mib(4000));
        stage.occupy(Place::whole(1), Bytes::from_mib(3000), &profile);
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        let look = monitor.sample(Time(1));
        assert!(look.samples[0].processes.is_empty());
        let process = &look.samples[1].processes[0];
        assert_eq!(process.process.pid, std::process::id());
        assert!(process.process.memory >= Some(Bytes::from_mib(3000)));
        assert_eq!(process.attributed.owner, Owner::Foreign);
        assert!(process.attributed.user.is_some());
        assert_eq!(look.samples[1].vitals.memory_used, process.process.memory.expect("told"));
    });
}

#[test]
fn the_inventory_becomes_the_fleet_that_was_asked_for() {
    let spec = "1xA100-40GB,1xV100-16GB,1xT4-16GB,1xRTX4090-24GB,1xK80-12GB,1xH200-141GB";
    on_fleet("monitor::the_inventory_becomes_the_fleet_that_was_asked_for", spec, |stage| {
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        monitor.sample(Time(1));
        let fleet = monitor.inventory().fleet().expect("six GPUs");
        let named = fleet.to_string().replace('+', ",");
        assert_eq!(
            named,
            "1xA100-40GB,1xV100-16GB,1xT4-16GB,1xRTX4090-24GB,1xK80-12GB,1xH200-141GB"
        );
        for device in monitor.inventory().devices() {
            assert!(device.identity.emulated);
            assert_eq!(device.identity.sms, Some(device.identity.model().sms()), "{device:?}");
        }
        assert_eq!(stage.driver().versions().expect("it answers").cuda.0, 12);
    });
}
