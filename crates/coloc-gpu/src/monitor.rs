//! The monitor: every GPU, by the best source, again and again.
//!
//! It holds no clock and no thread of its own: whoever owns it calls [`Monitor::sample`] as often as it wants
//! samples, and is never blocked longer than the driver's deadline.

use crate::device::{DeviceProcess, Identity, ProcessUtilization, Vitals};
use crate::driver::{Driver, DriverError, Guarded};
use crate::inventory::{Found, Inventory, InventoryEvent, survey};
use crate::process::{Attribution, TaskRoots};
use crate::sample::dcgm::Feed;
use crate::sample::{Ladder, LadderConfig, Metric, ProcessSample, Reading, Sample, Source, Window};
use coloc_model::{Fraction, GpuId, Millis, Time, WindowScores};
use std::path::PathBuf;
use std::time::Duration;

/// Where samples come from.
#[derive(Debug)]
pub struct Sources {
    /// The driver.
    pub driver: Guarded,
    /// `dcgmi dmon`, if it is used.
    pub dmon: Option<Feed>,
    /// A dcgm-exporter, if it is used.
    pub exporter: Option<Feed>,
}

/// How the monitor works.
#[derive(Clone, PartialEq, Debug)]
pub struct MonitorConfig {
    /// How often samples are taken; windows are sized by it.
    pub period: Millis,
    /// What windows remember.
    pub window: Millis,
    /// How often it looks for GPUs that came or went.
    pub survey: Millis,
    /// A reading of DCGM that is older is not believed.
    pub fresh: Duration,
    /// Where the kernel module lists its GPUs: a change there means that NVML must be started anew.
    pub bus: PathBuf,
}

impl Default for MonitorConfig {
    /// CARMA's window: 30 samples, one a second.
    fn default() -> Self {
        MonitorConfig {
            period: Millis::from_secs(1),
            window: Millis::from_secs(30),
            survey: Millis::from_secs(10),
            fresh: Duration::from_secs(3),
            bus: PathBuf::from("/proc/driver/nvidia/gpus"),
        }
    }
}

/// What one look brought.
#[derive(Debug, Default)]
pub struct Look {
    /// One a GPU that answered.
    pub samples: Vec<Sample>,
    /// GPUs that came or went.
    pub events: Vec<InventoryEvent>,
    /// Why GPUs that should have answered did not.
    pub trouble: Vec<(Option<GpuId>, DriverError)>,
}

/// What is kept for every GPU that was ever seen.
#[derive(Debug)]
struct Watched {
    ladder: Ladder,
    window: Window,
}

/// Watches the GPUs of this machine.
#[derive(Debug)]
pub struct Monitor {
    sources: Sources,
    config: MonitorConfig,
    inventory: Inventory,
    watched: Vec<Watched>,
    attribution: Attribution,
    next_survey: Time,
    bus: Option<usize>,
}

/// What the driver's thread is sent, and sends back.
struct Target {
    gpu: GpuId,
    index: u32,
    ladder: Ladder,
    dmon: Option<Reading>,
    exporter: Option<Reading>,
}

struct Seen {
    vitals: Vitals,
    processes: Vec<DeviceProcess>,
    by_process: Vec<ProcessUtilization>,
    best: Option<(Source, Reading)>,
}

impl Monitor {
    /// A monitor that has not looked yet.
    pub fn new(sources: Sources, config: MonitorConfig, attribution: Attribution) -> Self {
        Monitor {
            sources,
            config,
            inventory: Inventory::default(),
            watched: Vec::new(),
            attribution,
            next_survey: Time::START,
            bus: None,
        }
    }

    /// The GPUs that were seen.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The driver, for other questions.
    pub fn driver(&self) -> &Guarded {
        &self.sources.driver
    }

    /// The tasks that processes may belong to.
    pub fn set_tasks(&mut self, tasks: Vec<TaskRoots>) {
        self.attribution.set_tasks(tasks);
    }

    /// Mean, median, p95 and EMA of a GPU's metric over the window.
    pub fn scores(&self, gpu: GpuId, now: Time, metric: Metric) -> Option<WindowScores> {
        self.watched.get(gpu.index())?.window.scores(now, metric)
    }

