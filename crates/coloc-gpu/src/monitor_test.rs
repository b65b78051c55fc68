//! The monitor against a scripted driver.

use super::*;
use crate::device::ProcessKind;
use crate::driver::scripted::Scripted;
use crate::process::{ProcessTable, Users};
use std::time::Instant;

fn monitor(scripted: &Scripted) -> Monitor {
    let driver = Guarded::new(scripted.connect(), Duration::from_millis(200));
    let sources = Sources { driver, dmon: None, exporter: None };
    let attribution = Attribution::new(ProcessTable::at("/nonexistent"), Users::default());
    let bus = PathBuf::from("/nonexistent");
    Monitor::new(sources, MonitorConfig { bus, ..MonitorConfig::default() }, attribution)
}

fn at(secs: u64) -> Time {
    Time::START + Millis::from_secs(secs)
}

fn fine(sm: f64) -> Result<Option<Reading>, DriverError> {
    Ok(Some(Reading { sm: Some(Fraction::new(sm)), ..Reading::default() }))
}

#[test]
fn every_sample_says_where_it_came_from() {
    let scripted = Scripted::with_gpus(2);
    scripted.script().gpus[1].gpm = fine(0.2);
    let mut monitor = monitor(&scripted);
    let look = monitor.sample(at(0));
    assert_eq!((look.samples.len(), look.events.len(), look.trouble.len()), (2, 2, 0));
    assert_eq!(look.samples[0].source, Some(Source::Utilization));
    assert_eq!(look.samples[0].signal().activity.sm, Fraction::new(0.75));
    assert_eq!(look.samples[1].source, Some(Source::Gpm));
    assert_eq!(look.samples[1].signal().activity.sm, Fraction::new(0.2));
}

#[test]
fn windows_fill_and_are_scored() {
    let scripted = Scripted::with_gpus(1);
    let mut monitor = monitor(&scripted);
    for second in 0..30 {
        scripted.script().gpus[0].gpm = fine(if second < 15 { 0.0 } else { 1.0 });
        // The ladder must not be waiting for a source that failed.
        monitor.sample(at(second));
    }
    let scores = monitor.scores(GpuId(0), at(29), |activity| activity.sm).expect("30 samples");
    assert_eq!((scores.mean, scores.median, scores.p95), (0.5, 0.5, 1.0));
    assert_eq!(monitor.scores(GpuId(7), at(29), |activity| activity.sm), None);
}

#[test]
fn a_lost_gpu_is_an_event_and_the_others_go_on() {
    let scripted = Scripted::with_gpus(3);
    let mut monitor = monitor(&scripted);
    monitor.sample(at(0));
    scripted.script().gpus[1].failure = Some(DriverError::Lost);
    let look = monitor.sample(at(1));
    assert_eq!(look.samples.len(), 2);
    assert!(matches!(look.events[..], [InventoryEvent::Lost { gpu: GpuId(1), .. }]));
    assert_eq!(monitor.sample(at(2)).samples.len(), 2);
    scripted.script().gpus[1].failure = None;
    assert_eq!(monitor.sample(at(11)).samples.len(), 3, "the next survey finds it");
}

#[test]
fn a_task_holds_the_sum_of_its_processes_on_its_fullest_gpu() {
    let scripted = Scripted::with_gpus(2);
    let process = |pid: u32, mib: u64| DeviceProcess {
        pid,
        kind: ProcessKind::Compute,
        memory: Some(Bytes::from_mib(mib)),
        gpu_instance: None,
        compute_instance: None,
    };
    let ours = std::process::id();
    scripted.script().gpus[0].processes = vec![process(ours, 700), process(u32::MAX, 90)];
    scripted.script().gpus[1].processes = vec![process(ours, 500)];
    let mut monitor = monitor(&scripted);
    let table = ProcessTable::default();
    monitor.attribution = Attribution::new(table.clone(), Users::default());
    monitor.set_tasks(vec![TaskRoots {
        task: TaskId(4),
        cgroup: None,
        leader: ours,
        leader_started: table.started(ours).expect("we are running"),
    }]);
    let look = monitor.sample(at(0));
    assert_eq!(look.tasks(), BTreeMap::from([(TaskId(4), Bytes::from_mib(700))]));
    assert_eq!(look.samples[0].foreign_memory(), Some(Bytes::from_mib(90)));
    assert_eq!(look.samples[1].foreign_memory(), None);
}

#[test]
fn a_hung_driver_costs_one_deadline_and_loses_nothing() {
    let scripted = Scripted::with_gpus(1);
    let mut monitor = monitor(&scripted);
    monitor.sample(at(0));
    let release = scripted.hang();
    let look = monitor.sample(at(1));
    assert!(matches!(look.trouble[..], [(None, DriverError::TimedOut { .. })]));
    let look = monitor.sample(at(2));
    assert!(matches!(look.trouble[..], [(None, DriverError::Hung)]));
    assert_eq!(look.events, []);
    drop(release);
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut second = 3;
    while monitor.sample(at(second)).samples.len() != 1 {
        assert!(Instant::now() < deadline, "it comes back with the driver");
        std::thread::yield_now();
        second += 1;
    }
}

#[test]
fn a_reloaded_driver_brings_its_gpus_back() {
    let scripted = Scripted::with_gpus(2);
    let mut monitor = monitor(&scripted);
    monitor.sample(at(0));
    scripted.unload();
    let look = monitor.sample(at(1));
    assert_eq!((look.samples.len(), look.events.len()), (0, 2));
    scripted.load();
    let look = monitor.sample(at(20));
    assert_eq!((look.samples.len(), look.events.len()), (2, 2));
}
