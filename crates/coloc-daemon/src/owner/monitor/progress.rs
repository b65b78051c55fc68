//! What the logs of running tasks say: how far each is, and of tasks that share a GPU whether they train. Where a monitor
//! cannot tell whose kernels run, a log that gets on is the only evidence that a task has begun to.

use super::tally::Tally;
use crate::executor::Counted;
use crate::hardware::Sighting;
use crate::owner::{Live, Owner};
use crate::record::Record;
use coloc_api::view::Progress;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Placement, TaskId, TaskState, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::time::{Duration, Instant};

/// Logs are looked at this often.
const PERIOD: Duration = Duration::from_secs(5);
/// Logs that one look is for.
const LOOKED_AT: usize = 128;
/// Below this nothing trains on a GPU.
const IDLE: f64 = 0.01;

/// What logs said when they were last looked at.
#[derive(Default)]
pub(in crate::owner) struct Signs {
    looked: Option<Instant>,
    /// By task, with the attempt.
    pub(in crate::owner) last: FxHashMap<TaskId, (u32, u64)>,
    /// Tasks that a sign is evidence for.
    unsure: FxHashSet<TaskId>,
    /// How far each is.
    tallies: FxHashMap<TaskId, Tally>,
    /// The next look begins behind this task, where there are more than one look is for.
    behind: Option<TaskId>,
}

impl Owner {
    /// Has logs looked at. They tell how far tasks are, and are evidence for tasks that have not settled and share a busy
    /// GPU on which no monitor tells their activity apart.
    pub(in crate::owner) fn look_for_progress(&mut self, seen: &Sighting) {
        let now = self.clock.instant();
        let is_due = |looked| now.saturating_duration_since(looked) >= PERIOD;
        if !self.signs.looked.is_none_or(is_due) {
            return;
        }
        self.signs.looked = Some(now);
        let on_gpus = &self.on_gpus;
        self.signs.last.retain(|task, _| on_gpus.contains(task));
        self.signs.tallies.retain(|task, _| on_gpus.contains(task));
        let has_contract = self.scheduler.policy().contract.is_some();
        let running = self.at_work().filter(|live| live.record.phase == TaskState::Running);
        let (unsure, others): (Vec<&Live>, Vec<&Live>) =
            running.partition(|live| has_contract && self.needs_a_sign(live, seen));
        let unsure: Vec<TaskId> = unsure.iter().map(|live| live.record.id).collect();
        let mut others: Vec<TaskId> = others.iter().map(|live| live.record.id).collect();
        // Evidence first; of the others, those that were not looked at last time.
        let next =
            others.partition_point(|task| self.signs.behind.is_some_and(|last| *task <= last));
        others.rotate_left(next);
        others.truncate(LOOKED_AT.saturating_sub(unsure.len()));
        self.signs.behind = others.last().copied();
        for live in unsure.iter().chain(&others).filter_map(|task| self.tasks.get(task)) {
            self.executor.look_for_progress(&live.record, &live.spec);
        }
        self.signs.unsure = unsure.into_iter().collect();
    }

    /// How far a task is, if it runs and its log tells.
    pub(in crate::owner) fn progress(&self, record: &Record) -> Option<Progress> {
        let tally = self.signs.tallies.get(&record.id)?;
        let is_now = record.phase == TaskState::Running && record.attempt == tally.attempt;
        if is_now { tally.progress(self.clock.instant()) } else { None }
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
    pub(in crate::owner) fn log_seen(
        &mut self,
        now: Time,
        (task, attempt): (TaskId, u32),
        sign: Option<u64>,
        counted: Option<Counted>,
        effects: &mut Vec<Effect>,
    ) {
        let runs =
            |live: &Live| live.record.attempt == attempt && live.record.phase == TaskState::Running;
        if !self.tasks.get(&task).is_some_and(runs) {
            return;
        }
        if let Some(counted) = counted {
            let tally = self.signs.tallies.entry(task).or_insert_with(|| Tally::new(attempt));
            if tally.attempt != attempt {
                *tally = Tally::new(attempt);
            }
            if tally.hear(self.clock.instant(), counted) {
                self.note_news(task);
            }
        }
        let Some(sign) = sign.filter(|_| self.signs.unsure.contains(&task)) else { return };
        let before = self.signs.last.insert(task, (attempt, sign));
        if before.is_some_and(|(known, last)| known == attempt && last != sign) {
            self.scheduler.note(now, Event::Progressed(task), effects);
        }
    }
}
