//! The starvation limit: GPUs are reserved for a task that has been passed over too long.

use crate::demand::Demand;
use crate::gpus::Reservation;
use crate::policy::Place;
use crate::queue::backfill;
use crate::scheduler::SchedulerState;
use coloc_model::{GpuId, TaskId, Time};

impl SchedulerState {
    /// Keeps GPUs of one node free for the longest waiting task once it has waited too long.
    pub(crate) fn reserve_for_the_starving(&mut self, now: Time) {
        let Some(starvation_limit) = self.policy.starvation_limit else { return };
        let Some(head) = self.head() else { return };
        if self.reserved.is_some()
            || now.since(self.tasks.live(head).ticket.submitted) < starvation_limit
        {
            return;
        }
        self.reserve_for(now, Some(head));
    }

    pub(crate) fn reserve_for(&mut self, now: Time, task: Option<TaskId>) {
        let Some(task) = task else {
            let kept: Vec<GpuId> = self
                .gpus
                .iter()
                .filter(|(_, state)| state.reserved.is_some())
                .map(|(gpu, _)| gpu)
                .collect();
            kept.into_iter().for_each(|gpu| self.gpus.reserve(gpu, None));
            self.reserved = None;
            return;
        };
        let demand = self.demand(task);
        for gpu in self.roomiest(&demand) {
            let until = backfill::free_at(self, gpu, now, &demand, None);
            self.gpus.reserve(gpu, Some(Reservation { reserved_for: task, until }));
        }
        self.reserved = Some(task);
    }

    /// The GPUs of one node, each large enough, that are closest to being free.
    fn roomiest(&self, demand: &Demand) -> Vec<GpuId> {
        let wanted = demand.gpus as usize;
        let by_room = |gpu: &GpuId| {
            let state = self.gpus.get(*gpu);
            (state.residents().len(), std::cmp::Reverse(self.gpus.available(*gpu)), *gpu)
        };
        let groups: Vec<Vec<GpuId>> = match self.policy.place {
            Place::Any => vec![self.fleet.ids().collect()],
            Place::Consolidate if wanted > self.fleet.widest_node() => {
                vec![self.fleet.ids().collect()]
            }
            _ => self.fleet.nodes().iter().map(|node| node.gpus().collect()).collect(),
        };
        let large_enough = |gpu: &GpuId| {
            let state = self.gpus.get(*gpu);
            state.capacity >= demand.need && !state.is_out()
        };
        groups
            .into_iter()
            .map(|gpus| gpus.into_iter().filter(large_enough).collect())
            .filter(|gpus: &Vec<GpuId>| gpus.len() >= wanted)
            .map(|mut gpus| {
                gpus.sort_unstable_by_key(by_room);
                gpus.truncate(wanted);
                gpus
            })
            .min_by_key(|gpus| gpus.last().map(by_room))
            .unwrap_or_default()
    }
}
