//! What a fleet could ever run, if it were empty: gangs that fit on it and within quotas.

use crate::demand::Demand;
use crate::gpus::{GpuState, Gpus};
use crate::policy::{Place, Policy, Queue};
use crate::queue::Ticket;
use crate::scheduler::{Scheduler, SchedulerState};
use crate::tasks::Record;
use coloc_model::mig::Layout;
use coloc_model::{Bytes, Fleet, GpuId, ModelSet, PoolSet, Share, Task, TaskId};

/// A task that no GPU of this fleet can ever run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("task {task} {}", self.why())]
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
    /// What it asks for that cannot be had.
    pub fn why(&self) -> String {
        let RejectedTask { wanted, available, scope, advice, .. } = self;
        match wanted {
            0 => "asks for no GPU; a task has at least 1".to_owned(),
            _ => format!("needs {wanted} GPUs {scope} at most {available}; {advice}"),
        }
    }
}

/// The most memory that a gang of each size can have on each of its GPUs.
#[derive(Clone, Debug)]
pub(crate) struct LargestMemory {
    /// Of all GPUs.
    all: Vec<Bytes>,
    /// Of the models and pools that tasks are bound to.
    by_binding: Vec<(Binding, Vec<Bytes>)>,
}

/// What binds a task to some GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Binding {
    models: Option<ModelSet>,
    pools: Option<PoolSet>,
}

impl Binding {
    fn is_none(self) -> bool {
        self.models.is_none() && self.pools.is_none()
    }

    fn allows(self, gpu: &GpuState) -> bool {
        self.models.is_none_or(|models| models.contains(gpu.model))
            && self.pools.is_none_or(|pools| pools.meets(gpu.pools))
    }
}

impl LargestMemory {
    pub(crate) fn of(gpus: &Gpus, fleet: &Fleet, policy: &Policy) -> Self {
        LargestMemory { all: by_gang(gpus, fleet, policy, |_| true), by_binding: Vec::new() }
    }

    /// Tasks come that may run on some GPUs only.
    fn note(&mut self, binding: Binding, gpus: &Gpus, fleet: &Fleet, policy: &Policy) {
        if self.by_binding.iter().all(|(known, _)| *known != binding) {
            let largest = by_gang(gpus, fleet, policy, |gpu| binding.allows(gpu));
            self.by_binding.push((binding, largest));
        }
    }

    /// For a task with so many GPUs on any models.
    pub(crate) fn of_any(&self, gpus: u32) -> Bytes {
        self.all[gpus as usize - 1]
    }

    /// For a task with so many GPUs, which may be bound to some.
    fn get(&self, gpus: u32, binding: Binding) -> Bytes {
        if binding.is_none() {
            return self.of_any(gpus);
        }
        let bound = self.by_binding.iter().find(|(known, _)| *known == binding);
        let bound = bound.and_then(|(_, all)| all.get(gpus as usize - 1));
        bound.copied().unwrap_or_else(|| self.of_any(gpus))
    }
}

