//! Picking up where the last daemon left off.

use crate::executor::{End, Found};
use crate::journal::{Entry, JournalError};
use crate::owner::{Ending, Live, Owner};
use crate::record::{Intent, Record};
use coloc_api::spec::TaskSpec;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, TaskState, Time};
use std::sync::Arc;
use std::time::Duration;

/// An attempt of which the machine cannot tell how it is, is looked at again after this long.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

impl Owner {
    /// Waiting tasks wait again, running ones are adopted, and of tasks that ended meanwhile it is found out how.
    /// Nothing that was decided is decided again.
    pub(in crate::owner) fn restore(
        &mut self,
        saved: Vec<(Record, Arc<TaskSpec>)>,
    ) -> Result<(), JournalError> {
        let now = self.clock.now();
        self.keep_saved(saved);
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        let mut effects = Vec::new();
        for task in ids {
            let Some(live) = self.tasks.get(&task) else { continue };
            if !live.record.phase.is_on_gpus() {
                if live.record.cancelled {
                    self.over(task, TaskState::Cancelled);
                } else {
                    self.eligibility.look_at(task);
                    self.mind_long_wait(task);
                }
                continue;
            }
            let (gone, attempt) = (live.record.placement.is_none(), live.record.attempt);
            match self.executor.find(&live.record, &live.spec) {
                Found::Running if gone => {
                    self.its_gpu_is_gone(task);
                    self.stop(task);
                }
                Found::Ended(end) if gone => {
                    self.its_gpu_is_gone(task);
                    self.attempt_ended(now, task, attempt, end, &mut effects);
                }
                Found::Running => {
                    self.adopt(now, task, &mut effects);
                    self.carry_on(now, task, &mut effects);
                }
                Found::NeverStarted => self.wait_again(task),
                // It holds its GPUs until the machine can tell.
                Found::Unknown(why) => {
                    self.adopt(now, task, &mut effects);
                    self.is_unclear(task, &why);
                }
                // Adopted first, so that its end is an end like any other.
                Found::Ended(end) => {
                    self.adopt(now, task, &mut effects);
                    self.attempt_ended(now, task, attempt, end, &mut effects);
                }
            }
        }
        let on_gpus = self.tasks.values().filter(|live| live.record.phase.is_on_gpus());
        let running: Vec<_> = on_gpus.map(|live| (live.record.id, live.record.attempt)).collect();
        let journal = &self.journal;
        let is_known = |task| matches!(journal.task(task), Ok(Some(_)));
        self.executor.keep_only(&running, &is_known);
        self.roots_changed = true;
        self.flush();
        self.carry_out(now, effects);
        self.wake_at = Time::START;
        Ok(())
    }

    /// Takes up the tasks that the journal has.
    fn keep_saved(&mut self, saved: Vec<(Record, Arc<TaskSpec>)>) {
        for (mut record, spec) in saved {
            self.recall_intent(&mut record);
            let intended = record.intent.filter(|_| record.phase.is_on_gpus());
            let cancelled = record.cancelled.then_some(Ending::Over(TaskState::Cancelled));
            let ending = intended.map_or(cancelled, |intent| intent.ending(&record));
            if record.phase.is_on_gpus() {
                self.on_gpus.insert(record.id);
            }
            self.user_usage.came(&record);
            self.keep(Live { record, spec, in_core: false, ending });
        }
    }

    /// What was wanted of a running task when the journal had no room for it.
    fn recall_intent(&mut self, record: &mut Record) {
        if !record.phase.is_on_gpus() || record.intent.is_some() {
            return;
        }
        record.intent = self.intent_file.of(record.id, record.attempt);
        if record.intent.is_some() {
            record.cancelled |= record.intent == Some(Intent::Cancel);
            self.pending.push(Entry::Task(Box::new(record.clone())));
        }
    }

    /// The GPU of a running task is not there any more. The scheduler never hears of this attempt.
    fn its_gpu_is_gone(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        if live.ending.is_none() {
            live.record.losses += 1;
            let what = "its GPU was not there when the daemon started; it starts again";
            self.intend(task, Intent::Loss, what.to_owned());
        }
    }

