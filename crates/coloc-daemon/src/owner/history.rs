//! What tasks of the same kind held when they ran before: the first estimator that is asked.

use super::Owner;
use crate::journal::JournalError;
use crate::past;
use crate::spec::TaskSpec;
use coloc_model::{Bytes, Estimate};

impl Owner {
    /// Reads what is remembered from the journal.
    pub(super) fn read_history(&mut self) -> Result<(), JournalError> {
        self.history = past::history(&self.journal)?;
        Ok(())
    }

    /// Asks the history, unless the user says what the task needs. What was seen is better than what its
    /// layers tell; how busy it keeps a GPU is still the other's word.
    pub(super) fn estimate(&self, spec: &mut TaskSpec) {
        if spec.gpu_memory.is_none()
            && let Some(seen) = self.history.estimate(&spec.signature())
        {
            let sm = spec.estimate.and_then(|estimate| estimate.sm);
            spec.estimate = Some(Estimate { sm, ..Estimate::from(&seen) });
            spec.estimator = Some(seen.estimator.to_owned());
        }
        // More than the device has cannot be held on it, and must not keep the task from it.
        let largest = self.scheduler.most_memory(spec.gpus);
        if let Some(estimate) = &mut spec.estimate
            && largest > Bytes::ZERO
        {
            estimate.bound = estimate.bound.min(largest.max(estimate.peak));
        }
    }
}
