//! The event loop of simulations and forecasts: a virtual clock between a scheduler and its world. The scheduler is told
//! of everything that happens at one time, then it decides, then its effects are carried out.

use coloc_core::{Effect, Event, Scheduler};
use coloc_model::Time;
use dary_heap::QuaternaryHeap;
use std::cmp::Reverse;

/// What is due at a time. A wake-up comes after all else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum What<D> {
    /// Something happens in the world.
    Due(D),
    /// The scheduler asked to be woken.
    Wake,
}

/// Everything that is due, earliest first. Four children a node: a million tasks have a deep heap, and
/// what costs time in it is the memory that each level touches.
#[derive(Clone, Debug)]
pub(crate) struct Agenda<D> {
    heap: QuaternaryHeap<Reverse<(Time, What<D>)>>,
    next_wake: Option<Time>,
}

impl<D: Ord + Copy> Agenda<D> {
    pub(crate) fn add(&mut self, at: Time, due: D) {
        self.heap.push(Reverse((at, What::Due(due))));
    }

    /// Asks for a wake-up, unless an earlier one is due anyway.
    fn wake_at(&mut self, at: Time) {
        if self.next_wake.is_none_or(|next| at < next) {
            self.next_wake = Some(at);
            self.heap.push(Reverse((at, What::Wake)));
        }
    }

    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|&Reverse((at, _))| at)
    }

    /// Nothing but a wake-up is due at that time.
    pub(crate) fn only_wakes_at(&self, at: Time) -> bool {
        self.heap.peek() == Some(&Reverse((at, What::Wake)))
    }

    pub(crate) fn pop(&mut self) -> Option<(Time, What<D>)> {
        let Reverse((at, what)) = self.heap.pop()?;
        if what == What::Wake && self.next_wake == Some(at) {
            self.next_wake = None;
        }
        Some((at, what))
    }
}

/// A scheduler, the time, and what is due.
pub(crate) struct EventLoop<D> {
    pub(crate) scheduler: Scheduler,
    pub(crate) agenda: Agenda<D>,
    /// When something last happened.
    pub(crate) now: Time,
    /// Effects in the order of their decision, and how many were carried out.
    effects: Vec<Effect>,
    done: usize,
    /// They are being carried out.
    busy: bool,
}

impl<D: Ord + Copy> EventLoop<D> {
    pub(crate) fn new(scheduler: Scheduler, now: Time) -> Self {
        let agenda = Agenda { heap: QuaternaryHeap::new(), next_wake: None };
        EventLoop { scheduler, agenda, now, effects: Vec::new(), done: 0, busy: false }
    }

    pub(crate) fn wake_at(&mut self, at: Time) {
        self.agenda.wake_at(at.max(self.now));
    }

    fn next_effect(&mut self) -> Option<Effect> {
        if let Some(effect) = self.effects.get_mut(self.done) {
            self.done += 1;
            return Some(std::mem::replace(effect, Effect::WakeAt(Time::NEVER)));
        }
        self.effects.clear();
        self.done = 0;
        None
    }
}

/// What is around a scheduler: it says what happens, and effects happen to it.
pub(crate) trait World {
    /// What is due in it.
    type Due: Ord + Copy;

    fn event_loop(&mut self) -> &mut EventLoop<Self::Due>;

    /// When something is due next.
    fn next_time(&self) -> Option<Time>;

    /// Lets the next thing happen that is due at that time.
    fn happen(&mut self, at: Time);

    fn carry_out(&mut self, now: Time, effect: Effect);

    /// Tells the scheduler, which decides once it has heard everything that happens at this time.
    fn tell(&mut self, now: Time, event: Event) {
        let events = self.event_loop();
        events.now = now;
        events.scheduler.note(now, event, &mut events.effects);
        self.carry_out_all();
    }

    /// Lets the next thing happen, and the scheduler decide unless more happens at this time; says whether it did.
    fn advance(&mut self, at: Time) -> bool {
        self.happen(at);
        let next = self.next_time();
        let events = self.event_loop();
        if next == Some(events.now) {
            return false;
        }
        events.scheduler.decide(events.now, &mut events.effects);
        self.carry_out_all();
        true
    }

    /// Does what the scheduler wants. What it wants on being told of one effect's consequences comes
    /// after the effects that were decided before.
    fn carry_out_all(&mut self) {
        let events = self.event_loop();
        if events.effects.is_empty() || std::mem::replace(&mut events.busy, true) {
            return;
        }
        while let Some(effect) = self.event_loop().next_effect() {
            let now = self.event_loop().now;
            self.carry_out(now, effect);
        }
        self.event_loop().busy = false;
    }
}
