//! What a task has had so far, by the scheduler's own books.

use super::order_key::OrderKey;
use crate::service::GpuTime;
use coloc_model::{Millis, Time};

/// One task's books. Spans count runs and waits that are over; the current one is added when asked for.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ServiceRecord {
    /// Work done that was not lost.
    pub(crate) done: Millis,
    /// Time on its GPUs since it was last promoted.
    pub(crate) ran: Millis,
    /// Time spent waiting since it first ran after it was last promoted.
    pub(crate) waited: Millis,
    /// Since when it runs or waits.
    pub(crate) since: Time,
    /// When it ran for the first time.
    pub(crate) first_start: Option<Time>,
    /// Its queue, where that is a matter of history.
    pub(crate) level: usize,
    /// Its class among waiting tasks.
    pub(crate) class: u32,
    /// Its place in the order, as of the last pass that moved it.
    pub(crate) order_key: OrderKey,
}

impl ServiceRecord {
    pub(crate) fn done(&self, now: Time, running: bool) -> Millis {
        self.done + if running { now.since(self.since) } else { Millis::ZERO }
    }

    pub(crate) fn ran(&self, now: Time, running: bool) -> Millis {
        self.ran + if running { now.since(self.since) } else { Millis::ZERO }
    }

    pub(crate) fn attained(&self, now: Time, running: bool, gpus: u32) -> GpuTime {
        GpuTime::of(self.ran(now, running), gpus)
    }

    pub(crate) fn starts(&mut self, now: Time) {
        // A task that has not run since it came or was promoted waits in the first queue, like all tasks there.
        if self.ran > Millis::ZERO {
            self.waited += now.since(self.since);
        }
        self.since = now;
        self.first_start.get_or_insert(now);
    }

    pub(crate) fn preempted(&mut self, now: Time) {
        self.done += now.since(self.since);
        self.ran += now.since(self.since);
        self.since = now;
    }

    /// Its process died: the work is lost, the service was attained all the same.
    pub(crate) fn died(&mut self, now: Time) {
        self.preempted(now);
        self.done = Millis::ZERO;
    }

    /// It waited too long and starts again at the top, so that it is not demoted at once.
    pub(crate) fn promoted(&mut self, now: Time) {
        (self.ran, self.waited) = (Millis::ZERO, Millis::ZERO);
        (self.since, self.level) = (now, 0);
    }
}
