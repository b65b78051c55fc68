//! Tasks that wait until their users release them.

use crate::owner::Ending;
use crate::owner::{Owner, Refused};
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, Time};

impl Owner {
    /// A task that waits can be held. It leaves the scheduler, and comes back at the end of the line.
    pub(in crate::owner) fn hold(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        let phase = live.record.phase;
        if phase.is_on_gpus() {
            let advice = "only a task that waits can be held; requeue it to start it again later";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        if std::mem::replace(&mut live.record.held, true) {
            return Ok(());
        }
        live.record.held_by = self.asked_by;
        self.leave_core(now, task, effects);
        self.eligibility.look_at(task);
        self.changed(task, Some("held".to_owned()));
        Ok(())
    }

    /// Takes a task that waits from the scheduler. It comes back when it is eligible.
    pub(in crate::owner) fn leave_core(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        if std::mem::take(&mut live.in_core) {
            live.ending = Some(Ending::Again);
            self.scheduler.note(now, Event::StopRequested(task), effects);
        }
    }

    pub(in crate::owner) fn release(&mut self, task: TaskId) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        if !std::mem::take(&mut live.record.held) {
            return Err(Refused::NotHeld { task, phase: live.record.phase });
        }
        live.record.held_by = None;
        self.eligibility.look_at(task);
        self.changed(task, Some("released".to_owned()));
        Ok(())
    }
}
