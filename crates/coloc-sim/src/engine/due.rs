//! What is due on devices.

use super::run_slots::{RunSlot, Stamp};
use coloc_model::TaskId;

/// What happens to a running task. At one time, ends come before memory steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    /// Its work is done.
    Finish,
    /// Its memory takes its next step.
    Grow,
}

/// Something that is due, unless its run slot has another stamp by then. Ordered as it is played: by kind and task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Due {
    pub(super) kind: Kind,
    task: TaskId,
    pub(super) run_slot: RunSlot,
    pub(super) stamp: Stamp,
}

impl Due {
    pub(super) fn finish(task: TaskId, run_slot: RunSlot, stamp: Stamp) -> Self {
        Due { kind: Kind::Finish, task, run_slot, stamp }
    }

    pub(super) fn grow(task: TaskId, run_slot: RunSlot, stamp: Stamp) -> Self {
        Due { kind: Kind::Grow, task, run_slot, stamp }
    }
}
