//! Time limits: what tasks may have, and another one for a task that runs.

use crate::administration::TimeLimits;
use crate::owner::commands::invalid::Invalid;
use crate::owner::{Caller, Live, Owner, Refused};
use crate::record::Uid;
use coloc_api::spec::{TaskSpec, TaskUpdate};
use coloc_model::{Millis, TaskId};

impl Owner {
    /// How long a task of this submission may run.
    pub(in crate::owner) fn times_of(&self, owner: Uid, spec: &TaskSpec) -> TimeLimits {
        let pool = self.pools_of(owner, spec).and_then(|pools| self.pool_table.max_time(pools));
        self.settings.administration.times.within(pool)
    }

    /// Whether a task may have the time limit that its submission has.
    pub(in crate::owner) fn check_time_limit(
        &self,
        owner: Uid,
        spec: &TaskSpec,
    ) -> Result<(), Refused> {
        let times = self.times_of(owner, spec);
        match times.largest.filter(|_| !times.allow(spec.time_limit)) {
            Some(largest) => Err(Refused::LongTimeLimit { largest }),
            None => Ok(()),
        }
    }

    /// Whether a user may give a task the time limit of a changed submission. Of a task that runs, its owner may make it
    /// shorter: others count on when it ends, so that only an administrator makes it longer.
    pub(in crate::owner) fn may_limit(
        &self,
        caller: Caller,
        live: &Live,
        update: &TaskUpdate,
        spec: &TaskSpec,
    ) -> Result<(), Refused> {
        let (task, phase) = (live.record.id, live.record.phase);
        if !update.limits_time() {
            return Ok(());
        }
        if update.time_limit_change_ms.is_some() && spec.time_limit.is_none() {
            return Err(Invalid::NoTimeLimit(task).into());
        }
        self.check_time_limit(live.record.owner, spec)?;
        if let (Some(limit), Some(warning)) = (spec.time_limit, spec.warning)
            && warning.before >= limit
        {
            return Err(Invalid::EarlyWarning { before: warning.before, limit }.into());
        }
        if !phase.is_on_gpus() {
            return Ok(());
        }
        if live.ending.is_some() || live.record.intent.is_some() {
            let advice = "it is about to go, and its time limit changes nothing any more";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        let longer = |limit: Option<Millis>| limit.map_or(u64::MAX, |limit| limit.0);
        if longer(spec.time_limit) > longer(live.spec.time_limit) && !caller.admin {
            return Err(Refused::LongerWhileRunning(task));
        }
        let ran = self.ran(live);
        if let Some(limit) = spec.time_limit.filter(|&limit| limit <= ran) {
            return Err(Invalid::TimeLimitPassed { task, ran, limit }.into());
        }
        match self.executor.can_change_time_limit(&live.record) {
            true => Ok(()),
            false => {
                let advice =
                    "an earlier version of coloc started it, and its time limit stays what it was";
                Err(Refused::WrongPhase { task, phase, advice })
            }
        }
    }

    /// How long the attempt that runs has run, in the tasks' time.
    fn ran(&self, live: &Live) -> Millis {
        let started = live.record.started.map(|started| self.clock.time(started));
        started.map_or(Millis::ZERO, |started| self.clock.now().since(started))
    }

    /// A running task has another time limit: its shim hears of it once that is on the disk.
    pub(in crate::owner) fn time_limit_changed(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.limit_changed = true;
        let (attempt, limit) = (live.record.attempt, live.spec.time_limit);
        self.to_limit.push((task, attempt));
        self.overdue.forget(task);
        self.mind_time_limit(task);
        match limit {
            Some(limit) => tracing::info!(task = task.0, "has a time limit of {limit} now"),
            None => tracing::info!(task = task.0, "has no time limit any more"),
        }
    }

    /// Tells shims of time limits that are on the disk. What cannot be told now is told in a moment.
    pub(in crate::owner) fn send_limits(&mut self) {
        for (task, attempt) in std::mem::take(&mut self.to_limit) {
            let live = self.tasks.get(&task).filter(|live| live.runs_attempt(attempt));
            let Some(live) = live else { continue };
            if let Err(error) = self.executor.set_time_limit(&live.record, &live.spec) {
                tracing::warn!(task = task.0, "cannot tell its shim of its time limit: {error}");
                self.to_limit.push((task, attempt));
                self.wake_at = self.wake_at.min(self.clock.now() + Millis::from_secs(1));
            }
        }
    }
}
