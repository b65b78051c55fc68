//! The running tasks of a preemptive discipline. A pass looks at all of them and sorts them, so the list
//! that is sorted is short and light; what ranks are worked out from stays where it is.

use super::seat::{Rank, Seat, Tie};
use super::{Asks, Standing, gittins2d};
use crate::policy::{Policy, Queue};
use crate::queue::history::History;
use crate::scheduler::World;
use crate::service::Letter;
use coloc_model::{Millis, NodeId, TaskId, Time};

/// A running task in its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub(super) seat: Seat,
    pub(super) task: TaskId,
    pub(super) gpus: u32,
    /// Where all of its GPUs are, if that is one node and anybody asks.
    pub(super) node: Option<NodeId>,
    /// It is on its way out, so that there is nothing to preempt.
    pub(super) cancelled: bool,
    /// Where its books are.
    page: u32,
    /// Of its priority.
    class: u16,
    /// What its rank is told from without a look into its books, where that can be done: when it will end
    /// by what it declared, or when it changes queue.
    pub(super) due: Time,
}

impl Holder {
    /// The place of a task that is about to start; its books are opened when it does.
    pub(super) fn expected(seat: Seat, task: TaskId, gpus: u32) -> Self {
        let (node, page) = (None, u32::MAX);
        Holder { seat, task, gpus, node, cancelled: false, page, class: 0, due: Time::NEVER }
    }
}

/// How the ranks of running tasks change with time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// Remaining time, or GPUs times it: falls with the clock.
    Falls,
    /// By the paper's queues: the same until a limit is crossed.
    Holds,
    /// By the paper's queues and an index that follows attained service.
    Follows,
    /// Whatever the books say.
    Varies,
}

impl Course {
    pub(super) fn of(policy: &Policy) -> Self {
        let Policy { queue, service, .. } = policy;
        let has_queues = service.letter == Letter::Paper && service.thresholds.is_some();
        match queue {
            Queue::Srtf | Queue::Srsf => Course::Falls,
            Queue::Las2d if has_queues => Course::Holds,
            Queue::Gittins2d if has_queues => Course::Follows,
            _ => Course::Varies,
        }
    }
}

/// What a running task's rank is worked out from; its standing does not change while it runs.
#[derive(Clone, Copy, Debug)]
struct Page {
    asks: Asks,
    standing: Standing,
    /// When it changes queue, if it goes on; never in the last.
    crossing: Time,
}

/// The books of those that run.
#[derive(Clone, Default, Debug)]
pub(super) struct Books {
    pages: Vec<Page>,
    /// What the Gittins index of each is made of; apart, because a pass reads all of them.
    stages: Vec<gittins2d::Stage>,
    free: Vec<u32>,
    /// GPUs that they hold together.
    gpus: u32,
}

