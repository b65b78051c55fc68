//! A task that has not ended, as its owner has it.

use crate::record::Record;
use coloc_api::spec::TaskSpec;
use coloc_model::TaskState;
use std::sync::Arc;

/// A task that has not ended.
#[derive(Clone, Debug)]
pub(in crate::owner) struct Live {
    pub(in crate::owner) record: Record,
    pub(in crate::owner) spec: Arc<TaskSpec>,
    /// The scheduler knows it.
    pub(in crate::owner) in_core: bool,
    /// What its end will be called, once the scheduler lets go of it.
    pub(in crate::owner) ending: Option<Ending>,
}

impl Live {
    /// This attempt of it has, or may have, processes.
    pub(in crate::owner) fn runs_attempt(&self, attempt: u32) -> bool {
        self.record.phase.is_on_gpus() && self.record.attempt == attempt
    }
}

/// What becomes of a task when the scheduler lets go of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::owner) enum Ending {
    /// It is over.
    Over(TaskState),
    /// It is submitted again.
    Again,
}
