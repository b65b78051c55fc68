//! What lies ahead: a copy of a live scheduler, played on until its tasks have started and ended.
//!
//! It is the very scheduler that decides, with everything that it knows, so what it would do next is what it does
//! here. What it cannot know is assumed: tasks take as long as the caller expects of them, end well, and no user
//! submits another. A task of which it is not known how long it takes never ends here.

mod known;

use crate::event_loop::{EventLoop, What, World};
use coloc_core::eligibility::{Conditions, Eligibility, Facts, Ineligible};
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{
    Activity, Bytes, GpuId, GpuSignal, Millis, Outcome, Placement, Task, TaskId, TaskState, Time,
    UserId,
};
use coloc_physics::{Profile, SharedGpu};
use known::Known;
use rustc_hash::FxHashMap;

/// A task that would wait longer than this waits for something that does not come.
const HORIZON: Millis = Millis::from_secs(5 * 365 * 86_400);

/// What is expected of a task on its GPUs.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Expectation {
    /// How long it will be there; `None` if that is not known.
    pub run: Option<Millis>,
    /// How busy it keeps each of them.
    pub activity: Activity,
    /// Memory that it comes to hold on each.
    pub memory: Bytes,
    /// How long it takes from now, or from its start, until it trains with that much.
    pub warm_up: Millis,
}

impl Expectation {
    /// What is expected of a task of which SM activity alone is known: about half of it in occupancy and in DRAM.
    pub fn new(run: Option<Millis>, sm: f64, memory: Bytes) -> Self {
        let Profile { activity, memory, .. } = Profile::new(sm, sm, sm / 2.0, sm / 2.0, memory);
        Expectation { run, activity, memory, warm_up: Millis::ZERO }
    }
}

/// What was foreseen.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Foreseen {
    /// When tasks that wait are started first.
    pub starts: FxHashMap<TaskId, Time>,
    /// On which GPUs.
    pub places: FxHashMap<TaskId, Vec<GpuId>>,
    /// When tasks end.
    pub ends: FxHashMap<TaskId, Time>,
    /// It took too long to see further.
    pub cut_short: bool,
}

/// What is due at one time, in the order in which it is played.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    End { task: TaskId, stamp: u32 },
    Train { task: TaskId, stamp: u32 },
}

/// A task on its GPUs.
struct Stay {
    placement: Placement,
    end: Option<Time>,
    stamp: u32,
}

/// How tasks ended of which the forecast was not told.
pub type Past<'a> = &'a dyn Fn(TaskId) -> Option<Facts>;

/// A scheduler and what it has to expect.
pub struct Forecast<'a> {
    events: EventLoop<Due>,
    expected: FxHashMap<TaskId, Expectation>,
    /// Work that preempted tasks have left; `None` inside if that is not known.
    left: FxHashMap<TaskId, Option<Millis>>,
    stays: FxHashMap<TaskId, Stay>,
    crowds: FxHashMap<GpuId, Vec<TaskId>>,
    eligibility: Eligibility,
    known: Known<'a>,
    stamps: u32,
    foreseen: Foreseen,
}

impl<'a> Forecast<'a> {
    /// A forecast from `now` on; the scheduler wants to be woken at `wake`.
    pub fn new(scheduler: Scheduler, now: Time, wake: Time, past: Past<'a>) -> Self {
        let mut events = EventLoop::new(scheduler, now);
        if wake != Time::NEVER {
            events.wake_at(wake);
        }
        Forecast {
            events,
            expected: FxHashMap::default(),
            left: FxHashMap::default(),
            stays: FxHashMap::default(),
            crowds: FxHashMap::default(),
            eligibility: Eligibility::default(),
            known: Known::new(past),
            stamps: 0,
            foreseen: Foreseen::default(),
        }
    }

    /// How a task stands that has not ended, and what its user calls it, before what is expected of it is told.
    pub fn stands(&mut self, task: TaskId, facts: Facts, user: UserId, name: &str) {
        self.known.stands(task, facts, user, name);
        self.eligibility.named(task, user, name);
    }

