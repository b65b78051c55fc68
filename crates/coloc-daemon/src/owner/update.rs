//! Tasks that are to be different from what was submitted.

use super::{Caller, Owner, Refused};
use crate::journal::Entry;
use crate::record::SpecId;
use crate::spec::TaskUpdate;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, Time};
use std::sync::Arc;

impl Owner {
    /// Changes a task. Its submission may be shared with others of an array, so it gets one of its own.
    pub(super) fn update(
        &mut self,
        now: Time,
        caller: Caller,
        task: TaskId,
        update: &TaskUpdate,
        wishes: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get(&task) else { return Ok(()) };
        if update.priority.is_some_and(|priority| priority > 0) && !caller.admin {
            return Err(Refused::PriorityAboveZero);
        }
        let phase = live.record.phase;
        if phase.is_on_gpus() && (update.time_limit.is_some() || update.gpu_memory.is_some()) {
            let advice = "its time limit and memory are fixed while it runs; name and priority can be changed, \
                          and a requeue lets it wait again";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        if self.disk_full {
            return Err(Refused::DiskFull);
        }
        let spec = update.over(&live.spec);
        if !phase.is_on_gpus() {
            self.check(&spec, None)?;
        }
        let (id, spec) = (SpecId(self.next_spec), Arc::new(spec));
        self.next_spec += 1;
        self.pending.push(Entry::Spec(id, spec.clone()));
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.spec = id;
            live.spec = spec;
        }
        self.changed(task, Some(told(update)));
        let in_core = self.tasks.get(&task).is_some_and(|live| live.in_core);
        if in_core && let Some(core_task) = self.as_core_task(task) {
            self.scheduler.note(now, Event::Changed(core_task), wishes);
        }
        Ok(())
    }
}

/// For the task's story.
fn told(update: &TaskUpdate) -> String {
    let parts = [
        update.name.as_ref().map(|name| format!("name {name:?}")),
        update.time_limit.map(|limit| format!("time limit {limit}")),
        update.gpu_memory.map(|memory| format!("GPU memory {memory}")),
        update.priority.map(|priority| format!("priority {priority}")),
    ];
    format!("updated: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
