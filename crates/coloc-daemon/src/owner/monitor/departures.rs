//! Tasks whose processes are gone from their GPUs before their end was heard of. What such a GPU shows is no longer of
//! the tasks that the ledger has on it, so the scheduler is not told: it would learn that they do little.

use crate::hardware::{Sighting, TaskSighting};
use crate::owner::Owner;
use coloc_core::{Effect, Event};
use coloc_model::{Bytes, GpuId, Millis, Placement, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;

/// An end is heard of sooner. A task that is gone longer only has nothing to do there.
const LONGEST: Millis = Millis::from_secs(10);

/// When tasks were last seen on their GPUs.
pub(in crate::owner) type LastSeen = FxHashMap<TaskId, Time>;

impl Owner {
    /// Tells the scheduler of memory that no task of its has. What tasks hold that it has taken off their GPUs, and
    /// that are not gone yet, is such memory by the contract: a task that runs out of it was wronged.
    pub(in crate::owner) fn see_foreign(
        &mut self,
        now: Time,
        seen: &mut Sighting,
        effects: &mut Vec<Effect>,
    ) {
        for (gpu, used) in &mut seen.foreign {
            *used += self.held_by_leaving(*gpu, &seen.tasks);
        }
        for &(gpu, used) in &seen.foreign {
            let before = self.last_seen.foreign.iter().find(|(known, _)| *known == gpu);
            if before.map_or(Bytes::ZERO, |&(_, used)| used) != used {
                self.scheduler.note(now, Event::ForeignSeen { gpu, used }, effects);
            }
        }
    }

    /// A task is taken off its GPUs: what it was last seen to hold is there until it is gone.
    pub(in crate::owner) fn leaves(&mut self, task: TaskId) {
        let mut seen = std::mem::take(&mut self.last_seen);
        let gpus = self.tasks.get(&task).and_then(|live| live.record.placement.clone());
        let (now, mut effects) = (self.clock.now(), Vec::new());
        for gpu in gpus.iter().flat_map(Placement::gpus) {
            let held = self.held_by_leaving(gpu, &seen.tasks);
            if let Some((_, used)) = seen.foreign.iter_mut().find(|(known, _)| *known == gpu)
                && held > Bytes::ZERO
            {
                *used = (*used).max(held);
                self.scheduler.note(now, Event::ForeignSeen { gpu, used: *used }, &mut effects);
            }
        }
        self.last_seen = seen;
    }

    fn held_by_leaving(&self, gpu: GpuId, seen: &[TaskSighting]) -> Bytes {
        let leaves = |task: TaskId| {
            let live = self.tasks.get(&task);
            let record = live.map(|live| &live.record);
            record.is_some_and(|record| {
                let mut gpus = record.placement.iter().flat_map(Placement::gpus);
                record.phase == TaskState::Preempting && gpus.any(|theirs| theirs == gpu)
            })
        };
        if self.scheduler.policy().contract.is_none() {
            return Bytes::ZERO;
        }
        seen.iter().filter(|seen| leaves(seen.task)).map(|seen| seen.used).sum()
    }

    /// GPUs that a task has left just now, by what the monitor saw.
    pub(in crate::owner) fn just_left(&mut self, now: Time, seen: &Sighting) -> Vec<GpuId> {
        self.seen_at.retain(|task, _| self.on_gpus.contains(task));
        for seen in &seen.tasks {
            if self.on_gpus.contains(&seen.task) {
                self.seen_at.insert(seen.task, now);
            }
        }
        let leaving = self.seen_at.iter().filter(|&(_, &at)| at < now && now.since(at) <= LONGEST);
        let placements = leaving
            .filter_map(|(task, _)| self.tasks.get(task)?.record.placement.as_ref())
            .flat_map(Placement::gpus);
        placements.collect()
    }
}
