//! CPUs and memory of the machine: what tasks that run asked for, and whether another one still fits.
//!
//! Only what was asked for is counted. A task that asked for nothing takes what is left, as on any machine, and is never
//! refused here. Where no capacity is known, as in simulations, nothing is.

use crate::scheduler::{Scheduler, SchedulerState};
use coloc_model::{Bytes, HostNeed, TaskId, Time};
use serde::Serialize;
use std::fmt;

/// What the machine has for tasks; what has no number is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct HostCapacity {
    /// CPUs.
    pub cpus: Option<u32>,
    /// Memory.
    pub memory: Option<Bytes>,
}

/// Why the machine cannot take a task now, whatever its GPUs say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum HostRefusal {
    /// Tasks that run asked for too many of its CPUs.
    HostCpus {
        /// What the task asks for.
        need: u32,
        /// What no task that runs asked for.
        available: u32,
        /// What there is.
        total: u32,
    },
    /// Tasks that run asked for too much of its memory.
    HostMemory {
        /// What the task asks for.
        need: Bytes,
        /// What no task that runs asked for.
        available: Bytes,
        /// What there is.
        total: Bytes,
    },
    /// Another task has waited too long for CPUs or memory: what comes free is kept for it.
    HostReserved {
        /// That task.
        reserved_for: TaskId,
    },
}

impl HostRefusal {
    /// The task alone asks for more than there is: it will never start.
    pub fn is_for_ever(&self) -> bool {
        match *self {
            HostRefusal::HostCpus { need, total, .. } => need > total,
            HostRefusal::HostMemory { need, total, .. } => need > total,
            HostRefusal::HostReserved { .. } => false,
        }
    }
}

impl fmt::Display for HostRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            HostRefusal::HostCpus { need, available, total } => {
                write!(f, "asks for {need} CPUs, and {available} of the machine's {total} are free")
            }
            HostRefusal::HostMemory { need, available, total } => {
                write!(
                    f,
                    "asks for {need} of host memory, and {available} of the machine's {total} are free"
                )
            }
            HostRefusal::HostReserved { reserved_for } => {
                write!(
                    f,
                    "the machine's CPUs and memory are kept for task {reserved_for}, which has waited too long"
                )
            }
        }
    }
}

/// What tasks that run asked for.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct HostAccount {
    capacity: HostCapacity,
    used: HostNeed,
    /// A task that waited too long: others that ask for something wait behind it.
    kept_for: Option<TaskId>,
}

impl HostAccount {
    pub(crate) fn new(capacity: HostCapacity) -> Self {
        HostAccount { capacity, ..HostAccount::default() }
    }

    /// Something is counted.
    pub(crate) fn is_limited(&self) -> bool {
        self.capacity != HostCapacity::default()
    }

    pub(crate) fn take(&mut self, need: HostNeed) {
        self.used.cpus = self.used.cpus.saturating_add(need.cpus);
        self.used.memory = Bytes(self.used.memory.0.saturating_add(need.memory.0));
    }

    pub(crate) fn give_back(&mut self, need: HostNeed) {
        self.used.cpus = self.used.cpus.saturating_sub(need.cpus);
        self.used.memory = self.used.memory.saturating_sub(need.memory);
    }

    /// Whether it fits beside what others asked for.
    fn short_of(&self, need: HostNeed) -> Option<HostRefusal> {
        if let Some(total) = self.capacity.cpus {
            let available = total.saturating_sub(self.used.cpus);
            if need.cpus > available {
                return Some(HostRefusal::HostCpus { need: need.cpus, available, total });
            }
        }
        let total = self.capacity.memory?;
        let available = total.saturating_sub(self.used.memory);
        (need.memory > available).then_some(HostRefusal::HostMemory {
            need: need.memory,
            available,
            total,
        })
    }

    pub(crate) fn refusal(&self, task: TaskId, need: HostNeed) -> Option<HostRefusal> {
        if need.is_none() || !self.is_limited() {
            return None;
        }
        let kept = self.kept_for.filter(|&first| first != task);
        let kept = kept.map(|reserved_for| HostRefusal::HostReserved { reserved_for });
        self.short_of(need).or(kept)
    }

