//! Pools of GPUs that tasks name, and GPUs that are kept for some users.

use crate::demand::Demand;
use crate::gpus::GpuState;
use crate::policy::Policy;
use crate::scheduler::{Scheduler, SchedulerState};
use crate::screen::{Case, Refusal};
use crate::{admission::LargestMemory, queue::Waiting};
use coloc_model::{GpuId, PoolSet, Share, Task};

/// What a pool is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pool {
    /// Its GPUs.
    pub gpus: Vec<GpuId>,
    /// How tasks share them; exclusive tasks share them with no other, whatever other pools they are in.
    pub share: Share,
}

/// The pools of a fleet, in the order in which they are preferred.
#[derive(Clone, Default, Debug)]
pub(crate) struct Pools(Vec<Pool>);

impl Pools {
    /// GPUs are in pools.
    pub(crate) fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// How tasks of these pools share GPUs; pools that a task names at once share alike.
    fn share(&self, pools: Option<PoolSet>) -> Option<Share> {
        let first = pools?.iter().next()?;
        self.0.get(first).map(|pool| pool.share)
    }
}

impl Scheduler {
    /// Tasks name pools. Must be said before anything is submitted.
    #[must_use]
    pub fn with_pools(mut self, pools: Vec<Pool>) -> Self {
        let state = &mut self.state;
        let there = state.gpus.len();
        for (place, pool) in pools.iter().enumerate() {
            for &gpu in pool.gpus.iter().filter(|gpu| gpu.index() < there) {
                state.gpus.put_into_pool(gpu, place, pool.share);
            }
        }
        state.largest = LargestMemory::of(&state.gpus, &state.fleet, &state.policy);
        state.pools = Pools(pools);
        self
    }

    /// GPUs may be kept for some users, so that no two users' tasks are alike. Must be said before anything is submitted.
    pub fn tell_users_apart(&mut self) {
        self.state.waiting = Waiting::new(&self.state.policy, true);
    }
}

impl SchedulerState {
    /// The policy as it is for a task: its pool may share GPUs in another way.
    pub(crate) fn policy_for(&self, task: &Task) -> Policy {
        let share = self.pools.share(task.pools).unwrap_or(self.policy.share);
        Policy { share, ..self.policy }
    }

    /// A task shares its GPUs with no other because of its pool.
    pub(crate) fn has_whole_gpus(&self, task: &Task) -> bool {
        self.pools.share(task.pools) == Some(Share::Exclusive)
    }
}

impl Demand {
    /// A GPU is in a pool of the task.
    pub(crate) fn is_in_pool(&self, gpu: &GpuState) -> bool {
        self.pools.is_none_or(|pools| pools.meets(gpu.pools))
    }

    /// A GPU is kept for no user, or for this one.
    pub(crate) fn is_kept_for_it(&self, gpu: &GpuState) -> bool {
        gpu.kept_for.as_ref().is_none_or(|users| users.contains(&self.user))
    }

    /// A GPU is one of those that the task may have at all, whatever is on it.
    pub(crate) fn may_have(&self, gpu: &GpuState) -> bool {
        self.is_in_pool(gpu) && self.is_kept_for_it(gpu)
    }

    /// Every GPU of the fleet is as good as another.
    pub(crate) fn takes_any(&self) -> bool {
        self.models.is_none() && self.pools.is_none()
    }
}

/// A GPU takes the tasks of its pools.
pub(crate) fn pool(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    (!case.demand.is_in_pool(gpu)).then_some(Refusal::OtherPool)
}

/// A GPU that is kept for some users takes theirs.
pub(crate) fn kept_for_users(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    (!case.demand.is_kept_for_it(gpu)).then_some(Refusal::KeptForOthers)
}

/// A GPU is partitioned or not; a task that was there before the policy changed keeps it as it was.
pub(crate) fn other_sharing(_: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let partitioned = gpu.is_partitioned();
    let other = gpu.residents.iter().find(|booking| booking.instance.is_some() != partitioned)?;
    Some(Refusal::OtherSharing { holder: other.task })
}
