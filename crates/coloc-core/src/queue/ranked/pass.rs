//! The walk: in the order of ranks, whoever fits gets GPUs; running tasks that lost their place go.

use super::holders::{Books, Course};
use super::seat::{Group, Seat, Tie};
use super::{Asks, Holder, Ranked};
use crate::gpus::Booking;
use crate::place::Search;
use crate::policy::{Place, Policy, Queue};
use crate::scheduler::{Turn, World};
use crate::service::Letter;
use coloc_model::{GpuId, TaskId, Time};
use std::cmp::Reverse;

/// A waiting task with its class.
type Candidate = (Seat, TaskId, usize);

/// Running tasks that are moved one by one; with more, all are sorted.
const FEW: usize = 16;

/// Buffers of a walk, kept for their memory.
#[derive(Clone, Default, Debug)]
pub(super) struct Scratch {
    heads: Vec<Candidate>,
    blocked: Vec<bool>,
}

/// One walk over all tasks.
struct Walk {
    /// Running tasks, best first.
    holders: Vec<Holder>,
    /// Holders before this one rank better than whoever is considered.
    at_risk: usize,
    /// GPUs of those from there on.
    gpus_at_risk: u32,
    /// Waiting tasks to be considered, one of each class and those that were preempted; the best is last.
    candidates: Vec<Candidate>,
    /// Classes of which one found no room.
    blocked: Vec<bool>,
}

