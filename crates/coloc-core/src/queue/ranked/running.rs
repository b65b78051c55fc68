//! The running tasks of a preemptive discipline, and their order: ranks change with time, so a pass begins
//! by putting them in order.

use super::seat::{Group, Seat, Tie};
use super::{Asks, Ranked, Standing, levels, rank, simulator};
use crate::policy::{Policy, Queue};
use crate::service::Letter;
use crate::tasks::Record;
use coloc_model::{TaskId, Time};

/// A running task in its place, with what its rank is worked out from: its standing does not change while
/// it runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running {
    pub(super) seat: Seat,
    pub(super) task: TaskId,
    pub(super) asks: Asks,
    pub(super) standing: Standing,
    /// It is on its way out, so that there is nothing to preempt.
    pub(super) cancelled: bool,
}

impl Running {
    pub(super) fn new(seat: Seat, record: &Record) -> Self {
        let (asks, standing) = (Asks::of(record), record.standing);
        Running { seat, task: record.task.id, asks, standing, cancelled: false }
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
            let Running { asks, standing, .. } = task;
            let tie = match policy.service.letter {
                Letter::Paper => Tie { epoch: *epoch, group: Group::Ran, index },
                Letter::Simulator => simulator::tie(*epoch, standing, index),
            };
            task.seat = (rank(now, policy, history, asks, standing, true), tie);
        }
        running.sort_unstable_by_key(|task| task.seat);
        // A task that is preempted now keeps this place among equals until it runs again.
        for (index, task) in (0..).zip(running) {
            if task.seat.1.group == Group::Ran {
                task.seat.1.index = index;
            }
        }
    }

    /// When the first running task changes queue.
    pub(super) fn first_crossing(&self, now: Time, policy: &Policy) -> Option<Time> {
        let crossing =
            |task: &Running| levels::crossing(policy, now, task.asks.gpus, &task.standing);
        self.running.iter().filter_map(crossing).min()
    }
}
