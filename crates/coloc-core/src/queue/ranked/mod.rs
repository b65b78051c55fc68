//! Preemptive disciplines: each task, running or waiting, has a rank, and whoever ranks better gets the
//! GPUs. A discipline is a small file with its formula; the walk over ranks is shared.
//!
//! Waiting tasks that ask the same of GPUs form a class: when one of a class finds no room, no worse one
//! of it does, so a pass costs as much as there are classes and running tasks.

mod class;
mod counted;
mod gittins2d;
mod holders;
mod las2d;
mod levels;
mod order;
mod packed;
mod pass;
mod seat;
mod shortest;
mod standing;

pub(crate) use pass::run;
pub(crate) use seat::Seat;
pub(crate) use standing::Standing;

use super::Shape;
use super::history::History;
use crate::policy::{Policy, Queue};
use crate::service::Letter;
use crate::tasks::Record;
use class::Class;
use coloc_model::{Millis, Task, TaskId, Time};
use holders::{Books, Holder};
use rustc_hash::FxHashMap;
use seat::{Group, Rank, Tie};
use std::collections::BTreeSet;

/// What a task asks for, as far as ranks depend on it.
#[derive(Clone, Copy, Debug)]
struct Asks {
    /// Of its priority.
    class: u16,
    gpus: u32,
    duration: Option<Millis>,
    submitted: Time,
}

impl Asks {
    fn of(record: &Record) -> Self {
        let Task { gpus, duration, priority, .. } = record.task;
        let class = class_of(priority);
        Asks { class, gpus, duration, submitted: record.ticket.submitted }
    }
}

/// The class of a priority; lower goes first. Priorities beyond 32767, either way, are that.
fn class_of(priority: i32) -> u16 {
    let clamped = priority.clamp(i16::MIN.into(), i16::MAX.into());
    u16::try_from(i32::from(i16::MAX) - clamped).unwrap_or(u16::MAX)
}

/// All tasks of a preemptive discipline, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ranked {
    /// Number of the coming pass.
    epoch: i64,
    arrived: u32,
    /// Those on GPUs, best first as of the last pass.
    running: Vec<Holder>,
    /// When the first of them changes queue. Until then, where ranks hold, they stay in that order, but for
    /// those that leave.
    next_crossing: Time,
    /// That moment has to be found anew.
    recount: bool,
    /// Their ties are those of this pass; else only their order says who goes first among equals.
    numbered: bool,
    books: Books,
    scratch: pass::Scratch,
    classes: Vec<Class>,
    numbers: FxHashMap<Shape, usize>,
    /// When waiting tasks will have waited too long.
    promotions: BTreeSet<(Time, TaskId)>,
    /// When ranks change next although nothing happens.
    pub(crate) look_at: Option<Time>,
    pub(crate) history: History,
}

impl Ranked {
    pub(crate) fn new(policy: &Policy) -> Self {
        Ranked { epoch: 1, history: History::new(policy), ..Ranked::default() }
    }

    /// Gives a task that just arrived its place behind all equals.
    pub(crate) fn arrive(&mut self, now: Time, policy: &Policy, record: &mut Record, shape: Shape) {
        record.standing.since = now;
        record.standing.class = self.class(shape) as u32;
        let tie = Tie { epoch: self.epoch, group: Group::Arrived, index: self.arrived };
        self.arrived += 1;
        record.standing.seat = (self.rank_of(now, policy, record), tie);
        self.insert(policy, record);
    }

    /// Gives a task that ran, or changed, its place among equals.
    pub(crate) fn come_back(&mut self, now: Time, policy: &Policy, record: &mut Record) {
        record.standing.seat.0 = self.rank_of(now, policy, record);
        self.insert(policy, record);
    }

    /// Has a task that was preempted wait in the seat that it had when it ran; says in which class.
    pub(crate) fn preempted(&mut self, policy: &Policy, record: &mut Record, seat: Seat) -> usize {
        record.standing.seat = seat;
        self.insert(policy, record);
        record.standing.class as usize
    }

