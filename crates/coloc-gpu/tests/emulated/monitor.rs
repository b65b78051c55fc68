//! Watching an emulated fleet.

use crate::stage::{Stage, on_fleet};
use coloc_emu::Place;
use coloc_emu::fleet::MigDevice as MigIds;
use coloc_gpu::driver::{Driver, Guarded};
use coloc_gpu::mig::{Want, apply, enable};
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::process::Owner;
use coloc_gpu::sample::Source;
use coloc_model::{Bytes, Millis, TaskId, Time};
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
fn instances_are_seen_one_by_one() {
    on_fleet("monitor::instances_are_seen_one_by_one", "1xH100-80GB", |stage| {
        let mut driver = stage.driver();
        enable(&mut driver, 0).expect("it is idle");
        let wants = [Want::named(TaskId(0), "3g.40gb"), Want::named(TaskId(1), "1g.10gb")];
        let given = apply(&mut driver, 0, &wants, &[]).expect("they fit").given;
        let mig = MigIds { gi: given[0].gpu_instance.0, ci: given[0].compute_instance.0 };
        // A fifth of the board's 132 SMs, which is more than half of the instance's 48.
        let profile = Profile::new(1.0, 0.2, 0.1, 0.05, Bytes::from_mib(4000));
        stage.occupy(Place { gpu: 0, mig: Some(mig) }, Bytes::from_mib(3000), &profile);
        let mut monitor = monitor(&stage, Duration::from_secs(5));
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut now = Time::START;
        let sample = loop {
            now = now + Millis(1000);
            let sample = monitor.sample(now).samples.remove(0);
            let seen = sample.instances.iter().all(|seen| seen.source == Some(Source::Gpm));
            if seen && sample.instances.len() == 2 && sample.reading.sm.is_some() {
                break sample;
            }
            assert!(Instant::now() < deadline, "{sample:?}");
            std::thread::sleep(Duration::from_millis(150));
        };
        let of = |name: &str| {
            let seen = sample.instances.iter().find(|seen| seen.profile == name).expect(name);
            seen.reading.sm.expect("SM activity").get()
        };
        assert!((of("3g.40gb") - 0.2 * 132.0 / 48.0).abs() < 0.01, "{sample:?}");
        assert_eq!(of("1g.10gb"), 0.0);
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
