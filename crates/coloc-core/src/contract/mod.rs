//! The memory contract: what is booked for a task, for how long, and which tasks may come beside it.
//!
//! | basis | booked | shrinks | company |
//! |---|---|---|---|
//! | declared | what was declared, on every attempt, for life | never; with `reclaim` it is lent | yes |
//! | estimated | the bound | on evidence, to what was expected | yes |
//! | history | what such tasks were seen to hold, padded | on evidence | yes |
//! | unknown | the whole GPU | on evidence | none until it has settled |
//!
//! Evidence is a plateau of memory over a time in which the task was seen to train (`evidence`). On every GPU the
//! declared floors and the bounds of tasks that have not settled never exceed its memory: [`crate::Scheduler::sanity_check`].

mod death;
pub(crate) mod evidence;
mod export;
mod lending;
mod overtaking;
mod settling;

pub use export::Promised;
pub(crate) use export::limit;
pub(crate) use overtaking::Overtaking;
pub(crate) use settling::Settling;
pub use settling::SettlingCounts;

use crate::belief::{Beliefs, SeenPeak};
use crate::policy::{Contract, Knowledge, Policy};
use crate::tasks::Record;
use coloc_model::{Basis, Bytes, Memory, Share};

/// What a task is promised on each of its GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Promise {
    /// What must be available.
    pub(crate) need: Bytes,
    /// What is booked.
    pub(crate) book: Bytes,
    pub(crate) basis: Basis,
    /// What the user declared: never given away, only lent.
    pub(crate) declared: Bytes,
    /// It has its GPUs to itself until it has settled.
    pub(crate) lone: bool,
}

impl Promise {
    fn of(book: Bytes, basis: Basis) -> Self {
        Promise { need: book, book, basis, declared: Bytes::ZERO, lone: false }
    }
}

/// The row of the table that applies to a task, before anything went wrong with it.
pub(crate) fn promise(
    record: &Record,
    policy: &Policy,
    contract: &Contract,
    beliefs: &Beliefs,
) -> Promise {
    let seen = beliefs.peak(record.task.signature).filter(|_| policy.learn);
    let margin = match policy.knowledge {
        Knowledge::Estimated { margin } => margin,
        Knowledge::Unknown { .. } => Bytes::ZERO,
    };
    let promise = match (record.task.memory, policy.knowledge, seen) {
        (Memory::Declared { bytes, .. }, _, seen) => {
            // What was seen raises a declaration and never lowers it.
            let raised = seen.filter(|seen| seen.exact > bytes).map_or(bytes, |seen| seen.padded);
            Promise { declared: bytes, ..Promise::of(raised, Basis::Declared) }
        }
        (Memory::Estimated { peak, bound }, Knowledge::Estimated { .. }, seen) => {
            let (book, basis) = estimated(peak, bound, seen);
            Promise::of(book + margin, basis)
        }
        (_, _, Some(seen)) => Promise::of(seen.padded + margin, Basis::History),
        _ => unknown(policy, contract, margin),
    };
    let granted = record.attempts.granted;
    Promise { need: promise.need.max(granted), book: promise.book.max(granted), ..promise }
}

/// What is booked for a task with an estimate, of whose kind something may have been seen.
fn estimated(peak: Bytes, bound: Bytes, seen: Option<SeenPeak>) -> (Bytes, Basis) {
    let Some(seen) = seen else { return (bound, Basis::Estimated) };
    // An estimate that covers what was seen may know of what is yet to come, unless many runs speak against it.
    let convinced = seen.exact > bound || seen.convincing;
    let lowered = if convinced { seen.padded } else { seen.padded.max(peak) };
    match lowered {
        lowered if lowered >= bound && seen.exact <= bound => (bound, Basis::Estimated),
        lowered if lowered > seen.padded => (lowered, Basis::Estimated),
        lowered => (lowered, Basis::History),
    }
}

fn unknown(policy: &Policy, contract: &Contract, margin: Bytes) -> Promise {
    let blind = match policy.knowledge {
        Knowledge::Estimated { .. } => margin,
        Knowledge::Unknown { min_free } => min_free,
    };
    match contract.unknown_instance {
        _ if contract.share_blind => Promise::of(blind, Basis::Unknown),
        // Partitions keep others safe, whatever it holds.
        Some(instance) if policy.share == Share::Mig => Promise::of(instance, Basis::Unknown),
        _ => {
            let whole = Promise::of(Bytes::MAX, Basis::Unknown);
            Promise { need: Bytes::ZERO, lone: true, ..whole }
        }
    }
}
