//! The running tasks of a preemptive discipline, and their order: ranks change with time, so a pass begins
//! by putting them in order.

use super::order_key::{Group, OrderKey, TieBreak};
use super::{Asks, Ranked, ServiceRecord, levels, rank, simulator};
use crate::policy::{Policy, Queue};
use crate::service::RuleSet;
use crate::tasks::Record;
use coloc_model::{TaskId, Time};

/// A running task in its place, with what its rank is worked out from: its service record does not change while
/// it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) order_key: OrderKey,
    pub(super) task: TaskId,
    pub(super) asks: Asks,
    pub(super) service_record: ServiceRecord,
    /// It is on its way out, so that there is nothing to preempt.
    pub(super) cancelled: bool,
}

impl Running {
    pub(super) fn new(order_key: OrderKey, record: &Record) -> Self {
        let (asks, service_record) = (Asks::of(record), record.service_record);
        Running { order_key, task: record.task.id, asks, service_record, cancelled: false }
    }
}

impl Ranked {
    /// Gives each running task its place as of now; among equals they keep their order.
    pub(super) fn put_in_order(&mut self, now: Time, policy: &Policy, contended: bool) {
        // Under sjf no task is preempted. Where none waits, the order matters only if ranks may cross and be equal
        // again before one does.
        if policy.queue == Queue::Sjf || !(contended || levels::change_all_the_time(policy)) {
            return;
        }
        let Ranked { running, history, epoch, .. } = self;
        for (index, task) in (0..).zip(running.iter_mut()) {
            let Running { asks, service_record, .. } = task;
            let tie_break = match policy.service.rule_set {
                RuleSet::Paper => TieBreak { epoch: *epoch, group: Group::Ran, index },
                RuleSet::Simulator => simulator::tie_break(*epoch, service_record, index),
            };
            task.order_key = (rank(now, policy, history, asks, service_record, true), tie_break);
        }
        running.sort_unstable_by_key(|task| task.order_key);
        // A task that is preempted now keeps this place among equals until it runs again.
        for (index, task) in (0..).zip(running) {
            if task.order_key.1.group == Group::Ran {
                task.order_key.1.index = index;
            }
        }
    }

    /// When the first running task changes queue.
    pub(super) fn first_crossing(&self, now: Time, policy: &Policy) -> Option<Time> {
        let crossing =
            |task: &Running| levels::crossing(policy, now, task.asks.gpus, &task.service_record);
        self.running.iter().filter_map(crossing).min()
    }
}
