//! The walk: in the order of ranks, whoever fits gets GPUs; running tasks that lost their place go.

use super::holders::{Books, Course};
use super::seat::Seat;
use super::{Holder, Ranked};
use crate::demand::Demand;
use crate::gpus::Booking;
use crate::place::Search;
use crate::policy::{Place, Policy, Queue};
use crate::scheduler::{Turn, World};
use coloc_model::{GpuId, TaskId, Time};
use std::cmp::Reverse;

/// A waiting task with its class.
pub(super) type Candidate = (Seat, TaskId, usize);

/// Buffers of a walk, kept for their memory.
#[derive(Clone, Default, Debug)]
pub(super) struct Scratch {
    heads: Vec<Candidate>,
    blocked: Vec<bool>,
}

/// One walk over all tasks.
pub(super) struct Walk {
    /// Running tasks, best first.
    pub(super) holders: Vec<Holder>,
    /// Holders before this one rank better than whoever is considered.
    pub(super) at_risk: usize,
    /// GPUs of those from there on.
    pub(super) gpus_at_risk: u32,
    /// Waiting tasks to be considered, one of each class and those that were preempted; the best is last.
    pub(super) candidates: Vec<Candidate>,
    /// Classes of which one found no room.
    pub(super) blocked: Vec<bool>,
}

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    let now = turn.now;
    world.promote_the_starving(now);
    world.demote(now);
    let mut walk = Walk::new(world, now);
    if world.counts_suffice() {
        walk.by_count(world, turn);
    } else {
        walk.one_by_one(world, turn);
    }
    let crossing = world.ranked.first_crossing(&world.policy, &walk.holders);
    if Course::of(&world.policy) == Course::Holds {
        world.ranked.steady_until = crossing.unwrap_or(Time::NEVER);
    }
    world.ranked.running = walk.holders;
    (world.ranked.scratch.heads, world.ranked.scratch.blocked) = (walk.candidates, walk.blocked);
    world.ranked.epoch += 1;
    world.ranked.arrived = 0;
    world.ranked.look_at = world.next_change(now, crossing);
}

impl Ranked {
    /// Works out the rank of a task that just started, and when it changes queue.
    pub(super) fn open(&mut self, now: Time, policy: &Policy, holder: &mut Holder) {
        let Ranked { books, history, .. } = self;
        match Course::of(policy) {
            Course::Falls => holder.seat.0 = Books::falling(now, policy, holder),
            Course::Follows => holder.seat.0 = books.following(now, policy, history, holder),
            Course::Holds | Course::Varies => {
                holder.seat.0 = books.look_at(now, policy, history, holder).0;
                holder.due = books.crossing(holder);
            }
        }
    }

    /// When the first running task changes queue.
    fn first_crossing(&self, policy: &Policy, holders: &[Holder]) -> Option<Time> {
        let first = match Course::of(policy) {
            Course::Falls => None,
            Course::Holds | Course::Follows => holders.iter().map(|holder| holder.due).min(),
            Course::Varies => holders.iter().map(|holder| self.books.crossing(holder)).min(),
        };
        first.filter(|&at| at != Time::NEVER)
    }

    /// The best waiting task of each class.
    fn heads(&mut self) -> Vec<Candidate> {
        let mut heads = std::mem::take(&mut self.scratch.heads);
        heads.clear();
        heads.extend((0..self.classes.len()).filter_map(|class| self.head(class)));
        heads.sort_unstable_by_key(|&candidate| Reverse(candidate));
        heads
    }

    fn none_blocked(&mut self) -> Vec<bool> {
        let mut blocked = std::mem::take(&mut self.scratch.blocked);
        blocked.clear();
        blocked.resize(self.classes.len(), false);
        blocked
    }

    /// The best waiting task of a class.
    fn head(&self, class: usize) -> Option<Candidate> {
        self.classes[class].first_key_value().map(|(&seat, &task)| (seat, task, class))
    }
}

impl Walk {
    fn new(world: &mut World, now: Time) -> Self {
        let candidates = world.ranked.heads();
        let World { policy, ranked, .. } = world;
        ranked.put_in_order(now, policy, !candidates.is_empty());
        let mut walk = Walk {
            at_risk: 0,
            gpus_at_risk: ranked.books.gpus(),
            holders: std::mem::take(&mut ranked.running),
            candidates,
            blocked: ranked.none_blocked(),
        };
        if world.policy.queue == Queue::Sjf {
            (walk.at_risk, walk.gpus_at_risk) = (walk.holders.len(), 0);
        }
        walk
    }

    /// Gives each task in turn what it gets.
    fn one_by_one(&mut self, world: &mut World, turn: &mut Turn) {
        let mut before = None;
        while let Some((seat, task, class)) = self.candidates.pop() {
            if turn.is_over() {
                break;
            }
            // Whoever was preempted in this pass may be named twice, the second time right after the first.
            if self.blocked[class] || before.replace(task) == Some(task) {
                continue;
            }
            if world.over_quota(task).is_some() {
                self.blocked[class] = true;
                continue;
            }
            self.pass_better_holders(seat);
            let Some((demand, gpus)) = self.room(world, turn, task, class) else {
                self.blocked[class] = true;
                continue;
            };
            world.start(turn, &demand, gpus);
            let holder = world.hold(turn.now, seat, task);
            self.holders.insert(self.at_risk, holder);
            self.at_risk += 1;
            self.consider(world.ranked.head(class));
        }
    }

