//! Bringing back tasks that ran out of memory.

use crate::place::Search;
use crate::policy::OnOom;
use crate::scheduler::{Turn, World};
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

impl World {
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
        if rules.on_oom == OnOom::Fail || record.ooms >= rules.retries || record.last_resort {
            return false;
        }
        record.ooms += 1;
        record.wanted = record.wanted.max(Some(wanted));
        match rules.on_oom {
            OnOom::Fail => {}
            OnOom::Exclusive => record.idle_retry = true,
            OnOom::Grow { .. } => record.last_resort = record.ooms == rules.retries,
        }
        self.recovery.tasks.push_back(task);
        // Nobody that GPUs are kept for could start before it.
        if rules.stops_others && self.reserved.is_some() {
            self.reserve_for(Time::START, None);
        }
        true
    }

    /// Recovered tasks go first. They are few, so each is tried everywhere.
    pub(crate) fn run_recovery(&mut self, turn: &mut Turn) {
        let waiting: Vec<TaskId> = self.recovery.iter().collect();
        for task in waiting {
            if turn.is_over() {
                break;
            }
            if self.over_quota(task).is_some() {
                continue;
            }
            let started = self.try_start(turn, task, Search::Everywhere);
            if !started && self.policy.recovery.stops_others {
                break;
            }
        }
    }
}
