//! Picking up where the last daemon left off.

use super::{Ending, Live, Owner};
use crate::journal::JournalError;
use crate::launch::Found;
use crate::record::{Phase, Record};
use crate::spec::TaskSpec;
use coloc_core::Event;
use coloc_model::{TaskId, Time};
use std::sync::Arc;

impl Owner {
    /// Waiting tasks wait again, running ones are adopted, and of those that ended meanwhile it is found out
    /// how. Nothing that was decided is decided again.
    pub(super) fn restore(
        &mut self,
        saved: Vec<(Record, Arc<TaskSpec>)>,
    ) -> Result<(), JournalError> {
        let now = self.clock.now();
        for (record, mut spec) in saved {
            // Tasks of an array have one already.
            if let Some(spec) = Arc::get_mut(&mut spec) {
                self.texts.share(spec);
            }
            let ending = record.cancelled.then_some(Ending::Over(Phase::Cancelled));
            let id = record.id;
            if record.phase.is_on_gpus() {
                self.on_gpus.insert(id);
            }
            self.tasks.insert(id, Live { record, spec, in_core: false, ending });
        }
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        let mut wishes = Vec::new();
        for task in ids {
            let Some(live) = self.tasks.get(&task) else { continue };
            if !live.record.phase.is_on_gpus() {
                if live.record.cancelled {
                    self.over(task, Phase::Cancelled);
                } else {
                    self.gates.knock(task);
                }
                continue;
            }
            match self.launcher.find(&live.record) {
                Found::Running => self.adopt(now, task, &mut wishes),
                Found::NeverStarted => self.wait_again(task),
                // Adopted first, so that its end is an end like any other.
                Found::Ended => {
                    self.adopt(now, task, &mut wishes);
                    let attempt = self.tasks.get(&task).map_or(0, |live| live.record.attempt);
                    self.shim_gone(now, task, attempt, &mut wishes);
                }
            }
        }
        let on_gpus = self.tasks.values().filter(|live| live.record.phase.is_on_gpus());
        let running: Vec<_> = on_gpus.map(|live| (live.record.id, live.record.attempt)).collect();
        self.launcher.sweep_groups(&running);
        self.roots_changed = true;
        self.flush();
        self.carry_out(now, wishes);
        self.wake_at = Time::START;
        Ok(())
    }

    fn adopt(&mut self, now: Time, task: TaskId, wishes: &mut Vec<coloc_core::Effect>) {
        let Some(core_task) = self.as_core_task(task) else { return };
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.in_core = true;
        let preempting = live.record.phase == Phase::Preempting;
        if live.record.phase == Phase::Launching {
            live.record.phase = Phase::Running;
            let now = crate::record::Moment::now();
            live.record.started.get_or_insert(now);
            live.record.first_started.get_or_insert(now);
        }
        let (placement, started) = (live.record.placement.clone(), live.record.started);
        let (record, spec) = (live.record.clone(), Arc::clone(&live.spec));
        if preempting {
            // The scheduler of before had sent it back to the queue.
            live.ending = Some(Ending::Again);
        }
        if let Some(place) = live.record.array {
            self.gates.at_work(task, place.array);
        }
        self.recall(now, &record, &spec, Some(crate::record::Moment::now()));
        let started = started.map_or(now, |started| self.clock.time(started));
        if let Some(placement) = placement {
            self.scheduler.note(
                now,
                Event::Adopted { task: core_task, placement, started },
                wishes,
            );
        }
        self.changed(task, Some("found running after a restart of the daemon".to_owned()));
    }

    /// It was decided to launch it, and nobody did; and nobody will, since its attempt is claimed now.
    fn wait_again(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = Phase::Pending;
        live.record.placement = None;
        let cancelled = live.record.cancelled;
        self.changed(task, Some("was not launched before the daemon stopped".to_owned()));
        if cancelled {
            self.over(task, Phase::Cancelled);
        } else {
            self.gates.knock(task);
        }
    }
}
