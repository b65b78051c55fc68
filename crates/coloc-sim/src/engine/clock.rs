//! The virtual clock: what happens next.

use super::seats::{Seat, Stamp};
use coloc_model::{TaskId, Time};
use dary_heap::QuaternaryHeap;
use std::cmp::Reverse;

/// What is due. At one moment, ends come before memory steps, and wake-ups come last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum What {
    /// A task's work is done.
    Finish,
    /// A task's memory takes its next step.
    Grow,
    /// The scheduler asked to be woken.
    Wake,
}

/// Something that is due, unless its seat has another stamp by then. Ordered as it is played: by time,
/// kind and task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Due {
    pub(super) at: Time,
    pub(super) what: What,
    task: TaskId,
    pub(super) seat: Seat,
    pub(super) stamp: Stamp,
}

impl Due {
    pub(super) fn finish(at: Time, task: TaskId, seat: Seat, stamp: Stamp) -> Self {
        Due { at, what: What::Finish, task, seat, stamp }
    }

    pub(super) fn grow(at: Time, task: TaskId, seat: Seat, stamp: Stamp) -> Self {
        Due { at, what: What::Grow, task, seat, stamp }
    }

    fn wake(at: Time) -> Self {
        Due {
            at,
            what: What::Wake,
            task: TaskId(0),
            seat: Seat::default(),
            stamp: Stamp::default(),
        }
    }
}

/// Everything that is due, earliest first. Four children a node: a million tasks have a deep heap, and
/// what costs time in it is the memory that each level touches.
#[derive(Clone, Default, Debug)]
pub(super) struct Agenda {
    heap: QuaternaryHeap<Reverse<Due>>,
    next_wake: Option<Time>,
}

impl Agenda {
    pub(super) fn add(&mut self, due: Due) {
        self.heap.push(Reverse(due));
    }

    /// Asks for a wake-up, unless an earlier one is due anyway.
    pub(super) fn wake_at(&mut self, at: Time) {
        if self.next_wake.is_none_or(|next| at < next) {
            self.next_wake = Some(at);
            self.add(Due::wake(at));
        }
    }

    pub(super) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    /// Nothing but a wake-up is due at that time.
    pub(super) fn only_wakes_at(&self, at: Time) -> bool {
        self.heap.peek().is_some_and(|Reverse(next)| next.at == at && next.what == What::Wake)
    }

    pub(super) fn pop(&mut self) -> Option<Due> {
        let Reverse(due) = self.heap.pop()?;
        if due.what == What::Wake && self.next_wake == Some(due.at) {
            self.next_wake = None;
        }
        Some(due)
    }
}
