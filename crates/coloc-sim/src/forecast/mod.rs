//! What lies ahead: a copy of a live scheduler, played on until its tasks have started and ended.
//!
//! It is the very scheduler that decides, with everything that it knows, so what it would do next is what it does
//! here. What it cannot know is assumed: tasks take as long as the caller expects of them, end well, and nobody else
//! submits anything. A task of which nobody knows how long it takes never ends here.

mod gates;

pub use gates::Gate;

use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{
    Activity, Bytes, GpuId, GpuSignal, Millis, Outcome, Placement, Task, TaskId, TaskState, Time,
};
use coloc_physics::{Profile, SharedGpu};
use gates::Gates;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Who would wait longer than this waits for something that does not come.
const HORIZON: Millis = Millis::from_secs(5 * 365 * 86_400);

/// What is expected of a task on its GPUs.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Expectation {
    /// How long it will be there; `None` if nobody knows.
    pub run: Option<Millis>,
    /// How busy it keeps each of them.
    pub activity: Activity,
    /// Memory that it comes to hold on each.
    pub memory: Bytes,
}

impl Expectation {
    /// What is expected of a task of which SM activity alone is known: about half of it in occupancy and in DRAM.
    pub fn new(run: Option<Millis>, sm: f64, memory: Bytes) -> Self {
        let Profile { activity, memory, .. } = Profile::new(sm, sm, sm / 2.0, sm / 2.0, memory);
        Expectation { run, activity, memory }
    }
}

/// What was foreseen.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Foreseen {
    /// When tasks that wait are started first.
    pub starts: FxHashMap<TaskId, Time>,
    /// When tasks end.
    pub ends: FxHashMap<TaskId, Time>,
    /// It took too long to see further.
    pub cut_short: bool,
}

/// What is due at one moment, in the order in which it is played.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    End { task: TaskId, stamp: u32 },
    Open(TaskId),
    Wake,
}

/// A task on its GPUs.
struct Stay {
    placement: Placement,
    end: Option<Time>,
    stamp: u32,
}

/// A scheduler and what it has to expect.
pub struct Forecast {
    scheduler: Scheduler,
    now: Time,
    expected: FxHashMap<TaskId, Expectation>,
    /// Work that preempted tasks have left; `None` inside if nobody knows.
    left: FxHashMap<TaskId, Option<Millis>>,
    stays: FxHashMap<TaskId, Stay>,
    crowds: FxHashMap<GpuId, Vec<TaskId>>,
    gates: Gates,
    agenda: BinaryHeap<Reverse<(Time, Due)>>,
    next_wake: Time,
    stamps: u32,
    foreseen: Foreseen,
    wishes: Vec<Effect>,
}

impl Forecast {
    /// A forecast from `now` on; the scheduler wants to be woken at `wake`.
    pub fn new(scheduler: Scheduler, now: Time, wake: Time) -> Self {
        let mut forecast = Forecast {
            scheduler,
            now,
            expected: FxHashMap::default(),
            left: FxHashMap::default(),
            stays: FxHashMap::default(),
            crowds: FxHashMap::default(),
            gates: Gates::default(),
            agenda: BinaryHeap::new(),
            next_wake: Time::NEVER,
            stamps: 0,
            foreseen: Foreseen::default(),
            wishes: Vec::new(),
        };
        if wake != Time::NEVER {
            forecast.wake_at(wake.max(now));
        }
        forecast
    }

    /// A task that the scheduler has started; `end` is when it is expected to leave.
    pub fn runs(
        &mut self,
        task: TaskId,
        placement: Placement,
        end: Option<Time>,
        expected: Expectation,
    ) {
        self.expected.insert(task, expected);
        self.arrive(task, placement, end.map(|end| end.max(self.now)));
    }

    /// A task that waits in the scheduler.
    pub fn waits(&mut self, task: TaskId, expected: Expectation) {
        self.expected.insert(task, expected);
    }

    /// A task of which the scheduler will hear once its gate is open.
    pub fn comes(&mut self, task: Task, gate: Gate, expected: Expectation) {
        self.expected.insert(task.id, expected);
        let begin = gate.begin.unwrap_or(self.now).max(self.now);
        self.agenda.push(Reverse((begin, Due::Open(task.id))));
        self.gates.add(task, gate);
    }

    /// A task of an array is among those that may be at work at once.
    pub fn at_work(&mut self, task: TaskId, array: TaskId) {
        self.gates.at_work(task, array);
    }

