//! The monitor: every GPU, by the best source, again and again.
//!
//! It holds no clock and no thread of its own: its owner calls [`Monitor::sample`] as often as it wants samples, and is
//! never blocked longer than the driver's deadline.

mod instances;

use crate::device::{DeviceProcess, Identity, ProcessUtilization, Vitals};
use crate::driver::{Driver, DriverError, Guarded};
use crate::inventory::{Found, Inventory, InventoryEvent, survey};
use crate::process::{Attribution, Owner, TaskRoots};
use crate::sample::dcgm::Feed;
use crate::sample::{
    InstanceSample, Ladder, LadderConfig, Metric, ProcessSample, Reading, Sample, Source, Window,
};
use coloc_model::{Bytes, Fraction, GpuId, Millis, TaskId, Time, WindowScores};
use instances::Instances;
use std::collections::BTreeMap;
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

impl Look {
    /// The tasks that were seen, and the most that each holds on any of its GPUs.
    pub fn tasks(&self) -> BTreeMap<TaskId, Bytes> {
        let mut seen = BTreeMap::new();
        for sample in &self.samples {
            for process in &sample.processes {
                if let Owner::Task { task, .. } = process.attributed.owner {
                    let held = sample.memory_of(task).unwrap_or(Bytes::ZERO);
                    let most: &mut Bytes = seen.entry(task).or_default();
                    *most = held.max(*most);
                }
            }
        }
        seen
    }
}

/// What is kept for every GPU that was ever seen.
#[derive(Debug)]
struct Watched {
    ladder: Ladder,
    window: Window,
    /// What was last read, and when all of it was.
    vitals: Option<(Vitals, Time)>,
    instances: Instances,
}

/// What changes slowly is read this often: temperature, clocks, MIG mode.
const SLOW: Millis = Millis::from_secs(1);

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
    vitals: Option<(Vitals, Time)>,
    instances: Instances,
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
            self.watched[gpu.index()].vitals = target.vitals;
            self.watched[gpu.index()].instances = target.instances;
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
            vitals: None,
            instances: Instances::default(),
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
            vitals: self.watched[gpu.index()].vitals,
            instances: self.instances(gpu, identity),
            dmon: latest(&self.sources.dmon, identity),
            exporter: latest(&self.sources.exporter, identity),
        };
        self.inventory.present().map(target).collect()
    }

    /// What is known of a GPU's instances, with what an exporter says of them.
    fn instances(&self, gpu: GpuId, identity: &Identity) -> Instances {
        let mut instances = self.watched[gpu.index()].instances.clone();
        let exporter = self.sources.exporter.as_ref();
        let told = |instance: &InstanceSample| {
            let reading = exporter?.latest_instance(identity, instance.id, self.config.fresh)?;
            Some((instance.id, reading))
        };
        instances.exporter = instances.list.iter().filter_map(told).collect();
        instances
    }

    fn keep(&mut self, now: Time, gpu: GpuId, seen: Seen) -> Sample {
        let Seen { vitals, processes, by_process, best } = seen;
        let processes = processes
            .into_iter()
            .map(|process| ProcessSample {
                process,
                sm: by_process.iter().find(|known| known.pid == process.pid).map(|known| known.sm),
                attributed: self.attribution.of(process.pid, now),
            })
            .collect();
        let sample = Sample {
            gpu: self.inventory.devices()[gpu.index()].identity.uuid.clone(),
            id: gpu,
            at: now,
            source: best.map(|(source, _)| source),
            reading: best.map(|(_, reading)| reading).unwrap_or_default(),
            vitals,
            processes,
            instances: self.watched[gpu.index()].instances.list.clone(),
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
    let vitals = match target.vitals {
        Some((mut vitals, read)) if now.since(read) < SLOW => {
            driver.refresh(index, &mut vitals)?;
            target.vitals = Some((vitals, read));
            vitals
        }
        _ => {
            let vitals = driver.vitals(index)?;
            target.vitals = Some((vitals, now));
            vitals
        }
    };
    let processes = driver.processes(index)?;
    instances::look(driver, now, target, &vitals, &processes);
    let mut by_process = Vec::new();
    let (dmon, exporter) = (target.dmon, target.exporter);
    let best = target.ladder.read(now, |source| match source {
        Source::DcgmDmon => Ok(dmon),
        Source::DcgmExporter => Ok(exporter),
        Source::Gpm => driver.gpm(index),
        Source::ProcessUtilization => {
            by_process = driver.process_utilization(index)?;
            Ok(sum(&by_process, &vitals))
        }
        Source::Utilization => Ok(vitals.utilization.map(|gpu| Reading {
            gpu: Some(gpu),
            dram: vitals.memory_utilization,
            ..Reading::default()
        })),
    });
    let best = instances::whole(best, &target.instances.list);
    // Better sources do not tell which of several processes works.
    if processes.len() > 1 && by_process.is_empty() {
        by_process = driver.process_utilization(index).unwrap_or_default();
    }
    Ok(Seen { vitals, processes, by_process, best })
}

/// Time shares of all processes together, not below what the device says of itself; `None` when nothing ran.
fn sum(by_process: &[ProcessUtilization], vitals: &Vitals) -> Option<Reading> {
    let total = |of: fn(&ProcessUtilization) -> Fraction| {
        Fraction::saturating(by_process.iter().map(|process| of(process).get()).sum())
    };
    (!by_process.is_empty()).then(|| Reading {
        gpu: Some(total(|process| process.sm)).max(vitals.utilization),
        dram: Some(total(|process| process.memory)).max(vitals.memory_utilization),
        ..Reading::default()
    })
}

#[cfg(test)]
#[path = "monitor_test.rs"]
mod tests;
