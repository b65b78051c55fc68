//! A running task is stopped, and waits again.

use crate::owner::{Owner, Refused};
use crate::record::Intent;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, TaskState, Time};

impl Owner {
    /// Stops a task; it is submitted again once it is off its GPUs.
    pub(in crate::owner) fn requeue(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        let phase = live.record.phase;
        if !phase.is_on_gpus() {
            return Err(Refused::WrongPhase { task, phase, advice: "it waits already" });
        }
        let is_told = matches!(live.record.intent, Some(Intent::Requeue | Intent::Preempt));
        self.intend(task, Intent::Requeue, "requeued".to_owned());
        if is_told {
            // It heard its signal, saved its work, and says so in the way scripts do: there is nothing to wait for.
            self.stop_at_once(task);
        }
        // One that is being preempted comes back as it is.
        if phase != TaskState::Preempting {
            self.scheduler.note(now, Event::StopRequested(task), effects);
        }
        Ok(())
    }
}
