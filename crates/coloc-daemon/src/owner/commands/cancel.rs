//! A task is to go for good.

use crate::owner::Owner;
use crate::record::Intent;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, TaskState, Time};

impl Owner {
    pub(in crate::owner) fn cancel(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.cancelled = true;
        let (in_core, leaves) = (live.in_core, live.record.phase == TaskState::Preempting);
        // The scheduler says once that a task is to go. One that goes for another reason may have been given time.
        let is_told = live.record.intent.is_some() && live.record.phase.is_on_gpus();
        self.intend(task, Intent::Cancel, "is cancelled".to_owned());
        if is_told {
            self.stop_at_once(task);
        }
        if leaves {
            // Its GPUs are its own until it is off them; the scheduler hears of it then.
            self.stop(task);
        } else if in_core {
            self.scheduler.note(now, Event::StopRequested(task), effects);
        } else {
            self.over(task, TaskState::Cancelled);
        }
    }
}
