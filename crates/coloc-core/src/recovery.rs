//! Bringing back tasks that ran out of memory.

use crate::place::Search;
use crate::policy::OnOom;
use crate::scheduler::{Pass, SchedulerState};
use crate::tasks::Attempts;
use coloc_model::{Bytes, TaskId, Time};
use std::collections::VecDeque;

/// Tasks that wait for another try, in the order in which they died.
#[derive(Clone, Default, Debug)]
pub(crate) struct RecoveryQueue {
    tasks: VecDeque<TaskId>,
}

impl RecoveryQueue {
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.tasks.iter().copied()
    }

    /// Puts a task back that was to be launched.
    pub(crate) fn come_back(&mut self, task: TaskId) {
        self.tasks.push_front(task);
    }

    pub(crate) fn remove(&mut self, task: TaskId) {
        self.tasks.retain(|&waiting| waiting != task);
    }
}

impl SchedulerState {
    /// Puts a task that ran out of memory in the recovery queue; says no if it has had its tries.
    pub(crate) fn recover(&mut self, task: TaskId, wanted: Bytes) -> bool {
        let rules = self.policy.recovery;
        let signature = self.tasks.live(task).task.signature;
        if self.policy.learn {
            self.beliefs.learn_peak(signature, wanted);
            // Others of its kind now ask for more than they were refused for.
            self.forget_refusals();
        }
        let Some(record) = self.tasks.get_mut(task) else { return false };
        if rules.on_oom == OnOom::Fail
            || record.attempts.ooms >= rules.retries
            || record.attempts.last_resort
        {
            return false;
        }
        record.attempts.ooms += 1;
        record.attempts.wanted = record.attempts.wanted.max(Some(wanted));
        match rules.on_oom {
            OnOom::Fail => {}
            OnOom::Exclusive => record.attempts.idle_retry = true,
            OnOom::Grow { .. } => {
                record.attempts.last_resort = record.attempts.ooms == rules.retries
            }
        }
        self.wait_to_recover(task);
        true
    }

    /// A task that was just submitted had attempts before. If it ran out of memory it waits in the recovery queue.
    pub(crate) fn recall_attempts(&mut self, task: TaskId, attempts: Attempts) {
        if attempts.is_recovering() {
            self.leave_queue(task);
        }
        if let Some(record) = self.tasks.get_mut(task) {
            record.attempts = attempts;
        }
        if attempts.is_recovering() {
            self.wait_to_recover(task);
        }
    }

    /// Puts a task in the recovery queue.
    pub(crate) fn wait_to_recover(&mut self, task: TaskId) {
        self.recovery.tasks.push_back(task);
        // A task with a reservation could not start before it.
        if self.policy.recovery.stops_others && self.reserved.is_some() {
            self.reserve_for(Time::START, None);
        }
    }

    /// Recovered tasks go first. They are few, so each is tried everywhere.
    pub(crate) fn run_recovery(&mut self, pass: &mut Pass) {
        let waiting: Vec<TaskId> = self.recovery.iter().collect();
        for task in waiting {
            if pass.is_over() {
                break;
            }
            if self.is_barred(task) {
                continue;
            }
            let started = self.try_start(pass, task, Search::Everywhere);
            if !started && self.policy.recovery.stops_others {
                break;
            }
        }
    }
}