    pub(super) fn consider(&mut self, candidate: Option<Candidate>) {
        let Some(candidate) = candidate else { return };
        let better = self.candidates.iter().rev().take_while(|&&other| other < candidate).count();
        self.candidates.insert(self.candidates.len() - better, candidate);
    }

    pub(super) fn pass_better_holders(&mut self, seat: Seat) {
        let rest = &self.holders[self.at_risk..];
        let better = rest.partition_point(|holder| holder.seat < seat);
        self.gpus_at_risk -= rest[..better].iter().map(|holder| holder.gpus).sum::<u32>();
        self.at_risk += better;
    }

    /// GPUs for a task: free ones, or those of tasks that rank worse, which then are preempted.
    fn room(
        &mut self,
        world: &mut World,
        turn: &mut Turn,
        task: TaskId,
        class: usize,
    ) -> Option<(Demand, Vec<GpuId>)> {
        let wanted = world.ranked.gangs[class];
        let whole = world.policy.needs_idle();
        if whole && world.gpus.idle() + self.gpus_at_risk < wanted {
            return None;
        }
        let demand = world.demand(task);
        let any = world.policy.place == Place::Any && demand.barred.is_empty();
        let victims = if whole && any {
            self.fewest_by_count(world, world.gpus.idle(), wanted)
        } else {
            self.fewest(world, turn, &demand, wanted)
        };
        let victims = victims?;
        for victim in victims {
            self.drop_holder(victim.task);
            if whole && any {
                world.lift_for_good(victim.task);
            }
            self.preempt(world, turn, victim);
        }
        let gpus = world.find(turn, &demand, Search::Everywhere)?;
        Some((demand, gpus))
    }

    pub(super) fn drop_holder(&mut self, task: TaskId) {
        // Those that go are among the last.
        let at = self.holders.iter().rposition(|holder| holder.task == task);
        self.holders.remove(at.expect("a victim runs"));
    }

    /// Whom to preempt where any GPU will do and counting is enough: from the worst on until there are
    /// enough, and of those, best first, whoever need not go stays.
    pub(super) fn fewest_by_count(
        &self,
        world: &World,
        mut free: u32,
        wanted: u32,
    ) -> Option<Vec<Holder>> {
        let mut first = self.holders.len();
        let is_cancelled = |world: &World, task| world.tasks.live(task).cancelled;
        while free < wanted && first > self.at_risk {
            first -= 1;
            let holder = &self.holders[first];
            if !is_cancelled(world, holder.task) {
                free += holder.gpus;
            }
        }
        if free < wanted {
            return None;
        }
        let mut victims = Vec::new();
        for holder in &self.holders[first..] {
            if is_cancelled(world, holder.task) {
                continue;
            }
            if free - holder.gpus >= wanted {
                free -= holder.gpus;
            } else {
                victims.push(*holder);
            }
        }
        Some(victims)
    }

    /// Whom to preempt, found out by trying.
    fn fewest(
        &self,
        world: &mut World,
        turn: &mut Turn,
        demand: &Demand,
        wanted: u32,
    ) -> Option<Vec<Holder>> {
        let whole = world.policy.needs_idle();
        let mut fits = |world: &mut World| {
            (!whole || world.gpus.idle() >= wanted)
                && world.find(turn, demand, Search::Everywhere).is_some()
        };
        let mut victims = Vec::new();
        if fits(world) {
            return Some(victims);
        }
        let mut lifted = Vec::new();
        let mut found = false;
        for holder in self.holders[self.at_risk..].iter().rev() {
            if world.tasks.live(holder.task).cancelled {
                continue;
            }
            lifted.push((holder, world.lift(holder.task)));
            found = fits(world);
            if found {
                break;
            }
        }
        // Best first: whoever can stay beside the newcomer does.
        for (holder, bookings) in lifted.into_iter().rev() {
            world.put_back(&bookings);
            if found && !fits(world) {
                world.lift(holder.task);
                victims.push(*holder);
            }
        }
        found.then_some(victims)
    }

    fn preempt(&mut self, world: &mut World, turn: &mut Turn, holder: Holder) {
        self.gpus_at_risk -= holder.gpus;
        world.ranked.books.close(&holder);
        let class = world.preempt(turn, holder.task, holder.seat);
        if self.blocked.len() <= class {
            self.blocked.resize(class + 1, false);
        }
        // It may find room elsewhere.
        self.consider(Some((holder.seat, holder.task, class)));
    }
}

impl World {
    pub(super) fn lift_for_good(&mut self, task: TaskId) {
        let World { tasks, gpus, .. } = self;
        for gpu in tasks.live(task).run.iter().flat_map(|run| run.placement.gpus()) {
            gpus.lift(gpu, task);
        }
    }

    fn lift(&mut self, task: TaskId) -> Vec<(GpuId, Booking)> {
        let Some(run) = &self.tasks.live(task).run else { return Vec::new() };
        run.placement.gpus().map(|gpu| (gpu, self.gpus.lift(gpu, task))).collect()
    }

    fn put_back(&mut self, bookings: &[(GpuId, Booking)]) {
        for &(gpu, booking) in bookings {
            self.gpus.put_back(gpu, booking);
        }
    }
}