    /// Looks at every GPU once.
    pub fn sample(&mut self, now: Time) -> Look {
        let mut look = Look::default();
        if now >= self.next_survey {
            self.survey(now, &mut look);
        }
        let targets = self.targets();
        if targets.is_empty() {
            return look;
        }
        let answer = self.sources.driver.ask(move |driver| {
            Ok(targets.into_iter().map(|target| see(driver, now, target)).collect::<Vec<_>>())
        });
        let seen = match answer {
            Ok(seen) => seen,
            Err(error) => {
                if error.wants_reconnect() {
                    look.events.extend(self.inventory.observe(now, Err(error.clone())));
                }
                look.trouble.push((None, error));
                return look;
            }
        };
        let mut lost = false;
        for (target, outcome) in seen {
            let gpu = target.gpu;
            self.watched[gpu.index()].ladder = target.ladder;
            match outcome {
                Ok(seen) => look.samples.push(self.keep(now, gpu, seen)),
                Err(error) => {
                    lost |= error.is_device_loss() || error.wants_reconnect();
                    look.trouble.push((Some(gpu), error));
                }
            }
        }
        if lost {
            self.survey(now, &mut look);
        }
        look
    }

    fn survey(&mut self, now: Time, look: &mut Look) {
        self.next_survey = now + self.config.survey;
        let on_bus = std::fs::read_dir(&self.config.bus).map(Iterator::count).ok();
        if self.bus.is_some() && on_bus != self.bus {
            // NVML lists the devices that were there when it was started.
            if let Err(error) = self.sources.driver.reconnect() {
                look.trouble.push((None, error));
            }
        }
        self.bus = on_bus;
        let found: Result<Vec<Found>, DriverError> = self.sources.driver.ask(survey);
        if let Err(error) = &found {
            look.trouble.push((None, error.clone()));
        }
        look.events.extend(self.inventory.observe(now, found));
        let MonitorConfig { window, period, .. } = self.config;
        self.watched.resize_with(self.inventory.devices().len(), || Watched {
            ladder: Ladder::new(LadderConfig::default()),
            window: Window::new(window, period),
        });
    }

    fn targets(&self) -> Vec<Target> {
        let latest = |feed: &Option<Feed>, gpu: &Identity| {
            feed.as_ref().and_then(|feed| feed.latest(gpu, self.config.fresh))
        };
        let target = |(gpu, identity): (GpuId, &Identity)| Target {
            gpu,
            index: identity.index,
            ladder: self.watched[gpu.index()].ladder.clone(),
            dmon: latest(&self.sources.dmon, identity),
            exporter: latest(&self.sources.exporter, identity),
        };
        self.inventory.present().map(target).collect()
    }

    fn keep(&mut self, now: Time, gpu: GpuId, seen: Seen) -> Sample {
        let Seen { vitals, processes, by_process, best } = seen;
        let processes = processes
            .into_iter()
            .map(|process| ProcessSample {
                process,
                sm: by_process.iter().find(|known| known.pid == process.pid).map(|known| known.sm),
                attributed: self.attribution.of(process.pid),
            })
            .collect();
        let sample = Sample {
            gpu: self.inventory.devices()[gpu.index()].identity.uuid.clone(),
            at: now,
            source: best.map(|(source, _)| source),
            reading: best.map(|(_, reading)| reading).unwrap_or_default(),
            vitals,
            processes,
        };
        self.watched[gpu.index()].window.record(&sample);
        sample
    }
}

/// Looks at one GPU, on the driver's thread.
fn see(
    driver: &mut dyn Driver,
    now: Time,
    mut target: Target,
) -> (Target, Result<Seen, DriverError>) {
    let outcome = look(driver, now, &mut target);
    (target, outcome)
}

fn look(driver: &mut dyn Driver, now: Time, target: &mut Target) -> Result<Seen, DriverError> {
    let index = target.index;
    let vitals = driver.vitals(index)?;
    let processes = driver.processes(index)?;
    let mut by_process = Vec::new();
    let (dmon, exporter) = (target.dmon, target.exporter);
    let best = target.ladder.read(now, |source| match source {
        Source::DcgmDmon => Ok(dmon),
        Source::DcgmExporter => Ok(exporter),
        Source::Gpm => driver.gpm(index),
        Source::ProcessUtilization => {
            by_process = driver.process_utilization(index)?;
            Ok(sum(&by_process))
        }
        Source::Utilization => Ok(vitals.utilization.map(|gpu| Reading {
            gpu: Some(gpu),
            dram: vitals.memory_utilization,
            ..Reading::default()
        })),
    });
    Ok(Seen { vitals, processes, by_process, best })
}

/// Time shares of all processes together; `None` when nothing ran.
fn sum(by_process: &[ProcessUtilization]) -> Option<Reading> {
    let total = |of: fn(&ProcessUtilization) -> Fraction| {
        Fraction::saturating(by_process.iter().map(|process| of(process).get()).sum())
    };
    (!by_process.is_empty()).then(|| Reading {
        gpu: Some(total(|process| process.sm)),
        dram: Some(total(|process| process.memory)),
        ..Reading::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::Scripted;
    use crate::process::{ProcessTable, Users};

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
        let back = (3..200).any(|second| monitor.sample(at(second)).samples.len() == 1);
        assert!(back, "it comes back with the driver");
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
}