pub(crate) fn run(world: &mut World, turn: &mut Turn) {
    let now = turn.now;
    world.promote_the_starving(now);
    world.demote(now);
    let mut walk = Walk::new(world, now);
    let mut before = None;
    while let Some((seat, task, class)) = walk.candidates.pop() {
        if turn.is_over() {
            break;
        }
        // Whoever was preempted in this pass may be named twice, the second time right after the first.
        if walk.blocked[class] || before.replace(task) == Some(task) {
            continue;
        }
        if world.over_quota(task).is_some() {
            walk.blocked[class] = true;
            continue;
        }
        walk.pass_better_holders(seat);
        let Some(gpus) = walk.room(world, turn, task, class) else {
            walk.blocked[class] = true;
            continue;
        };
        world.start(turn, task, gpus);
        let record = world.tasks.live(task);
        let (asks, standing) = (Asks::of(record), record.standing);
        let mut holder = world.ranked.books.open(seat, task, asks, standing);
        world.ranked.open(now, &world.policy, &mut holder);
        walk.holders.insert(walk.at_risk, holder);
        walk.at_risk += 1;
        walk.consider(world.ranked.head(class));
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

/// Gives each running task its seat, and puts them in order.
fn reseat(holders: &mut [Holder], mut seat: impl FnMut(u32, &mut Holder) -> Seat) {
    let mut moves = 0;
    let mut last = Seat::default();
    for index in 0..holders.len() {
        let holder = &mut holders[index];
        let found = seat(index as u32, holder);
        holder.seat = found;
        if index == 0 || last <= found {
            last = found;
            continue;
        }
        // Mostly they still are in order, but for a few.
        moves += 1;
        if moves <= FEW {
            let at = holders[..index].partition_point(|holder| holder.seat <= found);
            holders[at..=index].rotate_right(1);
        } else {
            last = found;
        }
    }
    if moves > FEW {
        holders.sort_by_key(|holder| holder.seat);
    }
}

impl Ranked {
    /// Works out the rank of a task that just started, and when it changes queue.
    pub(super) fn open(&mut self, now: Time, policy: &Policy, holder: &mut Holder) {
        let Ranked { books, history, .. } = self;
        match Course::of(policy) {
            Course::Falls => holder.seat.0 = Books::falling(now, policy, holder),
            Course::Holds | Course::Follows | Course::Varies => {
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

    fn none_blocked(&mut self, classes: usize) -> Vec<bool> {
        let mut blocked = std::mem::take(&mut self.scratch.blocked);
        blocked.clear();
        blocked.resize(classes, false);
        blocked
    }

    /// The best waiting task of a class.
    fn head(&self, class: usize) -> Option<Candidate> {
        self.classes[class].first_key_value().map(|(&seat, &task)| (seat, task, class))
    }
}

impl Walk {
    fn new(world: &mut World, now: Time) -> Self {
        let letter = world.policy.service.letter;
        let epoch = match letter {
            Letter::Paper => world.ranked.epoch,
            // Those that run stand at the head of the simulator's lists.
            Letter::Simulator => -world.ranked.epoch,
        };
        let mut holders = std::mem::take(&mut world.ranked.running);
        // Who cannot be preempted needs no place.
        if world.policy.queue != Queue::Sjf {
            let Ranked { books, history, epoch: pass, steady_until, .. } = &mut world.ranked;
            let steady_until = *steady_until;
            let (policy, pass) = (&world.policy, *pass);
            let ran = |index| Tie { epoch, group: Group::Ran, index };
            match Course::of(policy) {
                _ if now < steady_until => {
                    debug_assert!(holders.is_sorted_by_key(|holder| holder.seat.0));
                    for (index, holder) in (0..).zip(&mut holders) {
                        holder.seat.1 = ran(index);
                    }
                }
                Course::Falls => reseat(&mut holders, |index, holder| {
                    (Books::falling(now, policy, holder), ran(index))
                }),
                Course::Holds => reseat(&mut holders, |index, holder| {
                    (books.holding(now, policy, history, holder), ran(index))
                }),
                Course::Follows => reseat(&mut holders, |index, holder| {
                    (books.following(now, policy, history, holder), ran(index))
                }),
                Course::Varies => reseat(&mut holders, |index, holder| {
                    let (rank, own) = books.look_at(now, policy, history, holder);
                    let moved = own.group == Group::Moved && own.epoch == pass;
                    (rank, if moved { own } else { ran(index) })
                }),
            }
        }
        let classes = world.ranked.classes.len();
        let mut walk = Walk {
            at_risk: 0,
            gpus_at_risk: holders.iter().map(|holder| holder.gpus).sum(),
            holders,
            candidates: world.ranked.heads(),
            blocked: world.ranked.none_blocked(classes),
        };
        if world.policy.queue == Queue::Sjf {
            (walk.at_risk, walk.gpus_at_risk) = (walk.holders.len(), 0);
        }
        walk
    }

    fn consider(&mut self, candidate: Option<Candidate>) {
        let Some(candidate) = candidate else { return };
        let better = self.candidates.iter().rev().take_while(|&&other| other < candidate).count();
        self.candidates.insert(self.candidates.len() - better, candidate);
    }

    fn pass_better_holders(&mut self, seat: Seat) {
        while let Some(holder) = self.holders.get(self.at_risk)
            && holder.seat < seat
        {
            self.gpus_at_risk -= holder.gpus;
            self.at_risk += 1;
        }
    }

    /// GPUs for a task: free ones, or those of tasks that rank worse, which then are preempted.
    fn room(
        &mut self,
        world: &mut World,
        turn: &mut Turn,
        task: TaskId,
        class: usize,
    ) -> Option<Vec<GpuId>> {
        let wanted = world.ranked.gangs[class];
        let whole = world.policy.needs_idle();
        if whole && world.gpus.idle() + self.gpus_at_risk < wanted {
            return None;
        }
        let victims = if whole && world.policy.place == Place::Any {
            self.fewest_by_count(world, wanted)
        } else {
            self.fewest(world, turn, task, wanted)
        };
        let victims = victims?;
        for victim in victims {
            // Those that go are among the last.
            let at = self.holders.iter().rposition(|holder| holder.task == victim.task);
            self.holders.remove(at.expect("a victim runs"));
            self.preempt(world, turn, victim);
        }
        world.find(turn, task, Search::Everywhere)
    }

    /// Whom to preempt where any GPU will do and counting is enough: from the worst on until there are
    /// enough, and of those, best first, whoever need not go stays.
    fn fewest_by_count(&self, world: &mut World, wanted: u32) -> Option<Vec<Holder>> {
        let mut free = world.gpus.idle();
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
                world.lift_for_good(holder.task);
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
        task: TaskId,
        wanted: u32,
    ) -> Option<Vec<Holder>> {
        let whole = world.policy.needs_idle();
        let mut fits = |world: &mut World| {
            (!whole || world.gpus.idle() >= wanted)
                && world.find(turn, task, Search::Everywhere).is_some()
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
    fn lift_for_good(&mut self, task: TaskId) {
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
