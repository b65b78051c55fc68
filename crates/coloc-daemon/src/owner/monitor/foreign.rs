//! Processes on GPUs that are not tasks: named in the log, and what they do of a GPU's work counted, as the administrator wants.

use crate::administration::ForeignPolicy;
use crate::hardware::Sighting;
use crate::owner::Owner;
use coloc_core::{Effect, Event};
use coloc_gpu::process::Owner as ProcessOwner;
use coloc_gpu::sample::{ProcessSample, Sample};
use coloc_model::{Fraction, GpuId, Time};
use rustc_hash::{FxHashMap, FxHashSet};

/// A smaller change of what they do is not told to the scheduler.
const NOTICEABLE: f64 = 0.05;

/// What was told of processes that are not tasks.
#[derive(Default, Debug)]
pub(in crate::owner) struct ForeignSeen {
    /// Processes that the log has named, by GPU.
    named: FxHashSet<(GpuId, u32)>,
    /// What the scheduler was told that they do.
    busy: FxHashMap<GpuId, f64>,
}

impl ForeignSeen {
    /// A new scheduler has been told of nothing.
    pub(in crate::owner) fn tell_again(&mut self) {
        self.busy.clear();
    }
}

fn foreign(sample: &Sample) -> impl Iterator<Item = &ProcessSample> {
    sample.processes.iter().filter(|process| process.attributed.owner == ProcessOwner::Foreign)
}

/// SM activity that is theirs: what the driver says of each, or all of the GPU's where no task is on it. Otherwise it cannot be
/// told apart, and counts as the tasks'.
fn busy(sample: &Sample) -> f64 {
    if foreign(sample).next().is_none() {
        return 0.0;
    }
    let told: Option<f64> = foreign(sample).map(|process| process.sm.map(Fraction::get)).sum();
    let all_foreign = foreign(sample).count() == sample.processes.len();
    let of_gpu = all_foreign.then(|| sample.signal().activity.sm.get());
    told.or(of_gpu).unwrap_or(0.0).min(1.0)
}

/// `process 4711 of bob (python)`.
fn named(process: &ProcessSample) -> String {
    let user = process.attributed.user.as_deref().unwrap_or("an unknown user");
    let command = process.attributed.command.as_deref();
    let command = command.map(|command| format!(" ({command})")).unwrap_or_default();
    let held = process.process.memory.map(|held| format!(", which holds {held},"));
    format!("process {} of {user}{command}{}", process.process.pid, held.unwrap_or_default())
}

impl Owner {
    /// The monitor looked at the GPUs.
    pub(in crate::owner) fn mind_foreign(
        &mut self,
        now: Time,
        seen: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        let policy = self.settings.administration.foreign;
        let mut there = FxHashSet::default();
        for sample in &seen.samples {
            let gpu = sample.id;
            for process in foreign(sample).filter(|_| policy != ForeignPolicy::Tolerate) {
                let key = (gpu, process.process.pid);
                there.insert(key);
                if !self.foreign_seen.named.contains(&key) {
                    tracing::warn!("GPU {gpu}: {} is not a task", named(process));
                }
            }
            let busy = if policy == ForeignPolicy::Count { busy(sample) } else { 0.0 };
            let told = self.foreign_seen.busy.get(&gpu).copied().unwrap_or(0.0);
            let ended = busy == 0.0 && told != 0.0;
            if (busy - told).abs() >= NOTICEABLE || ended {
                self.foreign_seen.busy.insert(gpu, busy);
                self.scheduler.note(now, Event::ForeignBusy { gpu, busy }, effects);
            }
        }
        self.foreign_seen.named = there;
    }

    /// A line for each GPU with processes that are not tasks, where the administrator wants to be told of them.
    pub(in crate::owner) fn foreign_notices(&self) -> Vec<String> {
        if self.settings.administration.foreign == ForeignPolicy::Tolerate {
            return Vec::new();
        }
        let notice = |sample: &Sample| {
            let all: Vec<String> = foreign(sample).map(named).collect();
            let verb = if all.len() == 1 { "is not a task" } else { "are not tasks" };
            (!all.is_empty()).then(|| format!("GPU {}: {} {verb}", sample.id, all.join(" ")))
        };
        self.last_seen.samples.iter().filter_map(notice).collect()
    }
}