impl Books {
    /// A page for a task that starts.
    pub(super) fn open(
        &mut self,
        seat: Seat,
        task: TaskId,
        asks: Asks,
        standing: Standing,
    ) -> Holder {
        let page = Page { asks, standing, crossing: Time::START };
        let due = match asks.duration {
            Some(span) => standing.since + Millis(span.0.saturating_sub(standing.done.0)),
            None => Time::NEVER,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.pages[number as usize] = page;
                self.stages[number as usize].forget();
                number
            }
            None => {
                self.pages.push(page);
                self.stages.push(gittins2d::Stage::UNKNOWN);
                self.pages.len() as u32 - 1
            }
        };
        self.gpus += asks.gpus;
        let Asks { gpus, class, .. } = asks;
        Holder { seat, task, gpus, node: None, cancelled: false, page: number, class, due }
    }

    pub(super) fn close(&mut self, holder: &Holder) {
        self.free.push(holder.page);
        self.gpus -= holder.gpus;
    }

    /// GPUs that all of them hold.
    pub(super) fn gpus(&self) -> u32 {
        self.gpus
    }

    /// Its priority has changed, and with it the rank that holds until something else does.
    pub(super) fn set_class(&mut self, holder: &mut Holder, class: u16) {
        holder.class = class;
        holder.seat.0 = holder.seat.0.in_class(class);
        self.pages[holder.page as usize].asks.class = class;
        self.stages[holder.page as usize].forget();
    }

    /// A running task's rank, where it falls with the clock.
    pub(super) fn falling(now: Time, policy: &Policy, holder: &Holder) -> Rank {
        let left = match holder.due {
            Time::NEVER => u64::MAX,
            due => due.since(now).0,
        };
        let weight = if policy.queue == Queue::Srsf { u64::from(holder.gpus) } else { 1 };
        Rank::by(left.saturating_mul(weight)).in_class(holder.class)
    }

    /// A running task's rank, where it holds until a limit is crossed.
    pub(super) fn holding(
        &mut self,
        now: Time,
        policy: &Policy,
        history: &History,
        holder: &mut Holder,
    ) -> Rank {
        if now < holder.due {
            return holder.seat.0;
        }
        let page = &mut self.pages[holder.page as usize];
        let rank = page.rank(now, policy, history);
        holder.due = page.crossing;
        rank
    }

    /// A running task's rank, where its index follows what it attained.
    #[inline]
    pub(super) fn following(
        &mut self,
        now: Time,
        policy: &Policy,
        history: &History,
        holder: &mut Holder,
    ) -> Rank {
        let known = self.stages[holder.page as usize].rank(now);
        known.unwrap_or_else(|| self.go_on(now, policy, history, holder))
    }

    /// What its index was made of is over. Apart, so that the common case is inlined.
    #[inline(never)]
    fn go_on(
        &mut self,
        now: Time,
        policy: &Policy,
        history: &History,
        holder: &mut Holder,
    ) -> Rank {
        let stage = &mut self.stages[holder.page as usize];
        if let Some(rank) = stage.go_on(now, history) {
            return rank;
        }
        // The task starts, or its queue is over, or every index has changed.
        let page = &mut self.pages[holder.page as usize];
        page.cross(now, policy);
        holder.due = page.crossing;
        let Page { asks, standing, .. } = page;
        *stage = gittins2d::Stage::of(now, &policy.service, history, asks, standing);
        stage.rank_now(now)
    }

    pub(super) fn standing_mut(&mut self, holder: &Holder) -> &mut Standing {
        &mut self.pages[holder.page as usize].standing
    }

    pub(super) fn crossing(&self, holder: &Holder) -> Time {
        self.pages[holder.page as usize].crossing
    }

    /// Indices have changed.
    pub(super) fn forget_stages(&mut self) {
        self.stages.iter_mut().for_each(gittins2d::Stage::forget);
    }

    /// A running task's rank now, and the tie that it was last given; works out anew what does not hold
    /// any more.
    #[inline]
    pub(super) fn look_at(
        &mut self,
        now: Time,
        policy: &Policy,
        history: &History,
        holder: &Holder,
    ) -> (Rank, Tie) {
        let page = &mut self.pages[holder.page as usize];
        (page.rank(now, policy, history), page.standing.seat.1)
    }
}

impl Page {
    #[inline]
    fn rank(&mut self, now: Time, policy: &Policy, history: &History) -> Rank {
        let Page { asks, standing, .. } = self;
        let service = &policy.service;
        if service.letter == Letter::Simulator || !service.thresholds.is_some() {
            let crossing = World::crossing(policy, now, asks.gpus, standing);
            self.crossing = crossing.unwrap_or(Time::NEVER);
            return super::rank(now, policy, history, asks, standing, true);
        }
        self.cross(now, policy);
        let Page { asks, standing, .. } = self;
        super::rank(now, policy, history, asks, standing, true)
    }

    /// By the paper, the time at which a running task crosses a limit is known when it starts.
    fn cross(&mut self, now: Time, policy: &Policy) {
        if self.crossing <= now {
            let crossing = World::crossing(policy, now, self.asks.gpus, &self.standing);
            self.crossing = crossing.unwrap_or(Time::NEVER);
        }
    }
}