/// For each number of GPUs the memory of the smallest of the largest ones that a task can get at once.
fn by_gang(
    gpus: &Gpus,
    fleet: &Fleet,
    policy: &Policy,
    counts: impl Fn(&GpuState) -> bool,
) -> Vec<Bytes> {
    let memory = |gpu| {
        let state = gpus.get(gpu);
        counts(state).then(|| match (state.share, state.model.mig()) {
            (Share::Mig, Some(table)) => Layout::default().largest_memory(table),
            _ => state.model.memory(),
        })
    };
    let groups: Vec<Vec<Bytes>> = match policy.spans_nodes() {
        true => vec![fleet.ids().filter_map(memory).collect()],
        false => {
            fleet.nodes().iter().map(|node| node.gpus().filter_map(memory).collect()).collect()
        }
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
        let (available, scope, advice) = match (self.state.policy.queue, self.state.policy.place) {
            (Queue::Allox, _) => (1, "at once, allox gives a task", "gangs need another queue"),
            (_, Place::Any | Place::Consolidate) => {
                (self.state.widest, "at once, the fleet has", larger)
            }
            _ => (self.state.widest, "on one node, the fleet has", larger),
        };
        let rejected = |available, scope, advice| {
            Err(RejectedTask { task: task.id, wanted: task.gpus, available, scope, advice })
        };
        if !(1..=available).contains(&task.gpus) {
            return rejected(available, scope, advice);
        }
        let any_model = task.models.is_none() && !self.state.models.matter();
        if any_model && !self.state.holdings.are_limited() {
            return Ok(());
        }
        // What no GPU of its models has is refused here, and cut down to what they have once it is in.
        let record = Record::new(task.clone(), Ticket::FIRST);
        let demand = self.state.demand_within(&record, self.state.largest.of_any(task.gpus));
        if demand.models.is_some() {
            let runs_on = self.state.runs_on(&demand);
            if runs_on < task.gpus {
                let scope = "of kinds that it runs on, it can have";
                return rejected(runs_on, scope, "add GPUs of another kind");
            }
        }
        match self.state.holdings.most(task.user, &demand) {
            Some(most) if most < task.gpus => {
                let scope = "at once, its user's or group's quota of GPUs and memory allows";
                rejected(most, scope, "raise it, or ask for less memory")
            }
            _ => Ok(()),
        }
    }

    /// Whether the pools of a task could ever run it, if they were empty. What waits already waits on when a pool has become
    /// smaller, so this is asked of newcomers only.
    pub fn check_pools(&self, task: &Task) -> Result<(), RejectedTask> {
        let record = Record::new(task.clone(), Ticket::FIRST);
        let largest = self.state.largest.all.get((task.gpus as usize).saturating_sub(1));
        let largest = largest.copied().unwrap_or(Bytes::ZERO);
        let demand = self.state.demand_within(&record, largest);
        let available = self.state.most_at_once(&demand, |state| demand.is_in_pool(state));
        if task.pools.is_none() || available >= task.gpus {
            return Ok(());
        }
        let (scope, advice) =
            ("with memory enough, its pool has", "ask for fewer or less, or name another pool");
        Err(RejectedTask { task: task.id, wanted: task.gpus, available, scope, advice })
    }

    /// The most memory that a task with so many GPUs can have on each of them; none if it has too many.
    pub fn most_memory(&self, gpus: u32) -> Bytes {
        let rank = (gpus as usize).checked_sub(1);
        rank.and_then(|rank| self.state.largest.all.get(rank)).copied().unwrap_or(Bytes::ZERO)
    }
}

impl SchedulerState {
    /// Takes note of the models and pools that a task which comes is bound to.
    pub(crate) fn note_models(&mut self, task: &Task) {
        let binding = Binding { models: self.models.note(task), pools: task.pools };
        if !binding.is_none() {
            self.largest.note(binding, &self.gpus, &self.fleet, &self.policy);
        }
    }

    /// The most memory that a task can have on each of its GPUs.
    pub(crate) fn largest_for(&self, task: &Task) -> Bytes {
        let binding = Binding { models: self.models.allowed(task), pools: task.pools };
        self.largest.get(task.gpus, binding)
    }

    /// Some task may not run on all GPUs.
    pub(crate) fn bindings_matter(&self) -> bool {
        self.models.matter() || self.pools.are_there()
    }

    /// How many GPUs of kinds that it runs on, with memory enough, a task can have at once.
    fn runs_on(&self, demand: &Demand) -> u32 {
        self.most_at_once(demand, |_| true)
    }

    /// It will have GPUs when enough tasks have gone: as many as it needs are neither lost nor drained.
    pub(crate) fn has_gpus_in_service(&self, demand: &Demand) -> bool {
        self.gpus.are_all_in_service()
            || self.most_at_once(demand, |state| !state.is_out() && demand.may_have(state))
                >= demand.gpus
    }

    fn most_at_once(&self, demand: &Demand, counts: impl Fn(&GpuState) -> bool) -> u32 {
        let fits = |&gpu: &GpuId| {
            let state = self.gpus.get(gpu);
            demand.models.is_none_or(|models| models.contains(state.model))
                && demand.need <= state.capacity
                && counts(state)
        };
        match self.policy.spans_nodes() {
            true => self.gpus.ids().filter(fits).count() as u32,
            false => {
                let of_node = |node| self.gpus.of_node(node).filter(fits).count() as u32;
                self.gpus.node_ids().map(of_node).max().unwrap_or(0)
            }
        }
    }
}
