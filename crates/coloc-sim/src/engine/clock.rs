//! The virtual clock: what happens next.

use coloc_model::{TaskId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Something that is due. At one moment, ends come before memory steps, and wake-ups come last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Due {
    /// A task's work is done, unless it was restarted or its speed changed since: then the stamp is old.
    Finish { task: TaskId, attempt: u32, stamp: u32 },
    /// A task's memory takes its next step, unless it was restarted since.
    Grow { task: TaskId, attempt: u32 },
    /// The scheduler asked to be woken.
    Wake,
}

/// Everything that is due, earliest first; at one moment in the order of [`Due`], then of scheduling.
#[derive(Clone, Default, Debug)]
pub(super) struct Agenda {
    heap: BinaryHeap<Reverse<(Time, Due)>>,
    next_wake: Option<Time>,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Time, due: Due) {
        self.heap.push(Reverse((at, due)));
    }

    /// Asks for a wake-up, unless an earlier one is due anyway.
    pub(super) fn wake_at(&mut self, at: Time) {
        if self.next_wake.is_none_or(|next| at < next) {
            self.next_wake = Some(at);
            self.add(at, Due::Wake);
        }
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// Nothing but a wake-up is due at that time.
    pub(super) fn only_wakes_at(&self, at: Time) -> bool {
        self.heap.peek().is_some_and(|Reverse(next)| *next == (at, Due::Wake))
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Due)> {
        let Reverse((at, due)) = self.heap.pop()?;
        if due == Due::Wake && self.next_wake == Some(at) {
            self.next_wake = None;
        }
        Some((at, due))
    }
}
