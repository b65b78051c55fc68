//! A task that has not ended, as the owner has it.

use crate::record::Record;
use coloc_api::spec::TaskSpec;
use coloc_model::TaskState;
use std::sync::Arc;

/// A task that has not ended.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) record: Record,
    pub(super) spec: Arc<TaskSpec>,
    /// The scheduler knows it.
    pub(super) in_core: bool,
    /// What its end will be called, once the scheduler lets go of it.
    pub(super) ending: Option<Ending>,
}

impl Live {
    /// This attempt of it has, or may have, processes.
    pub(super) fn runs_attempt(&self, attempt: u32) -> bool {
        self.record.phase.is_on_gpus() && self.record.attempt == attempt
    }
}

/// What becomes of a task when the scheduler lets go of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It is over.
    Over(TaskState),
    /// It is submitted again.
    Again,
}
