//! Tasks whose processes are gone from their GPUs and of whose end nobody has heard yet. What such a GPU shows is no
//! longer of those who are on it by the books, so the scheduler is not told: it would learn that they do little.

use super::Owner;
use crate::hardware::Sighting;
use coloc_model::{GpuId, Millis, Placement, TaskId, Time};
use rustc_hash::FxHashMap;

/// An end is heard of sooner. Whoever is gone longer only has nothing to do there.
const LONGEST: Millis = Millis::from_secs(10);

/// When tasks were last seen on their GPUs.
pub(super) type LastSeen = FxHashMap<TaskId, Time>;

impl Owner {
    /// GPUs that a task has left just now, by what the monitor saw.
    pub(super) fn just_left(&mut self, now: Time, seen: &Sighting) -> Vec<GpuId> {
        self.seen_at.retain(|task, _| self.on_gpus.contains(task));
        for (task, _) in &seen.tasks {
            if self.on_gpus.contains(task) {
                self.seen_at.insert(*task, now);
            }
        }
        let leaving = self.seen_at.iter().filter(|&(_, &at)| at < now && now.since(at) <= LONGEST);
        let placements = leaving
            .filter_map(|(task, _)| self.tasks.get(task)?.record.placement.as_ref())
            .flat_map(Placement::gpus);
        placements.collect()
    }
}
