//! What a fleet could ever run, if it were empty: gangs that fit on it and within quotas.

use crate::demand::Demand;
use crate::gpus::GpuState;
use crate::policy::{Place, Policy, Queue};
use crate::queue::Ticket;
use crate::scheduler::{Scheduler, World};
use crate::tasks::Record;
use coloc_model::mig::Layout;
use coloc_model::{Bytes, Fleet, GpuId, Share, Task, TaskId};

/// A task that no GPU of this fleet can ever run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct RejectedTask {
    /// The task.
    pub task: TaskId,
    /// GPUs it asked for.
    pub wanted: u32,
    /// GPUs that could ever be given to it.
    pub available: u32,
    scope: &'static str,
    advice: &'static str,
}

impl RejectedTask {
    fn told(&self) -> String {
        let RejectedTask { task, wanted, available, scope, advice } = self;
        match wanted {
            0 => format!("task {task} asks for no GPU; a task has at least 1"),
            _ => format!("task {task} needs {wanted} GPUs {scope} at most {available}; {advice}"),
        }
    }
}

/// For each number of GPUs the memory of the smallest of the largest ones that a task can get at once.
pub(crate) fn largest_by_gang(fleet: &Fleet, policy: &Policy) -> Vec<Bytes> {
    let memory = |gpu| match (policy.share, fleet.gpu(gpu).model.mig()) {
        (Share::Mig, Some(table)) => Layout::default().largest_memory(table),
        _ => fleet.gpu(gpu).model.memory(),
    };
    let groups: Vec<Vec<Bytes>> = match policy.place {
        Place::Any | Place::Consolidate => vec![fleet.ids().map(memory).collect()],
        _ => fleet.nodes().iter().map(|node| node.gpus().map(memory).collect()).collect(),
    };
    let mut largest: Vec<Bytes> = Vec::new();
    for mut group in groups {
        group.sort_unstable_by(|a, b| b.cmp(a));
        largest.resize(largest.len().max(group.len()), Bytes::ZERO);
        largest.iter_mut().zip(group).for_each(|(most, memory)| *most = memory.max(*most));
    }
    largest
}

impl Scheduler {
    /// Whether this fleet could ever run a task, if it were empty.
    pub fn check(&self, task: &Task) -> Result<(), RejectedTask> {
        let larger = "ask for fewer, or add GPUs";
        let (available, scope, advice) = match (self.world.policy.queue, self.world.policy.place) {
            (Queue::Allox, _) => (1, "at once, allox gives a task", "gangs need another queue"),
            (_, Place::Any | Place::Consolidate) => {
                (self.world.widest, "at once, the fleet has", larger)
            }
            _ => (self.world.widest, "on one node, the fleet has", larger),
        };
        let rejected = |available, scope, advice| {
            Err(RejectedTask { task: task.id, wanted: task.gpus, available, scope, advice })
        };
        if !(1..=available).contains(&task.gpus) {
            return rejected(available, scope, advice);
        }
        let any_model = task.models.is_none() && !self.world.models.matter();
        if any_model && !self.world.holdings.are_limited() {
            return Ok(());
        }
        let demand = self.world.demand_of(&Record::new(task.clone(), Ticket::FIRST));
        if demand.models.is_some() {
            let runs_on = self.world.runs_on(&demand);
            if runs_on < task.gpus {
                let scope = "of kinds that it runs on, it can have";
                return rejected(runs_on, scope, "add GPUs of another kind");
            }
        }
        match self.world.holdings.most(task.user, &demand) {
            Some(most) if most < task.gpus => {
                let scope = "at once, its user's or group's quota of GPUs and memory allows";
                rejected(most, scope, "raise it, or ask for less memory")
            }
            _ => Ok(()),
        }
    }

    /// The most memory that a task with so many GPUs can have on each of them; none if it has too many.
    pub fn most_memory(&self, gpus: u32) -> Bytes {
        let rank = (gpus as usize).checked_sub(1);
        rank.and_then(|rank| self.world.largest.get(rank)).copied().unwrap_or(Bytes::ZERO)
    }
}

impl World {
    /// How many GPUs of kinds that it runs on, with memory enough, a task can have at once.
    fn runs_on(&self, demand: &Demand) -> u32 {
        self.most_at_once(demand, |_| true)
    }

    /// It will have GPUs when enough tasks have gone: as many as it needs are neither lost nor drained.
    pub(crate) fn has_gpus_in_service(&self, demand: &Demand) -> bool {
        self.gpus.are_all_in_service()
            || self.most_at_once(demand, |state| !state.is_out()) >= demand.gpus
    }

    fn most_at_once(&self, demand: &Demand, counts: impl Fn(&GpuState) -> bool) -> u32 {
        let fits = |&gpu: &GpuId| {
            let state = self.gpus.get(gpu);
            demand.models.is_none_or(|models| models.contains(state.model))
                && demand.need <= state.capacity
                && counts(state)
        };
        match self.policy.place {
            Place::Any | Place::Consolidate => self.gpus.ids().filter(fits).count() as u32,
            _ => {
                let of_node = |node| self.gpus.of_node(node).filter(fits).count() as u32;
                self.gpus.node_ids().map(of_node).max().unwrap_or(0)
            }
        }
    }
}
