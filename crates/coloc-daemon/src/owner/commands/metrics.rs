//! How everything stands, in numbers, for the page of metrics. The owner copies; another thread writes the page.

use crate::metrics::counters::Counters;
use crate::owner::Owner;
use crate::record::Uid;
use coloc_core::PassTotals;
use coloc_gpu::sample::Sample;
use coloc_model::{GpuId, TaskId, TaskState};
use rustc_hash::FxHashMap;
use std::time::Duration;

/// Tasks on GPUs that have series of their own; those that are promised most memory go first.
pub(crate) const MOST_TASKS: usize = 256;

/// How everything stands.
#[derive(Debug)]
pub struct Metrics {
    pub(crate) counters: Counters,
    pub(crate) passes: PassTotals,
    /// Tasks that have not ended, by user and state.
    pub(crate) tasks: FxHashMap<(Uid, TaskState), u64>,
    /// Tasks that are held, by user.
    pub(crate) held: FxHashMap<Uid, u64>,
    pub(crate) gpus: Vec<GpuNumbers>,
    pub(crate) on_gpus: Vec<TaskNumbers>,
    /// Tasks on GPUs that are not among them.
    pub(crate) left_out: usize,
    pub(crate) draining: bool,
    pub(crate) disk_full: bool,
    /// Since the monitor last told anything.
    pub(crate) monitor_silent: Duration,
    pub(crate) time_scale: f64,
}

/// A GPU in numbers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GpuNumbers {
    pub(crate) index: u32,
    pub(crate) uuid: String,
    pub(crate) model: String,
    pub(crate) capacity: u64,
    pub(crate) promised: u64,
    pub(crate) foreign: u64,
    pub(crate) residents: usize,
    pub(crate) sm_demand: f64,
    pub(crate) lost: bool,
    pub(crate) drained: bool,
    /// What the monitor saw last; `None` if it saw nothing.
    pub(crate) sample: Option<Sample>,
}

/// A task on a GPU in numbers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct TaskNumbers {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) user: Uid,
    pub(crate) gpu: u32,
    pub(crate) promised: u64,
    /// What it holds there; `None` if none of its processes was seen there.
    pub(crate) used: Option<u64>,
    pub(crate) started_s: Option<f64>,
    /// Energy of all its GPUs that is laid to it, over all attempts.
    pub(crate) energy_j: Option<f64>,
}

impl Owner {
    pub(in crate::owner) fn metrics(&self) -> Metrics {
        let (mut tasks, mut held) = (FxHashMap::default(), FxHashMap::default());
        for live in self.tasks.values() {
            *tasks.entry((live.record.owner, live.record.phase)).or_default() += 1;
            if live.record.held {
                *held.entry(live.record.owner).or_default() += 1;
            }
        }
        let mut on_gpus = self.task_numbers();
        on_gpus.sort_by_key(|task| (std::cmp::Reverse(task.promised), task.id, task.gpu));
        let left_out = on_gpus.len().saturating_sub(MOST_TASKS);
        on_gpus.truncate(MOST_TASKS);
        let silent = self.clock.instant().saturating_duration_since(self.heard_at);
        Metrics {
            counters: self.counters.clone(),
            passes: self.scheduler.pass_totals().clone(),
            tasks,
            held,
            gpus: self.gpu_numbers(),
            on_gpus,
            left_out,
            draining: self.draining,
            disk_full: self.disk_full,
            monitor_silent: silent,
            time_scale: self.clock.scale(),
        }
    }

    fn sample_of(&self, gpu: GpuId) -> Option<&Sample> {
        let uuid = self.gpu_names.get(gpu.index())?;
        self.last_seen.samples.iter().find(|sample| sample.gpu.as_str() == uuid)
    }

    fn gpu_numbers(&self) -> Vec<GpuNumbers> {
        let gpus = self.scheduler.gpus().iter();
        let numbers = gpus.map(|(gpu, state)| GpuNumbers {
            index: gpu.0,
            uuid: self.gpu_names.get(gpu.index()).cloned().unwrap_or_default(),
            model: state.model.to_string(),
            capacity: state.capacity.0,
            promised: state.booked().0,
            foreign: self.foreign_on(gpu),
            residents: state.residents().len(),
            sm_demand: state.residents().iter().map(|booking| booking.load).sum(),
            lost: self.away.contains_key(&gpu),
            drained: self.drain_reason(gpu).is_some(),
            sample: self.sample_of(gpu).filter(|_| !self.away.contains_key(&gpu)).cloned(),
        });
        numbers.collect()
    }

    fn foreign_on(&self, gpu: GpuId) -> u64 {
        let seen = self.last_seen.foreign.iter().find(|(known, _)| *known == gpu);
        seen.map_or(0, |(_, bytes)| bytes.0)
    }

    fn task_numbers(&self) -> Vec<TaskNumbers> {
        let mut all = Vec::new();
        for (gpu, state) in self.scheduler.gpus().iter() {
            for booking in state.residents() {
                let TaskId(id) = booking.task;
                let Some(live) = self.tasks.get(&booking.task) else { continue };
                let used = self.sample_of(gpu).and_then(|sample| sample.memory_of(booking.task));
                all.push(TaskNumbers {
                    id,
                    name: live.spec.name.clone(),
                    user: live.record.owner,
                    gpu: gpu.0,
                    promised: booking.bytes.0,
                    used: used.map(|bytes| bytes.0),
                    started_s: live.record.started.map(|started| started.secs()),
                    energy_j: live.record.accounting.energy_j(),
                });
            }
        }
        all
    }
}