    /// The task that what comes free was kept for is gone, or has started.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.kept_for.take_if(|kept| *kept == task);
    }
}

impl Scheduler {
    /// What the machine has for tasks. Must be said before anything is submitted.
    #[must_use]
    pub fn with_host(mut self, capacity: HostCapacity) -> Self {
        self.state.host = HostAccount::new(capacity);
        self
    }

    /// What the machine has for tasks, and what those that run asked for.
    pub fn host(&self) -> (HostCapacity, HostNeed) {
        (self.state.host.capacity, self.state.host.used)
    }

    /// Whether the machine could ever give so much, if nothing ran.
    pub fn check_host(&self, need: HostNeed) -> Result<(), HostRefusal> {
        match HostAccount::new(self.state.host.capacity).short_of(need) {
            Some(refusal) => Err(refusal),
            None => Ok(()),
        }
    }
}

impl SchedulerState {
    /// Why the machine cannot take a task now, whatever its GPUs say.
    pub(crate) fn host_refusal(&self, task: TaskId) -> Option<HostRefusal> {
        if !self.host.is_limited() {
            return None;
        }
        self.host.refusal(task, self.tasks.live(task).task.host)
    }

    /// A task may not start now, however many GPUs are free: because of a quota, or of the machine's CPUs and memory.
    pub(crate) fn is_barred(&self, task: TaskId) -> bool {
        self.over_quota(task).is_some() || self.host_refusal(task).is_some()
    }

    /// Tasks are looked at one by one, because some may be barred.
    pub(crate) fn bars_some(&self) -> bool {
        self.holdings.are_limited() || self.host.is_limited()
    }

    /// Keeps CPUs and memory that come free for the first task that has waited too long for them.
    pub(crate) fn keep_host_for_the_starving(&mut self, now: Time) {
        let Some(limit) = self.policy.starvation_limit else { return };
        if !self.host.is_limited() || self.host.kept_for.is_some() {
            return;
        }
        let starves = |&task: &TaskId| {
            let record = self.tasks.live(task);
            !record.task.host.is_none()
                && now.since(record.ticket.submitted) >= limit
                && self.over_quota(task).is_none()
                && self.host.short_of(record.task.host).is_some()
        };
        self.host.kept_for = self.waiting.iter().find(starves);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn need(cpus: u32, gib: u64) -> HostNeed {
        HostNeed { cpus, memory: Bytes(gib * GIB) }
    }

    #[test]
    fn what_was_asked_for_is_counted_and_given_back() {
        let capacity = HostCapacity { cpus: Some(8), memory: Some(Bytes(32 * GIB)) };
        let mut host = HostAccount::new(capacity);
        host.take(need(6, 8));
        let refusal = host.refusal(TaskId(2), need(3, 1));
        assert_eq!(refusal, Some(HostRefusal::HostCpus { need: 3, available: 2, total: 8 }));
        assert_eq!(
            refusal.map(|no| no.to_string()).as_deref(),
            Some("asks for 3 CPUs, and 2 of the machine's 8 are free")
        );
        let refusal = host.refusal(TaskId(2), need(2, 25)).expect("24 GiB are free");
        assert!(matches!(refusal, HostRefusal::HostMemory { .. }) && !refusal.is_for_ever());
        assert_eq!(host.refusal(TaskId(2), need(2, 24)), None);
        assert_eq!(host.refusal(TaskId(2), HostNeed::NONE), None, "it asks for nothing");
        host.give_back(need(6, 8));
        assert_eq!(host.refusal(TaskId(2), need(8, 32)), None);
        assert!(host.short_of(need(9, 0)).is_some_and(|no| no.is_for_ever()));
    }

    #[test]
    fn without_a_number_nothing_is_refused() {
        let mut host = HostAccount::default();
        host.take(need(u32::MAX, 1));
        host.take(need(u32::MAX, 1));
        assert!(!host.is_limited() && host.refusal(TaskId(1), need(1000, 1000)).is_none());
        let cpus = HostCapacity { cpus: Some(4), memory: None };
        assert_eq!(HostAccount::new(cpus).refusal(TaskId(1), need(4, 1000)), None);
    }
}
