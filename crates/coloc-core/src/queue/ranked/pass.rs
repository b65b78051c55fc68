//! The walk: in the order of ranks, whoever fits gets GPUs; running tasks that lost their place go.

use super::counted::Moves;
use super::holders::{Books, Course};
use super::seat::{Group, Seat, Tie};
use super::{Asks, Holder, Ranked};
use crate::demand::Demand;
use crate::gpus::Booking;
use crate::place::{Gang, Search};
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
    victims: Vec<Holder>,
    pub(super) moves: Moves,
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
    /// Those who would have to go for a task that is considered.
    pub(super) victims: Vec<Holder>,
    /// Number of this pass.
    epoch: i64,
    /// How many of the last running tasks have their ties of this pass, and the first of these. Of the
    /// others only their order says who goes first among equals.
    numbered: usize,
    number: u32,
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
    world.ranked.running = walk.holders;
    let crossing = world.ranked.first_crossing(&world.policy);
    (world.ranked.scratch.heads, world.ranked.scratch.blocked) = (walk.candidates, walk.blocked);
    world.ranked.scratch.victims = walk.victims;
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
        self.next_crossing = self.next_crossing.min(holder.due);
    }

    /// When the first running task changes queue.
    fn first_crossing(&mut self, policy: &Policy) -> Option<Time> {
        let first = match Course::of(policy) {
            Course::Falls => None,
            Course::Holds | Course::Follows => {
                if std::mem::take(&mut self.recount) {
                    let first = self.running.iter().map(|holder| holder.due).min();
                    self.next_crossing = first.unwrap_or(Time::NEVER);
                }
                Some(self.next_crossing)
            }
            Course::Varies => {
                let Ranked { running, books, .. } = &*self;
                running.iter().map(|holder| books.crossing(holder)).min()
            }
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
        self.classes[class].first().map(|(seat, task)| (seat, task, class))
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
            candidates,
            blocked: ranked.none_blocked(),
            victims: std::mem::take(&mut ranked.scratch.victims),
            epoch: ranked.epoch,
            numbered: if ranked.numbered { ranked.running.len() } else { 0 },
            number: u32::MAX,
            holders: std::mem::take(&mut ranked.running),
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
            world.start(turn, &demand, &gpus);
            let holder = world.hold(turn.now, seat, task);
            self.insert(holder);
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
        let unnumbered = rest.len().saturating_sub(self.numbered);
        // Among equals those go first that waited before this pass, then those that run, in their order.
        let (rank, tie) = seat;
        let equals_first = tie.epoch >= self.epoch;
        let goes_first =
            |holder: &Holder| holder.seat.0 < rank || (equals_first && holder.seat.0 == rank);
        let mut better = rest[..unnumbered].partition_point(goes_first);
        if better == unnumbered {
            better += rest[unnumbered..].partition_point(|holder| holder.seat < seat);
        }
        let gpus = |holders: &[Holder]| holders.iter().map(|holder| holder.gpus).sum::<u32>();
        let (better, worse) = rest.split_at(better);
        match better.len() < worse.len() {
            true => self.gpus_at_risk -= gpus(better),
            false => self.gpus_at_risk = gpus(worse),
        }
        self.at_risk += better.len();
    }

    /// Gives running tasks from this one on their ties of this pass, which those keep that are preempted
    /// in it.
    pub(super) fn number_from(&mut self, first: usize) {
        let unnumbered = self.holders.len() - self.numbered;
        let fresh = &mut self.holders[first.min(unnumbered)..unnumbered];
        self.numbered += fresh.len();
        for holder in fresh.iter_mut().rev() {
            self.number -= 1;
            holder.seat.1 = Tie { epoch: self.epoch, group: Group::Ran, index: self.number };
        }
    }

    /// GPUs for a task: free ones, or those of tasks that rank worse, which then are preempted.
    fn room(
        &mut self,
        world: &mut World,
        turn: &mut Turn,
        task: TaskId,
        class: usize,
    ) -> Option<(Demand, Gang)> {
        let wanted = world.ranked.classes[class].gang;
        let whole = world.policy.needs_idle();
        if whole && world.gpus.idle() + self.gpus_at_risk < wanted {
            return None;
        }
        let demand = world.demand(task);
        let any = world.policy.place == Place::Any && demand.barred.is_empty();
        let found = if whole && any {
            self.fewest_by_count(world.gpus.idle(), wanted)
        } else if world.rooms_suffice(&demand) {
            self.fewest_by_rooms(world, &demand)
        } else {
            self.fewest(world, turn, &demand, wanted)
        };
        if !found {
            return None;
        }
        let victims = std::mem::take(&mut self.victims);
        for &victim in &victims {
            self.drop_holder(victim.task);
            world.lift_for_good(victim.task);
            self.preempt(world, turn, victim);
        }
        self.victims = victims;
        let gpus = world.find(turn, &demand, Search::Everywhere)?;
        Some((demand, gpus))
    }

    /// Puts a task that starts before all that rank worse.
    pub(super) fn insert(&mut self, holder: Holder) {
        self.numbered = self.numbered.min(self.holders.len() - self.at_risk);
        self.holders.insert(self.at_risk, holder);
        self.at_risk += 1;
    }

    pub(super) fn drop_holder(&mut self, task: TaskId) {
        // Those that go are among the last.
        let at = self.holders.iter().rposition(|holder| holder.task == task);
        self.holders.remove(at.expect("a victim runs"));
        self.numbered -= 1;
    }

    /// Whom to preempt where any GPU will do and counting is enough: from the worst on until there are
    /// enough, and of those, best first, whoever need not go stays.
    pub(super) fn fewest_by_count(&mut self, mut free: u32, wanted: u32) -> bool {
        self.victims.clear();
        let mut first = self.holders.len();
        while free < wanted && first > self.at_risk {
            first -= 1;
            let holder = &self.holders[first];
            if !holder.cancelled {
                free += holder.gpus;
            }
        }
        if free < wanted {
            return false;
        }
        self.number_from(first);
        for holder in &self.holders[first..] {
            if holder.cancelled {
                continue;
            }
            if free - holder.gpus >= wanted {
                free -= holder.gpus;
            } else {
                self.victims.push(*holder);
            }
        }
        true
    }

    /// Whom to preempt, found out by trying.
    fn fewest(&mut self, world: &mut World, turn: &mut Turn, demand: &Demand, wanted: u32) -> bool {
        let whole = world.policy.needs_idle();
        let mut fits = |world: &mut World| {
            (!whole || world.gpus.idle() >= wanted)
                && world.find(turn, demand, Search::Everywhere).is_some()
        };
        self.victims.clear();
        if fits(world) {
            return true;
        }
        self.number_from(self.at_risk);
        let mut lifted = Vec::new();
        let mut found = false;
        for holder in self.holders[self.at_risk..].iter().rev() {
            if holder.cancelled {
                continue;
            }
            lifted.push((holder, world.lift(holder.task)));
            found = fits(world);
            if found {
                break;
            }
        }
        // Best first: whoever can stay beside the newcomer does.
        let mut again = Vec::new();
        for (holder, bookings) in lifted.into_iter().rev() {
            world.put_back(&bookings);
            if found && !fits(world) {
                again.push(world.lift(holder.task));
                self.victims.push(*holder);
            }
        }
        again.iter().for_each(|bookings| world.put_back(bookings));
        found
    }

    fn preempt(&mut self, world: &mut World, turn: &mut Turn, holder: Holder) {
        self.gpus_at_risk -= holder.gpus;
        world.ranked.close(&holder);
        let class = world.preempt(turn, holder.task, holder.seat);
        if self.blocked.len() <= class {
            self.blocked.resize(class + 1, false);
        }
        // It may find room elsewhere.
        self.consider(Some((holder.seat, holder.task, class)));
    }
}

impl World {
    /// Opens the books of a task that just started.
    pub(super) fn hold(&mut self, now: Time, seat: Seat, task: TaskId) -> Holder {
        let record = self.tasks.live(task);
        let (asks, standing) = (Asks::of(record), record.standing);
        let mut holder = self.ranked.books.open(seat, task, asks, standing);
        holder.node = self.only_node(task);
        self.ranked.open(now, &self.policy, &mut holder);
        holder
    }

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