    /// A task that the scheduler has started; `end` is when it is expected to leave.
    pub fn runs(
        &mut self,
        task: TaskId,
        placement: Placement,
        end: Option<Time>,
        expected: Expectation,
    ) {
        self.waits(task, expected);
        let now = self.events.now;
        self.known.started(task, now);
        self.arrive(task, placement, end.map(|end| end.max(now)));
        // By the contract others wait for what it shows; of one that has settled, all is known.
        let scheduler = &self.events.scheduler;
        let settles = scheduler.promised(task).is_some_and(|promised| !promised.settled);
        if scheduler.policy().contract.is_some() && settles {
            self.will_train(task, expected);
        }
    }

    /// A task that waits in the scheduler.
    pub fn waits(&mut self, task: TaskId, expected: Expectation) {
        self.expected.insert(task, expected);
        self.known.waits(task);
        if let Some(array) = self.known.array(task) {
            self.eligibility.admitted(task, array);
        }
    }

    /// A task of which the scheduler will hear once it is eligible.
    pub fn comes(&mut self, task: Task, conditions: Conditions, expected: Expectation) {
        self.expected.insert(task.id, expected);
        self.eligibility.look_at(task.id);
        self.known.comes(task, conditions);
    }

    /// Plays on until `target` has ended, or all tasks; `go_on` is asked with the number of decisions before each step.
    pub fn play(
        mut self,
        target: Option<TaskId>,
        mut go_on: impl FnMut(usize) -> bool,
    ) -> Foreseen {
        let last = self.events.now + HORIZON;
        let mut decisions = 0;
        while let Some(at) = self.next_time() {
            if at > last || target.is_some_and(|task| self.foreseen.ends.contains_key(&task)) {
                break;
            }
            if !go_on(decisions) {
                self.foreseen.cut_short = true;
                break;
            }
            decisions += usize::from(self.advance(at));
        }
        self.foreseen
    }

    fn play_due(&mut self, now: Time, due: Due) {
        let (Due::End { task, stamp } | Due::Train { task, stamp }) = due;
        if self.stays.get(&task).is_none_or(|stay| stay.stamp != stamp) {
            return;
        }
        match due {
            Due::End { .. } => {
                self.leave(task);
                self.tell(now, Event::Ended { task, outcome: Outcome::Completed });
            }
            Due::Train { .. } => self.trains(task),
        }
    }

    /// Looks at the next task that may be eligible.
    fn look(&mut self, now: Time) {
        let Some((task, verdict)) = self.eligibility.next(now, &self.known) else { return };
        match verdict {
            Ok(()) => {
                if let Some(task) = self.known.came(task) {
                    self.tell(now, Event::Submitted(task));
                }
            }
            Err(Ineligible::DependencyNeverSatisfied(_)) => self.ended(task, false),
            Err(_) => {}
        }
    }

    fn ended(&mut self, task: TaskId, ok: bool) {
        let now = self.events.now;
        let (array, user, name) = self.known.ended(task, now, ok);
        self.eligibility.ended(task, array, user, &name);
    }

    fn launch(&mut self, task: TaskId, placement: Placement) {
        let now = self.events.now;
        self.foreseen.starts.entry(task).or_insert(now);
        self.known.started(task, now);
        self.eligibility.started(task);
        let expected = self.expected.get(&task).copied().unwrap_or_default();
        let run = self.left.remove(&task).unwrap_or(expected.run);
        let end = run.map(|run| now + run.max(Millis(1)));
        let gpus: Vec<GpuId> = placement.gpus().collect();
        self.foreseen.places.entry(task).or_insert_with(|| gpus.clone());
        self.arrive(task, placement, end);
        self.show(&gpus);
        self.will_train(task, expected);
    }

