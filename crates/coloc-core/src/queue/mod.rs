//! The order stage: which waiting task is considered next.
//!
//! Waiting tasks that would ask the same of a GPU form a *shape*. When one of a shape does not fit, none
//! does, and none will until a GPU improves; so a pass over a backlog of a hundred thousand tasks costs
//! as much as there are shapes.

pub mod allox;
pub(crate) mod backfill;
pub(crate) mod best_effort;
mod fair;
pub(crate) mod fifo;
pub(crate) mod history;
mod least_work;
pub(crate) mod ranked;

use crate::demand::Demand;
use crate::policy::{FairOrder, Pack, Place, Policy, Queue};
use crate::scheduler::SchedulerState;
use crate::tasks::Record;
use coloc_model::{
    HostNeed, Memory, Millis, ModelSet, PoolSet, SignatureId, Task, TaskId, Time, UserId,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A place in the order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket {
    /// What goes before arrival, where anything does.
    pub(crate) rank: u64,
    pub(crate) submitted: Time,
    pub(crate) number: u64,
}

/// The class of a priority; lower goes first.
pub(crate) fn class(priority: i32) -> u32 {
    i32::MAX.abs_diff(priority)
}

impl Ticket {
    /// Before all tasks.
    pub(crate) const FIRST: Ticket = Ticket { rank: 0, submitted: Time::START, number: 0 };

    /// What goes before arrival: the priority, then, where a user's shortest goes first, the declared
    /// run time.
    pub(crate) fn rank(policy: &Policy, task: &Task) -> u64 {
        let shortest = policy.queue == Queue::Fair && policy.fair_order == FairOrder::Shortest;
        let longest = u64::from(u32::MAX);
        let span = match shortest {
            true => task.duration.map_or(longest, |span| span.0.min(longest)),
            false => 0,
        };
        u64::from(class(task.priority)) << 32 | span
    }
}

/// Everything about a waiting task that decides whether it fits somewhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Shape {
    signature: SignatureId,
    gpus: u32,
    exclusive: bool,
    models: Option<ModelSet>,
    pools: Option<PoolSet>,
    memory: Memory,
    borrows: bool,
    host: HostNeed,
    /// The bits of the estimated SM activity.
    sm: Option<u64>,
    /// Only where users may not mix.
    user: Option<UserId>,
    /// Of a task that was preempted, how long it has run: it has another rank than those that have not.
    attained: u8,
}

impl Shape {
    /// Whole GPUs, whatever for.
    fn whole(gpus: u32) -> Self {
        let signature = SignatureId(0);
        Shape {
            signature,
            gpus,
            exclusive: true,
            models: None,
            pools: None,
            memory: Memory::Unknown,
            borrows: false,
            host: HostNeed::NONE,
            sm: None,
            user: None,
            attained: 0,
        }
    }

    fn of(task: &Task, by_user: bool) -> Self {
        Shape {
            signature: task.signature,
            gpus: task.gpus,
            exclusive: task.exclusive,
            models: task.models,
            pools: task.pools,
            // What is expected below the bound changes nothing.
            memory: match task.memory {
                Memory::Estimated { bound, .. } => Memory::exact(bound),
                memory => memory,
            },
            borrows: task.borrows,
            host: task.host,
            sm: task.sm.map(|sm| sm.get().to_bits()),
            user: by_user.then_some(task.user),
            attained: 0,
        }
    }
}

impl SchedulerState {
    /// The shape of a task. Where whole GPUs are given and all have the same memory, nothing but their
    /// number matters.
    pub(crate) fn shape(&self, task: &Task) -> Shape {
        let by_user = self.waiting.by_user;
        // Where skew decides which tasks are packed, it also matters what runs.
        let by_skew =
            self.policy.place == Place::Consolidate && matches!(self.policy.pack, Pack::Skew(_));
        let any_model = self.models.allowed(task).is_none() && task.pools.is_none();
        if self.policy.needs_idle() && self.gpus.are_alike() && !by_skew && any_model {
            Shape { user: by_user.then_some(task.user), host: task.host, ..Shape::whole(task.gpus) }
        } else {
            Shape::of(task, by_user)
        }
    }
}

impl SchedulerState {
    /// How many wait ahead of a task that waits in the main queue.
    pub(crate) fn ahead(&self, record: &Record) -> usize {
        if self.policy.queue.is_ranked() {
            self.ranked.ahead(record.service_record.order_key)
        } else {
            self.waiting.ahead(record.ticket)
        }
    }
}

/// The waiting tasks of one shape.
#[derive(Clone, Debug)]
struct ShapeQueue {
    user: UserId,
    tickets: BTreeMap<Ticket, TaskId>,
    /// The last one tried did not fit anywhere.
    blocked: bool,
    /// What each of them asks for, and the version of the beliefs that says so.
    demand: Option<(u64, Demand)>,
    /// Work of tasks that came after the first of them and were started before it.
    overtaken: f64,
}

/// A waiting task, as far as it tells backfilling whether a closer look is worth it.
#[derive(Clone, Copy, Debug)]
struct Entry {
    task: TaskId,
    gpus: u32,
    /// How long it says it runs.
    span: Option<Millis>,
}