    /// What was wanted of a running task before the restart is wanted still: it may not have heard of it.
    fn carry_on(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        self.mind_time_limit(task);
        if let Some(live) = self.tasks.get(&task).filter(|live| live.record.limit_changed) {
            self.to_limit.push((task, live.record.attempt));
        }
        let Some(live) = self.tasks.get(&task) else { return };
        if live.record.cancelled && live.record.intent.is_none() {
            // An earlier daemon launched it although it was cancelled.
            self.intend(task, Intent::Cancel, "is cancelled".to_owned());
        }
        let Some(live) = self.tasks.get(&task) else { return };
        match (live.ending, live.record.intent) {
            (Some(_), _) => self.scheduler.note(now, Event::StopRequested(task), effects),
            (None, Some(_)) => self.stop(task),
            (None, None) => {}
        }
    }

    /// The machine cannot tell how an attempt is. It is looked at again soon.
    pub(in crate::owner) fn is_unclear(&mut self, task: TaskId, why: &str) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        let what = format!("the machine cannot tell how it is: {why}");
        let attempt = live.record.attempt;
        if live.record.reason.as_ref() != Some(&what) {
            tracing::warn!(task = task.0, "{what}");
            live.record.reason = Some(what.clone());
            self.changed(task, Some(what));
        }
        self.unclear.no_later_than(self.clock.instant() + LOOK_AGAIN, task, attempt);
    }

    /// Looks at attempts again of which the machine could not tell how they are.
    pub(in crate::owner) fn look_again_at_the_unclear(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
    ) {
        for (task, attempt) in self.unclear.due(self.clock.instant()) {
            let Some(live) = self.tasks.get(&task) else { continue };
            if live.record.attempt != attempt || !live.record.phase.is_on_gpus() {
                continue;
            }
            match self.executor.find(&live.record, &live.spec) {
                Found::Running => {
                    if let Some(live) = self.tasks.get_mut(&task) {
                        live.record.reason = None;
                    }
                    self.changed(task, Some("found running".to_owned()));
                    self.carry_on(now, task, effects);
                }
                Found::Ended(end) => self.attempt_ended(now, task, attempt, end, effects),
                Found::NeverStarted => {
                    self.attempt_ended(now, task, attempt, End::NeverBegan(None), effects);
                }
                Found::Unknown(why) => self.is_unclear(task, &why),
            }
        }
    }

    fn adopt(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        let Some(core_task) = self.as_core_task(task) else { return };
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.in_core = true;
        let preempting = live.record.phase == TaskState::Preempting;
        if live.record.phase == TaskState::Launching {
            live.record.phase = TaskState::Running;
            let now = self.clock.world_now();
            live.record.started.get_or_insert(now);
            live.record.first_started.get_or_insert(now);
        }
        let (placement, started) = (live.record.placement.clone(), live.record.started);
        let (record, spec) = (live.record.clone(), Arc::clone(&live.spec));
        if preempting {
            // The scheduler of before had sent it back to the queue. One that was cancelled since does not come back.
            live.ending.get_or_insert(Ending::Again);
        }
        if let Some(place) = live.record.array {
            self.eligibility.admitted(task, place.array);
        }
        self.recall(now, &record, &spec, Some(self.clock.world_now()));
        let started = started.map_or(now, |started| self.clock.time(started));
        #[cfg(test)]
        let placement = placement
            .filter(|_| !crate::owner::kit::is_sabotaged(crate::owner::kit::Sabotage::LedgerEntry));
        if let Some(placement) = placement {
            let promised = record.memory.as_ref().and_then(|memory| memory.promised);
            self.recall_attempts(&record);
            self.scheduler.note(
                now,
                Event::Adopted { task: core_task, placement, started, promised },
                effects,
            );
        }
        self.changed(task, Some("found running after a restart of the daemon".to_owned()));
    }

    /// Its launch was decided and not done; and it will not be done, since its attempt is claimed now.
    fn wait_again(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = TaskState::Pending;
        live.record.placement = None;
        live.record.intent = None;
        let ending = live.ending.take();
        self.changed(task, Some("was not launched before the daemon stopped".to_owned()));
        match ending {
            Some(Ending::Over(phase)) => self.over(task, phase),
            Some(Ending::Again) | None => self.eligibility.look_at(task),
        }
    }
}