    /// A task on its GPUs is seen to train once it is warm.
    fn will_train(&mut self, task: TaskId, expected: Expectation) {
        let Some(stay) = self.stays.get(&task) else { return };
        let scheduler = &self.events.scheduler;
        if !scheduler.watches_tasks() || expected.memory == Bytes::ZERO {
            return;
        }
        if scheduler.policy().contract.is_none() {
            return self.trains(task);
        }
        // Also if that is now: after every moment the scheduler says when it wants to look at evidence.
        let due = Due::Train { task, stamp: stay.stamp };
        self.events.agenda.add(self.events.now + expected.warm_up, due);
    }

    /// A monitor sees what a task holds, and that it is at work.
    fn trains(&mut self, task: TaskId) {
        let Some(expected) = self.expected.get(&task) else { return };
        let activity = Some(expected.activity.sm);
        let event = Event::TaskSeen { task, used: expected.memory, activity };
        self.tell(self.events.now, event);
    }

    fn arrive(&mut self, task: TaskId, placement: Placement, end: Option<Time>) {
        self.stamps += 1;
        let stamp = self.stamps;
        for gpu in placement.gpus() {
            self.crowds.entry(gpu).or_default().push(task);
        }
        if let Some(end) = end {
            self.events.agenda.add(end, Due::End { task, stamp });
        }
        self.stays.insert(task, Stay { placement, end, stamp });
    }

    /// Takes a task off its GPUs, of which a monitor sees no less.
    fn leave(&mut self, task: TaskId) -> Option<Stay> {
        let stay = self.stays.remove(&task)?;
        let gpus: Vec<GpuId> = stay.placement.gpus().collect();
        for gpu in &gpus {
            self.crowds.entry(*gpu).or_default().retain(|other| *other != task);
        }
        self.show(&gpus);
        Some(stay)
    }

    fn preempt(&mut self, task: TaskId) {
        if let Some(stay) = self.leave(task) {
            self.left.insert(task, stay.end.map(|end| end.since(self.events.now)));
        }
    }

    fn retire(&mut self, task: TaskId, state: TaskState) {
        if state == TaskState::Completed {
            self.foreseen.ends.insert(task, self.events.now);
        }
        self.ended(task, state == TaskState::Completed);
    }

    /// What a monitor sees of GPUs whose crowd has changed.
    fn show(&mut self, gpus: &[GpuId]) {
        if !self.events.scheduler.watches_gpus() {
            return;
        }
        for &gpu in gpus {
            let crowd = self.crowds.get(&gpu).into_iter().flatten();
            let known: Vec<Expectation> =
                crowd.filter_map(|task| self.expected.get(task).copied()).collect();
            let activity = SharedGpu::observed(known.iter().map(|each| (each.activity, 1.0)));
            let used = known.iter().map(|each| each.memory).sum();
            let signal = GpuSignal { activity, used };
            self.tell(self.events.now, Event::GpuSeen { gpu, signal });
        }
    }
}

impl World for Forecast<'_> {
    type Due = Due;

    fn event_loop(&mut self) -> &mut EventLoop<Due> {
        &mut self.events
    }

    fn next_time(&self) -> Option<Time> {
        let now = self.events.now;
        let look = match self.eligibility.has_more() {
            true => Some(now),
            false => self.eligibility.next_time().map(|at| at.max(now)),
        };
        self.events.agenda.next_time().into_iter().chain(look).min()
    }

    fn happen(&mut self, at: Time) {
        self.events.now = at;
        if self.events.agenda.next_time() != Some(at) {
            return self.look(at);
        }
        match self.events.agenda.pop() {
            Some((_, What::Due(due))) => self.play_due(at, due),
            Some((_, What::Wake)) => self.tell(at, Event::Wake),
            None => {}
        }
    }

    fn carry_out(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Launch { task, placement } => self.launch(task, placement),
            Effect::Preempt(task) => self.preempt(task),
            Effect::Stop(task) => {
                self.leave(task);
                self.tell(now, Event::Stopped(task));
            }
            Effect::Retire { task, state } => self.retire(task, state),
            Effect::WakeAt(at) => self.events.wake_at(at),
        }
    }
}
