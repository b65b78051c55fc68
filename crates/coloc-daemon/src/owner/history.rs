//! What tasks of the same kind held when they ran before: the first estimator that is asked.

use super::Owner;
use crate::journal::JournalError;
use crate::record::{Moment, Phase, Record, SpecId};
use crate::spec::TaskSpec;
use coloc_estimate::history::History;
use coloc_model::{Bytes, Estimate};
use rustc_hash::FxHashMap;

/// Ended tasks that a restart looks back on.
const LOOK_BACK: u32 = 2000;

/// Notes what a task held at most. Only one that ran to its end has shown all that it needs.
pub(super) fn remember(history: &mut History, record: &Record, spec: &TaskSpec) {
    if record.phase == Phase::Completed && record.peak > Bytes::ZERO {
        history.remember(&spec.signature(), record.peak);
    }
}

impl Owner {
    /// Reads what is remembered from the journal.
    pub(super) fn read_history(&mut self) -> Result<(), JournalError> {
        let mut specs = FxHashMap::<SpecId, TaskSpec>::default();
        let mut ended = self.journal.ended(Moment(0), LOOK_BACK)?;
        ended.reverse();
        for record in &ended {
            let spec = match specs.entry(record.spec) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(unknown) => {
                    unknown.insert(self.journal.spec(record.spec)?)
                }
            };
            remember(&mut self.history, record, spec);
        }
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
