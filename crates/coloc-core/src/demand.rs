//! The estimate stage: what a task needs of each GPU, from what is known of it.

use crate::belief::Beliefs;
use crate::contract::{self, Promise};
use crate::policy::{Knowledge, OnOom, Pack, Policy};
use crate::scheduler::SchedulerState;
use crate::tasks::Record;
use coloc_model::{
    Basis, Bytes, InterferenceProfile, Memory, Millis, ModelSet, PoolSet, Share, Task, TaskId,
    UserId,
};

/// What placement asks of a GPU for one task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Demand {
    /// The task.
    pub task: TaskId,
    /// Its user.
    pub user: UserId,
    /// How many GPUs, all at once.
    pub gpus: u32,
    /// Memory that must be available on each.
    pub need: Bytes,
    /// What the task is known to want, because it died for want of it.
    pub floor: Bytes,
    /// Memory that will be promised on each.
    pub book: Bytes,
    /// What that rests on.
    pub basis: Basis,
    /// What the user declared, where that is a promise.
    pub declared: Bytes,
    /// It may have memory that others lend.
    pub borrows: bool,
    /// Expected SM demand on each, in devices.
    pub load: f64,
    /// How it takes neighbours, and is one.
    pub interference: InterferenceProfile,
    /// The least that what two tasks do to each other can be, of the usual.
    pub least_factor: f64,
    /// How long it is expected to run, if such a task has been seen.
    pub run_time: Option<Millis>,
    /// GPU models that it may run on; `None` where it may run on all of the fleet.
    pub models: Option<ModelSet>,
    /// Pools whose GPUs it may have; `None` where it may have all.
    pub pools: Option<PoolSet>,
    /// How it shares them.
    pub share: Share,
    /// The GPUs must be empty.
    pub idle_only: bool,
    /// No other task may join later.
    pub alone: bool,
    /// A gang waits for as few nodes as possible.
    pub packed: bool,
    /// Estimates and utilization are not looked at: CARMA's dispatch to idle GPUs.
    pub blind: bool,
}

impl Demand {
    /// The least that a task can ask of a GPU.
    pub(crate) fn least(user: UserId, idle_only: bool) -> Demand {
        Demand {
            task: TaskId(u32::MAX),
            user,
            gpus: 1,
            need: Bytes(1),
            floor: Bytes::ZERO,
            book: Bytes(1),
            basis: Basis::Declared,
            declared: Bytes::ZERO,
            borrows: false,
            load: 0.0,
            interference: InterferenceProfile::default(),
            least_factor: 1.0,
            run_time: None,
            models: None,
            pools: None,
            share: Share::Exclusive,
            idle_only,
            alone: false,
            packed: false,
            blind: false,
        }
    }

    /// What `record`'s task needs under `policy`. No task needs more than `largest`, the memory of the
    /// largest GPUs that it can get: asking for more means asking for whole devices. `whole`: its pool gives it whole ones.
    pub(crate) fn of(
        record: &Record,
        policy: &Policy,
        beliefs: &Beliefs,
        largest: Bytes,
        whole: bool,
    ) -> Demand {
        let task = &record.task;
        let Promise { need, book, basis, declared, lone } = match &policy.contract {
            Some(contract) => contract::promise(record, policy, contract, beliefs),
            None => memory(record, policy, beliefs),
        };
        let alone = task.exclusive || whole || record.attempts.last_resort || lone;
        let whole_device = alone || policy.needs_idle();
        Demand {
            task: task.id,
            user: task.user,
            gpus: task.gpus,
            need: need.min(largest),
            floor: record.attempts.wanted.unwrap_or_default().min(largest),
            book: if alone { largest } else { book.min(largest) },
            basis,
            declared: declared.min(largest),
            borrows: task.borrows && policy.contract.is_some(),
            // An instance that is too large for a task is not shared with others.
            load: match policy.share {
                Share::Mig => beliefs.sm_demand(task.signature, task.sm),
                _ => beliefs.shared_sm_demand(task.signature, task.sm),
            },
            interference: beliefs.interference(task.signature),
            least_factor: beliefs.least_factor(),
            run_time: beliefs.run_time(task.signature),
            models: None,
            pools: task.pools,
            share: policy.share,
            idle_only: whole_device || record.attempts.idle_retry,
            alone,
            packed: true,
            blind: false,
        }
    }

    /// Memory that will be promised on all of them.
    pub(crate) fn gang_memory(&self) -> Bytes {
        Bytes(self.book.0.saturating_mul(u64::from(self.gpus)))
    }

    /// The same task on idle GPUs, whatever their memory.
    #[must_use]
    pub fn on_idle(self) -> Demand {
        Demand { idle_only: true, blind: true, ..self }
    }
}

impl SchedulerState {
    pub(crate) fn demand(&self, task: TaskId) -> Demand {
        self.demand_of(self.tasks.live(task))
    }

    pub(crate) fn demand_of(&self, record: &Record) -> Demand {
        self.demand_within(record, self.largest_for(&record.task))
    }

    /// What a task needs where the largest GPU has so much memory.
    pub(crate) fn demand_within(&self, record: &Record, largest: Bytes) -> Demand {
        let packed = self.packs(&record.task);
        let models = self.models.allowed(&record.task);
        let (policy, whole) = (self.policy_for(&record.task), self.has_whole_gpus(&record.task));
        Demand { packed, models, ..Demand::of(record, &policy, &self.beliefs, largest, whole) }
    }

    /// A task waits for as few nodes as possible.
    fn packs(&self, task: &Task) -> bool {
        let limit = match self.policy.pack {
            Pack::Always => return true,
            Pack::Never => return false,
            Pack::Skew(limit) => limit,
        };
        task.gpus <= self.widest_node
            || self.skews.get(&task.signature).is_none_or(|&skew| skew > limit)
    }
}

/// Without a contract: what must be free for a task, and what it is promised until it was watched for a minute.
fn memory(record: &Record, policy: &Policy, beliefs: &Beliefs) -> Promise {
    let (margin, unknown) = match policy.knowledge {
        Knowledge::Estimated { margin } => (margin, Bytes::ZERO),
        Knowledge::Unknown { min_free } => (Bytes::ZERO, min_free),
    };
    let estimated = match policy.knowledge {
        Knowledge::Estimated { .. } => record.task.memory.bound(),
        Knowledge::Unknown { .. } => None,
    };
    let seen_before = beliefs.peak(record.task.signature).filter(|_| policy.learn);
    let bound = match (seen_before, estimated) {
        // An estimate that covers what was seen may still know better than a padded sighting.
        (Some(seen), Some(bound)) if bound >= seen.exact => Some(bound.min(seen.padded)),
        (Some(seen), _) => Some(seen.padded),
        (None, estimated) => estimated,
    };
    let mut book = bound.unwrap_or(Bytes::ZERO) + margin;
    let mut need = if bound.is_some() { book } else { unknown };
    if bound.is_none() {
        book = unknown;
    }
    if let (Some(wanted), OnOom::Grow { margin }) = (record.attempts.wanted, policy.recovery.on_oom)
    {
        let grown = wanted.scale(1.0 + margin.get());
        need = need.max(grown);
        book = book.max(grown);
    }
    let basis = match record.task.memory {
        _ if bound.is_none() => Basis::Unknown,
        Memory::Declared { .. } => Basis::Declared,
        _ if bound == estimated => Basis::Estimated,
        _ => Basis::History,
    };
    Promise { need, book, basis, declared: Bytes::ZERO, lone: false }
}
