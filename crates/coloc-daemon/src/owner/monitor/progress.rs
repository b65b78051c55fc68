//! Signs of training in the logs of tasks that share a GPU: where a monitor cannot tell whose kernels run, a log that gets
//! on is the only evidence that a task has begun to train.

use crate::hardware::Sighting;
use crate::owner::{Live, Owner};
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Placement, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// Logs are looked at this often.
const PERIOD: Duration = Duration::from_secs(5);
/// Below this nothing trains on a GPU.
const IDLE: f64 = 0.01;

/// What logs said when they were last looked at.
#[derive(Default)]
pub(in crate::owner) struct Signs {
    looked: Option<Instant>,
    /// By task, with the attempt.
    pub(in crate::owner) last: FxHashMap<TaskId, (u32, u64)>,
}

impl Owner {
    /// Has logs looked at, where that can tell something: of tasks that have not settled and share a busy GPU on which
    /// no monitor tells their activity apart.
    pub(in crate::owner) fn look_for_progress(&mut self, seen: &Sighting) {
        let now = self.clock.instant();
        let is_due = |looked| now.saturating_duration_since(looked) >= PERIOD;
        let due = self.signs.looked.is_none_or(is_due);
        if self.scheduler.policy().contract.is_none() || !due {
            return;
        }
        self.signs.looked = Some(now);
        let on_gpus = &self.on_gpus;
        self.signs.last.retain(|task, _| on_gpus.contains(task));
        let unsure = self.at_work().filter(|live| self.needs_a_sign(live, seen));
        let unsure: Vec<TaskId> = unsure.map(|live| live.record.id).collect();
        for live in unsure.iter().filter_map(|task| self.tasks.get(task)) {
            self.executor.look_for_progress(&live.record, &live.spec);
        }
    }

    fn needs_a_sign(&self, live: &Live, seen: &Sighting) -> bool {
        let (task, placement) = (live.record.id, &live.record.placement);
        let told = seen.tasks.iter().any(|t| t.task == task && t.activity.is_some());
        let is_busy = |gpu: GpuId| {
            let signal = seen.gpus.iter().find(|(seen, _)| *seen == gpu);
            signal.is_some_and(|(_, signal)| signal.activity.sm.get() >= IDLE)
        };
        let unsettled = self.scheduler.promised(task).is_some_and(|promised| !promised.settled);
        live.record.phase == TaskState::Running
            && !told
            && unsettled
            && placement.iter().flat_map(Placement::gpus).all(is_busy)
    }

    /// A log was looked at. That it says something else than last time is progress.
    pub(in crate::owner) fn sign_seen(
        &mut self,
        now: Time,
        task: TaskId,
        attempt: u32,
        sign: u64,
        effects: &mut Vec<Effect>,
    ) {
        let runs =
            |live: &Live| live.record.attempt == attempt && live.record.phase == TaskState::Running;
        if !self.tasks.get(&task).is_some_and(runs) {
            return;
        }
        let before = self.signs.last.insert(task, (attempt, sign));
        if before.is_some_and(|(known, last)| known == attempt && last != sign) {
            self.scheduler.note(now, Event::Progressed(task), effects);
        }
    }
}
