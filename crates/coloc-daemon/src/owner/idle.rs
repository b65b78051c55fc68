//! Tasks that hold GPUs and do nothing with them.

use super::{Ending, Owner};
use crate::hardware::Sighting;
use crate::record::Phase;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, GpuSignal, Millis, Placement, TaskId, Time};
use rustc_hash::FxHashMap;

/// A GPU that was busy for less of a period than this did nothing.
const NOTHING: f64 = 0.01;

/// Since when the GPUs of tasks have done nothing.
#[derive(Default)]
pub(super) struct IdleSince {
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

impl Owner {
    /// Stops tasks whose GPUs were all idle for as long as they said. A neighbour's work counts as theirs: what is shared
    /// is not wasted.
    pub(super) fn stop_the_idle(&mut self, now: Time, seen: &Sighting, wishes: &mut Vec<Effect>) {
        let idle = |gpu: GpuId| {
            let signal = seen.gpus.iter().find(|(seen, _)| *seen == gpu);
            signal.is_some_and(|(_, signal)| is_idle(signal))
        };
        let mut stopped = Vec::new();
        for (&task, live) in &self.tasks {
            let Some(limit) = live.spec.idle_timeout else { continue };
            let runs = live.record.phase == Phase::Running && live.ending.is_none();
            let mut gpus = live.record.placement.iter().flat_map(Placement::gpus);
            let span = self.idle.look(now, task, runs && gpus.all(idle));
            if span >= limit && runs {
                stopped.push((task, span));
            }
        }
        let tasks = &self.tasks;
        self.idle.since.retain(|task, _| tasks.contains_key(task));
        for (task, span) in stopped {
            let Some(live) = self.tasks.get_mut(&task) else { continue };
            live.ending = Some(Ending::Over(Phase::TimedOut));
            let what = format!("stopped: its GPUs were idle for {span}");
            live.record.reason = Some(what.clone());
            self.changed(task, Some(what));
            self.scheduler.note(now, Event::CancelRequested(task), wishes);
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