    fn insert(&mut self, policy: &Policy, record: &Record) {
        let class = record.standing.class as usize;
        self.classes[class].insert(record.standing.seat, record.task.id);
        if let Some(at) = levels::promotion(policy, record) {
            self.promotions.insert((at, record.task.id));
        }
    }

    /// Takes a waiting task out.
    pub(crate) fn remove(&mut self, policy: &Policy, record: &Record) {
        let class = record.standing.class as usize;
        self.classes[class].remove(record.standing.seat);
        if let Some(at) = levels::promotion(policy, record) {
            self.promotions.remove(&(at, record.task.id));
        }
    }

    /// Those that wait, best first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + use<> {
        let mut waiting: Vec<_> = self.classes.iter().flat_map(Class::iter).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, task)| task).collect::<Vec<_>>().into_iter()
    }

    /// How many wait in better seats.
    pub(crate) fn ahead(&self, seat: Seat) -> usize {
        self.classes.iter().map(|class| class.ahead(seat)).sum()
    }

    /// Where tasks of a shape wait.
    pub(crate) fn class(&mut self, shape: Shape) -> usize {
        let next = self.classes.len();
        let class = *self.numbers.entry(shape).or_insert(next);
        if class == next {
            self.classes.push(Class::new(shape.gpus));
        }
        class
    }

    fn rank_of(&self, now: Time, policy: &Policy, record: &Record) -> Rank {
        let (standing, running) = (&record.standing, record.run.is_some());
        rank(now, policy, &self.history, &Asks::of(record), standing, running)
    }

    /// Takes a task for running that was found so.
    pub(crate) fn adopt(&mut self, now: Time, policy: &Policy, record: &Record) {
        let standing = record.standing;
        let mut holder = self.books.open(standing.seat, record.task.id, Asks::of(record), standing);
        self.open(now, policy, &mut holder);
        self.running.push(holder);
        self.next_crossing = Time::START;
    }

    /// A running task has another priority now.
    pub(crate) fn set_priority(&mut self, task: TaskId, priority: i32) {
        if let Some(holder) = self.running.iter_mut().find(|holder| holder.task == task) {
            self.books.set_class(holder, class_of(priority));
            self.next_crossing = Time::START;
        }
    }

    /// A running task is to go for good; there is nothing to preempt any more.
    pub(crate) fn cancelled(&mut self, task: TaskId) {
        if let Some(holder) = self.running.iter_mut().find(|holder| holder.task == task) {
            holder.cancelled = true;
        }
    }

    /// A task is off its GPUs.
    fn close(&mut self, holder: &Holder) {
        self.books.close(holder);
        self.recount |= holder.due == self.next_crossing;
    }

    /// A task is off its GPUs for good, or was brought back by other means.
    pub(crate) fn forget_running(&mut self, task: TaskId) {
        if let Some(index) = self.running.iter().position(|holder| holder.task == task) {
            let holder = self.running.remove(index);
            self.close(&holder);
        }
    }
}

/// The class of its priority, then what the discipline says of a task.
#[inline]
fn rank(
    now: Time,
    policy: &Policy,
    history: &History,
    asks: &Asks,
    standing: &Standing,
    running: bool,
) -> Rank {
    let service = &policy.service;
    let attained = || standing.attained(now, running, asks.gpus);
    let level = |attained| match service.letter {
        Letter::Paper => service.thresholds.level(attained),
        Letter::Simulator => standing.level,
    };
    let started = standing.first_start;
    let rank = match policy.queue {
        Queue::Srtf => shortest::remaining_time(asks.duration, standing.done(now, running)),
        Queue::Srsf => {
            let done = standing.done(now, running);
            shortest::remaining_service(asks.duration, done, asks.gpus)
        }
        Queue::Las2d => {
            let attained = attained();
            las2d::rank(service, level(attained), attained, started)
        }
        Queue::Gittins2d => {
            let (attained, times) = (attained(), (asks.submitted, started));
            gittins2d::rank(service, history, level(attained), attained, times)
        }
        // Those that do not preempt have no ranks.
        Queue::Sjf
        | Queue::Fifo
        | Queue::BestEffort
        | Queue::Backfill
        | Queue::Fair
        | Queue::Allox => shortest::job(asks.duration),
    };
    rank.in_class(asks.class)
}
