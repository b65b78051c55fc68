//! A scheduler in the place of another: what the old one learned is not learned again.

use crate::contract::Promised;
use crate::queue::ranked::ServiceRecord;
use crate::scheduler::Scheduler;
use crate::tasks::{Attempts, Record};
use coloc_model::{Bytes, SignatureId, TaskId, Time, UserId};

impl Scheduler {
    /// Is told that a user had this part of the GPUs from then until then, before this scheduler was there.
    pub fn recall(&mut self, now: Time, user: UserId, share: f64, from: Time, to: Time) {
        self.state.holdings.recall(now, user, share, from, to);
    }

    /// Is told what the attempts of a task showed before this scheduler was there, or before it was submitted again. Must
    /// be said before the task is submitted or adopted.
    pub fn recall_attempts(&mut self, task: TaskId, attempts: Attempts) {
        if self.state.tasks.get(task).is_none() {
            self.state.past.entry(task).or_default().attempts = attempts;
        }
    }

    /// Is told what a run of that kind held that settled or completed before this scheduler was there.
    pub fn recall_peak(&mut self, signature: SignatureId, run: TaskId, peak: Bytes) {
        if self.state.policy.contract.is_some() && self.state.policy.learn {
            self.state.beliefs.teach_peak(signature, run, peak, true);
        }
    }

    /// What the attempts of a task so far showed of its memory; `None` once it has ended.
    pub fn attempts(&self, task: TaskId) -> Option<Attempts> {
        self.state.tasks.get(task).map(|record| record.attempts)
    }

    /// Takes over what another scheduler of the same fleet learned: of kinds of tasks, of what users have had, and of
    /// what each task has had that will be submitted again or adopted.
    pub fn remember(&mut self, now: Time, past: &Scheduler) {
        self.totals = past.totals.clone();
        let promised = |task| past.promised(task);
        let (scheduler, past) = (&mut self.state, &past.state);
        scheduler.beliefs = past.beliefs.clone();
        scheduler.speeds_seen = past.speeds_seen.clone();
        scheduler.ranked.history.remember(&past.ranked.history);
        scheduler.holdings.remember(now, &past.holdings);
        for (gpu, state) in past.gpus.iter() {
            scheduler.gpus.see_foreign(gpu, state.foreign);
            scheduler.gpus.set_there(gpu, !state.lost);
            scheduler.gpus.set_drained(gpu, state.drained);
            scheduler.gpus.set_kept_for(gpu, state.kept_for.clone());
        }
        let of = |record: &Record| {
            let mut service_record = record.service_record;
            if record.run.is_some() {
                service_record.preempted(now);
            }
            // Without a contract nothing was promised that would have to be kept.
            let kept = record.run.as_ref().filter(|_| past.policy.contract.is_some());
            let promised = kept.and_then(|_| promised(record.task.id));
            (record.task.id, Past { service_record, promised, attempts: record.attempts })
        };
        scheduler.past = past.tasks.iter().map(of).collect();
    }
}

/// What a task had under another scheduler.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Past {
    pub(crate) service_record: ServiceRecord,
    pub(crate) promised: Option<Promised>,
    pub(crate) attempts: Attempts,
}