/// The main queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    by_user: bool,
    /// The discipline looks at shapes; others do without them.
    by_shape: bool,
    count: usize,
    /// All by their tickets, where the policy needs that.
    by_ticket: bool,
    order: BTreeMap<Ticket, Entry>,
    shapes: Vec<ShapeQueue>,
    numbers: FxHashMap<Shape, usize>,
    /// Shapes with a waiting task, in no particular order.
    active: Vec<usize>,
}

impl Waiting {
    /// Where users are limited, tasks of two users are never alike.
    pub(crate) fn new(policy: &Policy, limited: bool) -> Self {
        Waiting {
            by_user: policy.same_user
                || limited
                || matches!(policy.queue, Queue::Fair | Queue::LeastWork),
            by_shape: matches!(policy.queue, Queue::BestEffort | Queue::Fair | Queue::LeastWork),
            count: 0,
            by_ticket: !policy.queue.is_ranked() || policy.starvation_limit.is_some(),
            order: BTreeMap::new(),
            shapes: Vec::new(),
            numbers: FxHashMap::default(),
            active: Vec::new(),
        }
    }

    fn shape(&self, task: &Task, done: Millis) -> Shape {
        let doublings = |done: Millis| 1 + (1.0 + done.secs()).log2() as u8;
        let attained = if done == Millis::ZERO { 0 } else { doublings(done) };
        Shape { attained, ..Shape::of(task, self.by_user) }
    }

    fn number(&mut self, task: &Task, done: Millis) -> usize {
        let shape = self.shape(task, done);
        *self.numbers.entry(shape).or_insert_with(|| {
            self.shapes.push(ShapeQueue {
                user: task.user,
                tickets: BTreeMap::new(),
                blocked: false,
                demand: None,
                overtaken: 0.0,
            });
            self.shapes.len() - 1
        })
    }

    pub(crate) fn insert(&mut self, ticket: Ticket, task: &Task, done: Millis) {
        self.count += 1;
        if self.by_ticket {
            let entry = Entry { task: task.id, gpus: task.gpus, span: task.duration };
            self.order.insert(ticket, entry);
        }
        if !self.by_shape {
            return;
        }
        let number = self.number(task, done);
        if self.shapes[number].tickets.is_empty() {
            self.active.push(number);
            // No task of this shape was there to try the GPUs that improved meanwhile.
            self.shapes[number].blocked = false;
        }
        let queue = &mut self.shapes[number];
        if queue.tickets.first_key_value().is_none_or(|(&first, _)| ticket < first) {
            queue.overtaken = 0.0;
        }
        queue.tickets.insert(ticket, task.id);
    }

    pub(crate) fn remove(&mut self, ticket: Ticket, task: &Task, done: Millis) {
        self.count -= 1;
        if self.by_ticket {
            self.order.remove(&ticket);
        }
        if !self.by_shape {
            return;
        }
        let number = self.number(task, done);
        let queue = &mut self.shapes[number];
        if queue.tickets.first_key_value().is_some_and(|(&first, _)| ticket == first) {
            queue.overtaken = 0.0;
        }
        queue.tickets.remove(&ticket);
        if self.shapes[number].tickets.is_empty() {
            self.active.retain(|&active| active != number);
        }
    }

    /// The first in line: the one of the highest priority that has waited longest.
    pub(crate) fn head(&self) -> Option<TaskId> {
        self.order.first_key_value().map(|(_, entry)| entry.task)
    }

    /// The first of the tasks that have the shape of this one.
    pub(crate) fn first_like(&self, task: &Task, done: Millis) -> Option<TaskId> {
        let number = *self.numbers.get(&self.shape(task, done))?;
        self.shapes[number].tickets.first_key_value().map(|(_, &task)| task)
    }

    /// A task with this ticket is started before the tasks that came before it.
    pub(crate) fn overtake(&mut self, ticket: Ticket, work: f64) {
        for &shape in &self.active {
            let queue = &mut self.shapes[shape];
            if queue.tickets.first_key_value().is_some_and(|(&first, _)| first < ticket) {
                queue.overtaken += work;
            }
        }
    }

    /// The first task of each shape, and the work of later ones that were started before it.
    pub(crate) fn overtaken(&self) -> impl Iterator<Item = (TaskId, f64)> + '_ {
        self.active.iter().filter_map(|&shape| {
            let queue = &self.shapes[shape];
            queue.tickets.first_key_value().map(|(_, &task)| (task, queue.overtaken))
        })
    }

    /// The first of them.
    fn first(&self, count: usize) -> Vec<Entry> {
        self.order.values().take(count).copied().collect()
    }

    /// How many wait ahead of a ticket.
    fn ahead(&self, ticket: Ticket) -> usize {
        self.order.range(..ticket).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// In the order of their tickets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.order.values().map(|entry| entry.task)
    }

    /// Forget what did not fit: something other than a GPU's improvement changed.
    pub(crate) fn unblock_all(&mut self) {
        self.shapes.iter_mut().for_each(|shape| shape.blocked = false);
    }
}
