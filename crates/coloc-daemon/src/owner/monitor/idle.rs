//! Tasks that hold GPUs and do nothing with them.

use crate::hardware::Sighting;
use crate::owner::Owner;
use crate::record::Intent;
use coloc_core::{Effect, Event};
use coloc_gpu::process;
use coloc_gpu::sample::{ProcessSample, Sample};
use coloc_model::{GpuId, GpuSignal, Millis, Placement, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;

/// A GPU that was busy for less of a period than this did nothing.
const NOTHING: f64 = 0.01;

/// Since when the GPUs of tasks have done nothing.
#[derive(Default)]
pub(in crate::owner) struct IdleSince {
    since: FxHashMap<TaskId, Time>,
}

impl IdleSince {
    /// Takes note of a look at a task's GPUs; says how long they have been idle.
    fn look(&mut self, now: Time, task: TaskId, idle: bool) -> Millis {
        if !idle {
            self.since.remove(&task);
            return Millis::ZERO;
        }
        now.since(*self.since.entry(task).or_insert(now))
    }
}

fn is_idle(signal: &GpuSignal) -> bool {
    signal.activity.gpu.get() < NOTHING && signal.activity.sm.get() < NOTHING
}

/// Whether a task is seen to do nothing on a GPU: the GPU is idle, all processes there belong to others, or the driver
/// tells whose kernels ran and none were its own. On a busy GPU whose driver does not tell, any task may be at work.
fn does_nothing(task: TaskId, sample: &Sample) -> bool {
    let works = |process: &ProcessSample| process.sm.is_some_and(|sm| sm.get() >= NOTHING);
    let told = sample.processes.iter().any(works);
    let mut own = sample.processes.iter().filter(|process| is_of(task, process)).peekable();
    let others_only = own.peek().is_none() && !sample.processes.is_empty();
    is_idle(&sample.signal()) || others_only || (told && !own.any(works))
}

fn is_of(task: TaskId, process: &ProcessSample) -> bool {
    matches!(process.attributed.owner, process::Owner::Task { task: known, .. } if known == task)
}

impl Owner {
    /// Stops tasks that did nothing on all their GPUs for as long as they said.
    pub(in crate::owner) fn stop_the_idle(
        &mut self,
        now: Time,
        seen: &Sighting,
        effects: &mut Vec<Effect>,
    ) {
        let mut stopped = Vec::new();
        for &task in &self.on_gpus {
            let Some(live) = self.tasks.get(&task) else { continue };
            let Some(limit) = live.spec.idle_timeout else { continue };
            let runs = live.record.phase == TaskState::Running && live.ending.is_none();
            let idle = |gpu: GpuId| {
                let sample = seen.samples.iter().find(|sample| sample.id == gpu);
                sample.is_some_and(|sample| does_nothing(task, sample))
            };
            let mut gpus = live.record.placement.iter().flat_map(Placement::gpus);
            let span = self.idle.look(now, task, runs && gpus.all(idle));
            if span >= limit && runs {
                stopped.push((task, span));
            }
        }
        let on_gpus = &self.on_gpus;
        self.idle.since.retain(|task, _| on_gpus.contains(task));
        for (task, span) in stopped {
            let Some(live) = self.tasks.get_mut(&task) else { continue };
            let what = format!("stopped: idle for {span} on all its GPUs");
            live.record.reason = Some(what.clone());
            self.intend(task, Intent::Idle, what);
            self.scheduler.note(now, Event::StopRequested(task), effects);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_starts_the_count_anew() {
        let (mut idle, task) = (IdleSince::default(), TaskId(1));
        let at = |seconds: u64| Time::START + Millis::from_secs(seconds);
        assert_eq!(idle.look(at(5), task, true), Millis::ZERO);
        assert_eq!(idle.look(at(9), task, true), Millis::from_secs(4));
        assert_eq!(idle.look(at(10), task, false), Millis::ZERO);
        assert_eq!(idle.look(at(12), task, true), Millis::ZERO);
    }
}