    /// Plays on until `target` has ended, or everybody; `go_on` is asked before every step.
    pub fn play(
        mut self,
        target: Option<TaskId>,
        mut go_on: impl FnMut(usize) -> bool,
    ) -> Foreseen {
        let last = self.now + HORIZON;
        let mut steps = 0;
        while let Some(&Reverse((at, _))) = self.agenda.peek() {
            if at > last || target.is_some_and(|task| self.foreseen.ends.contains_key(&task)) {
                break;
            }
            if !go_on(steps) {
                self.foreseen.cut_short = true;
                break;
            }
            steps += 1;
            self.moment(at);
        }
        self.foreseen
    }

    /// Everything that is due at one time, and what the scheduler makes of it.
    fn moment(&mut self, at: Time) {
        self.now = at;
        while let Some(&Reverse((due_at, due))) = self.agenda.peek()
            && due_at == at
        {
            self.agenda.pop();
            match due {
                Due::End { task, stamp } => {
                    if self.stays.get(&task).is_some_and(|stay| stay.stamp == stamp) {
                        self.leave(task);
                        let outcome = Outcome::Completed;
                        self.tell(Event::Ended { task, outcome });
                    }
                }
                Due::Open(task) => self.gates.knock(task),
                Due::Wake => {
                    if self.next_wake <= at {
                        self.next_wake = Time::NEVER;
                    }
                    self.tell(Event::Wake);
                }
            }
        }
        loop {
            for task in self.gates.open(at) {
                self.tell(Event::Submitted(task));
            }
            self.scheduler.decide(at, &mut self.wishes);
            self.carry_out();
            if !self.gates.anyone_knocks() {
                return;
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.scheduler.note(self.now, event, &mut self.wishes);
        self.carry_out();
    }

    fn carry_out(&mut self) {
        while !self.wishes.is_empty() {
            for wish in std::mem::take(&mut self.wishes) {
                match wish {
                    Effect::Launch { task, placement } => self.launch(task, placement),
                    Effect::Preempt(task) => self.preempt(task),
                    Effect::Stop(task) => {
                        self.leave(task);
                        self.scheduler.note(self.now, Event::Stopped(task), &mut self.wishes);
                    }
                    Effect::Retire { task, state } => self.retire(task, state),
                    Effect::WakeAt(at) => self.wake_at(at),
                }
            }
        }
    }

    fn launch(&mut self, task: TaskId, placement: Placement) {
        self.foreseen.starts.entry(task).or_insert(self.now);
        let expected = self.expected.get(&task).copied().unwrap_or_default();
        let run = self.left.remove(&task).unwrap_or(expected.run);
        let end = run.map(|run| self.now + run.max(Millis(1)));
        let gpus: Vec<GpuId> = placement.gpus().collect();
        self.arrive(task, placement, end);
        self.show(&gpus);
        if self.scheduler.watches_tasks() && expected.memory > Bytes::ZERO {
            let event = Event::TaskSeen { task, used: expected.memory };
            self.scheduler.note(self.now, event, &mut self.wishes);
        }
    }

    fn arrive(&mut self, task: TaskId, placement: Placement, end: Option<Time>) {
        self.stamps += 1;
        let stamp = self.stamps;
        for gpu in placement.gpus() {
            self.crowds.entry(gpu).or_default().push(task);
        }
        if let Some(end) = end {
            self.agenda.push(Reverse((end, Due::End { task, stamp })));
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
            self.left.insert(task, stay.end.map(|end| end.since(self.now)));
        }
    }

    fn retire(&mut self, task: TaskId, state: TaskState) {
        if state == TaskState::Completed {
            self.foreseen.ends.insert(task, self.now);
        }
        self.gates.ended(task);
    }

    fn wake_at(&mut self, at: Time) {
        if at < self.next_wake {
            self.next_wake = at;
            self.agenda.push(Reverse((at.max(self.now), Due::Wake)));
        }
    }

    /// What a monitor sees of GPUs whose crowd has changed.
    fn show(&mut self, gpus: &[GpuId]) {
        if !self.scheduler.watches_gpus() {
            return;
        }
        for &gpu in gpus {
            let crowd = self.crowds.get(&gpu).into_iter().flatten();
            let known: Vec<Expectation> =
                crowd.filter_map(|task| self.expected.get(task).copied()).collect();
            let activity = SharedGpu::observed(known.iter().map(|each| (each.activity, 1.0)));
            let used = known.iter().map(|each| each.memory).sum();
            let signal = GpuSignal { activity, used };
            self.scheduler.note(self.now, Event::GpuSeen { gpu, signal }, &mut self.wishes);
        }
    }
}
