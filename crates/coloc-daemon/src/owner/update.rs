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
        if phase.is_on_gpus() && update.needs_a_task_that_waits() {
            let advice = "what it asked for is fixed while it runs; name, priority, retries and what to do when a GPU \
                          has no room can be changed, and a requeue lets it wait again";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        if self.disk_full {
            return Err(Refused::DiskFull);
        }
        let spec = update.over(&live.spec);
        if !phase.is_on_gpus() {
            self.check(&spec, None)?;
        }
        let other_order = update.after.is_some() || update.name.is_some();
        if other_order && self.waits_for_itself(task, &spec) {
            let what = format!("task {task} would wait for itself");
            return Err(Refused::Invalid(what));
        }
        let (id, spec) = (SpecId(self.next_spec), Arc::new(spec));
        self.next_spec += 1;
        self.pending.push(Entry::Spec(id, spec.clone()));
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.spec = id;
            live.spec = spec;
        }
        self.changed(task, Some(told(update)));
        let Some(live) = self.tasks.get(&task) else { return Ok(()) };
        let (in_core, waits) = (live.in_core, !phase.is_on_gpus());
        // Who came back from an end for want of memory has its place by that, which only a new entry changes.
        let anew = update.begin_ms.is_some() || update.after.is_some() || live.record.ooms > 0;
        // So has who may run elsewhere: it is something else to the scheduler.
        let anew = anew || update.gpu_kinds.is_some();
        if in_core && waits && anew && update.needs_a_task_that_waits() {
            self.leave_core(now, task, wishes);
        } else if in_core && let Some(core_task) = self.as_core_task(task) {
            self.scheduler.note(now, Event::Changed(core_task), wishes);
        }
        if waits {
            self.gates.knock(task);
        }
        if update.name.is_some() {
            // Whoever waits for all of its name may no longer wait for it.
            self.gates.look_again(task);
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
        update.gpus.map(|gpus| format!("{gpus} GPUs")),
        update.gpu_kinds.as_ref().map(|kinds| match kinds.as_slice() {
            [] => "GPUs of any kind".to_owned(),
            kinds => format!("GPUs of kind {}", kinds.join(" or ")),
        }),
        update.exclusive.map(|alone| if alone { "alone" } else { "beside others" }.to_owned()),
        update.begin_ms.map(|_| "begin".to_owned()),
        update.after.as_ref().map(|after| match after.len() {
            0 => "waits for no other task".to_owned(),
            many => format!("waits for {many} tasks"),
        }),
        update.retries.map(|retries| format!("{retries} retries")),
        update.on_oom.map(|on_oom| format!("on-oom {on_oom:?}").to_lowercase()),
    ];
    format!("updated: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}
