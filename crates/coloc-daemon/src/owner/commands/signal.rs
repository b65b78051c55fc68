//! Signals for the processes of a task that goes on.

use crate::owner::commands::invalid::Invalid;
use crate::owner::{Owner, Refused};
use coloc_api::request::SignalRequest;
use coloc_api::signals;
use coloc_model::{TaskId, TaskState};

impl Owner {
    /// Sends a signal once that is on the disk; what becomes of the task is the task's own affair.
    pub(in crate::owner) fn signal(
        &mut self,
        task: TaskId,
        request: SignalRequest,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get(&task) else { return Err(Refused::NoSuchTask(task)) };
        let number = request.signal;
        if !signals::is_known(number) {
            return Err(Invalid::NoSuchSignal(number).into());
        }
        let phase = live.record.phase;
        let runs = matches!(phase, TaskState::Running | TaskState::Preempting);
        if !runs || !self.executor.can_signal(&live.record, request) {
            return Err(Refused::NotRunning { task, phase });
        }
        self.to_signal.push((task, live.record.attempt, request));
        let whom = if request.is_for_all() { "each of its processes" } else { "its program" };
        self.changed(task, Some(format!("{whom} is sent {}", signals::name(number))));
        Ok(())
    }
}
