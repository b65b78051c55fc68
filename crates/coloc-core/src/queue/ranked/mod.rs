//! Preemptive disciplines: each task, running or waiting, has a rank, and the task that ranks
//! better gets the GPUs. A discipline is a small file with its formula; the pass over ranks is shared.
//!
//! Waiting tasks that ask the same of GPUs form a class: when one of a class finds no room, no worse one
//! of it does, so a pass costs as much as there are classes and running tasks.

mod counted;
mod gittins2d;
mod las2d;
mod levels;
mod order_key;
mod pass;
mod running;
mod service_record;
mod shortest;
pub(crate) mod simulator;
mod victims;

pub(crate) use order_key::OrderKey;
pub(crate) use pass::run;
pub(crate) use service_record::ServiceRecord;

use super::Shape;
use super::history::History;
use crate::policy::{Policy, Queue};
use crate::service::RuleSet;
use crate::tasks::Record;
use coloc_model::{Millis, Task, TaskId, Time};
use order_key::{Group, Rank, TieBreak};
use running::Running;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

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

/// Waiting tasks that ask the same of GPUs, in the order of their keys.
#[derive(Clone, Debug)]
struct Class {
    /// How many GPUs each of them asks for.
    gpus: u32,
    waiting: BTreeMap<OrderKey, TaskId>,
}

/// All tasks of a preemptive discipline, in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ranked {
    /// Number of the coming pass.
    epoch: i64,
    arrived: u32,
    /// Tasks on GPUs, best first as of the last pass that put them in order.
    running: Vec<Running>,
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
        record.service_record.since = now;
        record.service_record.class = self.class(shape) as u32;
        let tie_break = TieBreak { epoch: self.epoch, group: Group::Arrived, index: self.arrived };
        self.arrived += 1;
        record.service_record.order_key = (self.rank_of(now, policy, record), tie_break);
        self.insert(policy, record);
    }

    /// Gives a task that ran, or changed, its place among equals.
    pub(crate) fn come_back(&mut self, now: Time, policy: &Policy, record: &mut Record) {
        record.service_record.order_key.0 = self.rank_of(now, policy, record);
        self.insert(policy, record);
    }

    /// Has a task that was preempted wait with the key that it had when it ran; says in which class.
    pub(crate) fn preempted(
        &mut self,
        policy: &Policy,
        record: &mut Record,
        order_key: OrderKey,
    ) -> usize {
        record.service_record.order_key = order_key;
        self.insert(policy, record);
        record.service_record.class as usize
    }

    fn insert(&mut self, policy: &Policy, record: &Record) {
        let class = record.service_record.class as usize;
        self.classes[class].waiting.insert(record.service_record.order_key, record.task.id);
        if let Some(at) = levels::promotion(policy, record) {
            self.promotions.insert((at, record.task.id));
        }
    }

    /// Takes a waiting task out.
    pub(crate) fn remove(&mut self, policy: &Policy, record: &Record) {
        let class = record.service_record.class as usize;
        self.classes[class].waiting.remove(&record.service_record.order_key);
        if let Some(at) = levels::promotion(policy, record) {
            self.promotions.remove(&(at, record.task.id));
        }
    }

    /// The waiting tasks, best first.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = TaskId> + use<> {
        let mut waiting: Vec<_> = self.classes.iter().flat_map(|class| &class.waiting).collect();
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, &task)| task).collect::<Vec<_>>().into_iter()
    }

    /// How many wait with better keys.
    pub(crate) fn ahead(&self, order_key: OrderKey) -> usize {
        self.classes.iter().map(|class| class.waiting.range(..order_key).count()).sum()
    }

    /// Where tasks of a shape wait.
    pub(crate) fn class(&mut self, shape: Shape) -> usize {
        let next = self.classes.len();
        let class = *self.numbers.entry(shape).or_insert(next);
        if class == next {
            self.classes.push(Class { gpus: shape.gpus, waiting: BTreeMap::new() });
        }
        class
    }

    fn rank_of(&self, now: Time, policy: &Policy, record: &Record) -> Rank {
        let (service_record, running) = (&record.service_record, record.run.is_some());
        rank(now, policy, &self.history, &Asks::of(record), service_record, running)
    }

    /// The first of the waiting tasks that ask the same of GPUs.
    pub(crate) fn first_like(&self, record: &Record) -> Option<TaskId> {
        let class = &self.classes[record.service_record.class as usize];
        class.waiting.first_key_value().map(|(_, &task)| task)
    }

    /// Takes a task for running that was found so.
    pub(crate) fn adopt(&mut self, record: &Record) {
        self.running.push(Running::new(record.service_record.order_key, record));
    }

    /// A running task has another priority now.
    pub(crate) fn set_priority(&mut self, task: TaskId, priority: i32) {
        if let Some(running) = self.running.iter_mut().find(|running| running.task == task) {
            running.asks.class = class_of(priority);
        }
    }

    /// A running task is to go for good; there is nothing to preempt any more.
    pub(crate) fn cancelled(&mut self, task: TaskId) {
        if let Some(running) = self.running.iter_mut().find(|running| running.task == task) {
            running.cancelled = true;
        }
    }

    /// A task is off its GPUs for good, or was brought back by other means.
    pub(crate) fn forget_running(&mut self, task: TaskId) {
        self.running.retain(|running| running.task != task);
    }
}

/// The class of its priority, then what the discipline says of a task.
fn rank(
    now: Time,
    policy: &Policy,
    history: &History,
    asks: &Asks,
    service_record: &ServiceRecord,
    running: bool,
) -> Rank {
    let service = &policy.service;
    let attained = || service_record.attained(now, running, asks.gpus);
    let rank = match (policy.queue, service.rule_set) {
        (Queue::Srtf, _) => {
            shortest::remaining_time(asks.duration, service_record.done(now, running))
        }
        (Queue::Srsf, _) => {
            let done = service_record.done(now, running);
            shortest::remaining_service(asks.duration, done, asks.gpus)
        }
        (Queue::Las2d, RuleSet::Paper) => {
            las2d::rank(&service.thresholds, attained(), service_record.first_start)
        }
        (Queue::Gittins2d, RuleSet::Paper) => {
            gittins2d::rank(&service.thresholds, history, attained(), service_record.first_start)
        }
        (Queue::Las2d, RuleSet::Simulator) => simulator::las2d(service_record.level),
        (Queue::Gittins2d, RuleSet::Simulator) => {
            simulator::gittins2d(service_record.level, history, attained(), asks.submitted)
        }
        // Disciplines that do not preempt have no ranks but the run time.
        (
            Queue::Sjf
            | Queue::Fifo
            | Queue::BestEffort
            | Queue::Backfill
            | Queue::Fair
            | Queue::LeastWork
            | Queue::Allox,
            _,
        ) => shortest::job(asks.duration),
    };
    rank.in_class(asks.class)
}
