//! Tasks that are to be different from what was submitted.

use crate::bounds;
use crate::owner::commands::invalid::Invalid;
use crate::owner::lifecycle::eligibility::user;
use crate::owner::{Caller, Owner, Refused};
use crate::record::SpecId;
use coloc_api::spec::{TaskSpec, TaskUpdate};
use coloc_core::{Effect, Event};
use coloc_model::{Millis, TaskId, Time};
use std::sync::Arc;

impl Owner {
    /// Changes a task. Its submission may be shared with others of an array, so it gets one of its own.
    pub(in crate::owner) fn update(
        &mut self,
        now: Time,
        caller: Caller,
        task: TaskId,
        update: &TaskUpdate,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get(&task) else { return Ok(()) };
        if update.priority.is_some_and(|priority| priority > 0) && !caller.admin {
            return Err(Refused::PriorityAboveZero);
        }
        let phase = live.record.phase;
        if phase.is_on_gpus() && update.needs_a_task_that_waits() {
            let advice = "what it asked for is fixed while it runs; name, priority, time limit, retries and what to do \
                          when a GPU has no room can be changed, and a requeue lets it wait again";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        if self.disk_full {
            return Err(Refused::Journal(self.why_unwritten()));
        }
        let (owner, old, was) = (live.record.owner, live.record.spec, live.spec.clone());
        let known = self.updated.take().filter(|known| known.is_of(old, update));
        let spec = known.as_ref().map_or_else(|| Arc::new(update.over(&was)), Updated::spec);
        if update.pools.is_some() {
            self.check_pools(caller, owner, &spec)?;
        }
        self.may_limit(caller, live, update, &spec)?;
        let other_limit = spec.time_limit != was.time_limit;
        if !phase.is_on_gpus() {
            self.check(owner, &spec, None)?;
        }
        bounds::check(&spec, 1, &self.settings.bounds).map_err(Invalid::from)?;
        let other_order = update.after.is_some() || update.name.is_some();
        if other_order && self.waits_for_itself(task, &spec) {
            return Err(Invalid::WaitsForItself(task).into());
        }
        let id = match known {
            Some(known) => known.new,
            None => {
                self.has_room_in_journal(owner, &spec)?;
                let id = SpecId(self.next_spec);
                self.next_spec += 1;
                self.keep_spec(owner, id, spec.clone());
                id
            }
        };
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.spec = id;
            live.spec = spec.clone();
            let record = live.record.clone();
            self.replaced(&record, old, &was);
        }
        if other_limit && phase.is_on_gpus() {
            self.time_limit_changed(task);
        }
        let (name, limit) = (spec.name.clone(), spec.time_limit);
        self.updated = Some(Updated { old, update: update.clone(), new: id, spec });
        self.changed(task, Some(told(update, limit)));
        self.tell_scheduler_of_update(now, task, update, effects);
        if !phase.is_on_gpus() {
            self.eligibility.look_at(task);
        }
        self.eligibility.renamed(task, user(owner), &was.name, &name);
        Ok(())
    }

    /// Has the scheduler count what a task asks for now.
    fn tell_scheduler_of_update(
        &mut self,
        now: Time,
        task: TaskId,
        update: &TaskUpdate,
        effects: &mut Vec<Effect>,
    ) {
        let Some(live) = self.tasks.get(&task) else { return };
        let (in_core, waits) = (live.in_core, !live.record.phase.is_on_gpus());
        // A task that came back from an end for want of memory has its place by that, which only a new entry changes.
        let anew = update.begin_ms.is_some() || update.after.is_some() || live.record.ooms > 0;
        // So has a task that may run elsewhere: it is something else to the scheduler.
        let anew = anew || update.gpu_kinds.is_some() || update.pools.is_some();
        // And a task that has its GPUs already, and waits until others are off them: what it asked for counts there.
        let anew = anew || self.is_deferred(task);
        if in_core && waits && anew && (update.needs_a_task_that_waits() || update.limits_time()) {
            self.leave_core(now, task, effects);
        } else if in_core && let Some(core_task) = self.as_core_task(task) {
            self.scheduler.note(now, Event::Changed(core_task), effects);
        }
    }
}

impl Owner {
    /// No task has this submission any more: none must be given it.
    pub(in crate::owner) fn no_longer_current(&mut self, spec: SpecId) {
        self.updated.take_if(|known| known.new == spec);
    }
}

/// A submission that was changed, and what it became: others of its array that are changed alike have the same one.
pub(in crate::owner) struct Updated {
    old: SpecId,
    update: TaskUpdate,
    new: SpecId,
    spec: Arc<TaskSpec>,
}

impl Updated {
    fn is_of(&self, old: SpecId, update: &TaskUpdate) -> bool {
        self.old == old && self.update == *update
    }

    fn spec(&self) -> Arc<TaskSpec> {
        self.spec.clone()
    }
}

/// For the task's story.
fn told(update: &TaskUpdate, limit: Option<Millis>) -> String {
    let parts = [
        update.name.as_ref().map(|name| format!("name {name:?}")),
        update.limits_time().then(|| match limit {
            Some(limit) => format!("time limit {limit}"),
            None => "no time limit".to_owned(),
        }),
        update.gpu_memory.map(|memory| format!("GPU memory {memory}")),
        update.priority.map(|priority| format!("priority {priority}")),
        update.gpus.map(|gpus| format!("{gpus} GPUs")),
        update.gpu_kinds.as_ref().map(|kinds| match kinds.as_slice() {
            [] => "GPUs of any kind".to_owned(),
            kinds => format!("GPUs of kind {}", kinds.join(" or ")),
        }),
        update.pools.as_ref().map(|pools| match pools.as_slice() {
            [] => "the default pool".to_owned(),
            pools => format!("pool {}", pools.join(" or ")),
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
