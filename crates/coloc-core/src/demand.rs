//! The estimate stage: what a task needs of each GPU, from what is known of it.

use crate::belief::{Beliefs, Temper};
use crate::kinds::Barred;
use crate::policy::{Knowledge, OnOom, Policy};
use crate::tasks::Record;
use coloc_model::{Bytes, Millis, TaskId, UserId};

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
    /// Expected SM demand on each, in devices.
    pub load: f64,
    /// How it takes neighbours, and is one.
    pub temper: Temper,
    /// The least that what two tasks do to each other can be, of the usual.
    pub mildness: f64,
    /// How long it is expected to run, if such a task has been seen.
    pub run_time: Option<Millis>,
    /// Kinds of device that it does not run on.
    pub barred: Barred,
    /// The GPUs must be empty.
    pub idle_only: bool,
    /// Nobody may join later.
    pub alone: bool,
    /// A gang waits for as few nodes as possible.
    pub packed: bool,
    /// Estimates and utilization are not looked at: CARMA's dispatch to idle GPUs.
    pub blind: bool,
}

impl Demand {
    /// What `record`'s task needs under `policy`. No task needs more than `largest`, the memory of the
    /// largest GPUs that it can get: asking for more means asking for whole devices.
    pub(crate) fn of(
        record: &Record,
        policy: &Policy,
        beliefs: &Beliefs,
        largest: Bytes,
    ) -> Demand {
        let task = &record.task;
        let (need, book) = memory(record, policy, beliefs);
        let alone = task.exclusive || record.last_resort;
        let whole_device = alone || policy.needs_idle();
        Demand {
            task: task.id,
            user: task.user,
            gpus: task.gpus,
            need: need.min(largest),
            floor: record.wanted.unwrap_or_default().min(largest),
            book: if alone { largest } else { book.min(largest) },
            load: beliefs.sm_demand(task.signature, task.estimate.and_then(|e| e.sm)),
            temper: beliefs.temper(task.signature),
            mildness: beliefs.mildness(),
            run_time: beliefs.run_time(task.signature),
            barred: Barred::default(),
            idle_only: whole_device || record.idle_retry,
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

/// What must be free for a task, and what it is promised.
fn memory(record: &Record, policy: &Policy, beliefs: &Beliefs) -> (Bytes, Bytes) {
    let (margin, unknown) = match policy.knowledge {
        Knowledge::Estimated { margin } => (margin, Bytes::ZERO),
        Knowledge::Unknown { min_free } => (Bytes::ZERO, min_free),
    };
    let estimated = match policy.knowledge {
        Knowledge::Estimated { .. } => record.task.estimate.map(|estimate| estimate.bound),
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
    if let (Some(wanted), OnOom::Grow { margin }) = (record.wanted, policy.recovery.on_oom) {
        let grown = wanted.scale(1.0 + margin.get());
        need = need.max(grown);
        book = book.max(grown);
    }
    (need, book)
}
