//! What the journal tells of ended tasks: what tasks of one kind held, which is the first estimator that is asked, and
//! what their users have had.

use super::Owner;
use super::today::Today;
use crate::journal::JournalError;
use crate::past;
use crate::record::{Record, Uid};
use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_model::{Bytes, Estimate, GpuId, Placement, Time, UserId};

impl Owner {
    /// Reads what is remembered from the journal.
    pub(super) fn read_history(&mut self) -> Result<(), JournalError> {
        let now = self.clock.now();
        self.today = Today::read(&self.journal, self.clock.world_now())?;
        for (record, spec) in past::look_back(&self.journal)? {
            past::remember(&mut self.history, &record, &spec);
            self.today.judge(&record, &spec);
            if past::showed_its_peak(&record) {
                let signature = self.names.number(spec.signature());
                self.scheduler.recall_peak(signature, record.id, record.peak);
            }
            self.recall(now, &record, &spec, record.left_its_gpus());
        }
        Ok(())
    }

    /// Has the scheduler remember what a user had before it was there. What a task was charged is not written down; what it
    /// was promised, or held, and how busy it was come near to it.
    pub(super) fn recall(
        &mut self,
        now: Time,
        record: &Record,
        spec: &TaskSpec,
        until: Option<Moment>,
    ) {
        let (Some(started), Some(until)) = (record.started, until) else { return };
        let (started, until) = (self.clock.time(started), self.clock.time(until));
        let alone = spec.exclusive || self.scheduler.policy().needs_idle();
        let sm = record.usage.activity_alone().map_or(0.0, |activity| activity.sm.get());
        let memory = spec.gpu_memory.or(spec.estimate.map(|e| e.bound)).unwrap_or_default();
        let memory = memory.max(record.peak);
        let part = |gpu: GpuId| {
            let capacity = self.fleet.gpu(gpu).model.memory();
            let share = memory.0 as f64 / capacity.0.max(1) as f64;
            if alone { 1.0 } else { share.max(sm).min(1.0) }
        };
        let gpus = record.placement.iter().flat_map(Placement::gpus);
        let share = gpus.filter(|gpu| gpu.index() < self.fleet.len()).map(part).sum();
        let user = self.user(record.owner);
        self.scheduler.recall(now, user, share, started, until);
    }

    /// The scheduler's number of a user; a new one gets the weight and quotas of the account table.
    pub(super) fn user(&mut self, owner: Uid) -> UserId {
        let (user, new) = self.names.user(owner.0);
        if new {
            self.scheduler.agree(user, self.account_table.account(owner));
            self.keep_reserved_gpus_for(user, owner);
        }
        user
    }

    /// Asks the history, unless the user says what the task needs. What was seen is better than what its
    /// layers tell; how busy it keeps a GPU is still the other's word. By the contract the scheduler itself weighs what it
    /// saw against an estimate.
    pub(super) fn estimate(&self, spec: &mut TaskSpec) {
        let weighed = self.scheduler.policy().contract.is_some() && spec.estimate.is_some();
        if spec.gpu_memory.is_none()
            && !weighed
            && let Some(seen) = self.history.estimate(&spec.signature())
        {
            let sm = spec.estimate.and_then(|estimate| estimate.sm);
            spec.estimate = Some(Estimate { sm, ..Estimate::from(&seen) });
            spec.estimator = Some(seen.estimator.to_owned());
            // The doubts were about another's word.
            spec.estimate_flags.clear();
        }
        // A limit of less than a process needs would be none, whatever an estimator says.
        if let Some(estimate) = &mut spec.estimate {
            estimate.bound = estimate.bound.max(super::commands::submit::LEAST_MEMORY);
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
