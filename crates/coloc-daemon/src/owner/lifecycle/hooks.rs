//! What follows from a prolog or an epilog that failed: the task waits again, and a GPU on which they fail again and again is
//! drained.

use crate::owner::{Ending, Owner};
use coloc_api::moment::Moment;
use coloc_core::eligibility::retry_pause;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Outcome, Placement, TaskId, Time};
use rustc_hash::FxHashMap;

/// A GPU on which hooks fail so often in a row is drained.
const MOST_ON_GPU: u32 = 3;
/// A task whose prolog fails so often in a row is held.
const MOST_OF_TASK: u32 = 5;

/// How often hooks failed in a row.
#[derive(Default, Debug)]
pub(in crate::owner) struct HookFailures {
    by_gpu: FxHashMap<GpuId, u32>,
    by_task: FxHashMap<TaskId, u32>,
}

impl Owner {
    /// The prolog of an attempt failed, and its program never began: the task waits again.
    pub(in crate::owner) fn prolog_failed(
        &mut self,
        now: Time,
        task: TaskId,
        why: &str,
        effects: &mut Vec<Effect>,
    ) {
        let gpus = self.gpus_of(task);
        let failures = self.hook_failures.by_task.entry(task).or_default();
        *failures += 1;
        let failures = *failures;
        let what = format!("the administrator's prolog failed: {why}");
        tracing::error!(task = task.0, "{what}");
        let until = self.clock.world(retry_pause(failures)).as_millis() as u64;
        let retry_at = Moment(self.clock.world_now().0.saturating_add(until));
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.reason = Some(what.clone());
        live.record.retry_at = Some(retry_at);
        live.ending = Some(Ending::Again);
        let held = failures >= MOST_OF_TASK;
        live.record.held |= held;
        self.changed(task, Some(what));
        if held {
            self.hook_failures.by_task.remove(&task);
            let what = format!(
                "held: the prolog failed {MOST_OF_TASK} times; ask an administrator, `coloc release {task}` tries again"
            );
            self.changed(task, Some(what));
        }
        self.hooks_failed_on(now, &gpus, "prolog", why, effects);
        self.note_end(now, Event::Ended { task, outcome: Outcome::Failed }, effects);
    }

    /// The program of an attempt has ended: its prolog was all right, and so may its epilog have been.
    pub(in crate::owner) fn hear_of_hooks(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) {
        self.hook_failures.by_task.remove(&task);
        let Some(live) = self.tasks.get(&task) else { return };
        let failed = self.executor.epilog_failure(&live.record);
        let gpus = self.gpus_of(task);
        match failed {
            Some(why) => {
                tracing::error!(task = task.0, "the epilog failed: {why}");
                self.changed(task, Some(format!("the administrator's epilog failed: {why}")));
                self.hooks_failed_on(now, &gpus, "epilog", &why, effects);
            }
            None => gpus.iter().for_each(|gpu| {
                self.hook_failures.by_gpu.remove(gpu);
            }),
        }
    }

    fn gpus_of(&self, task: TaskId) -> Vec<GpuId> {
        let placement = self.tasks.get(&task).and_then(|live| live.record.placement.as_ref());
        placement.into_iter().flat_map(Placement::gpus).collect()
    }

    fn hooks_failed_on(
        &mut self,
        now: Time,
        gpus: &[GpuId],
        which: &str,
        why: &str,
        effects: &mut Vec<Effect>,
    ) {
        for &gpu in gpus {
            let failures = self.hook_failures.by_gpu.entry(gpu).or_default();
            *failures += 1;
            if *failures >= MOST_ON_GPU {
                self.hook_failures.by_gpu.remove(&gpu);
                let why = format!("the {which} failed {MOST_ON_GPU} times in a row: {why}");
                self.drain_for_fault(now, gpu, &why, effects);
            }
        }
    }
}
