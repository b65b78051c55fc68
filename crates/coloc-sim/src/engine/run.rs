//! One simulation run.

use super::clock::{Agenda, What};
use super::crowd::Scratch;
use super::device::{Device, Figures};
use super::seats::Seats;
use super::{Observer, Simulation, SimulationError};
use crate::bound::makespan_bound;
use crate::metrics::{FleetTotals, Summary, TaskResult};
use crate::trace::Trace;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Share, Task, TaskState, Time};

/// With more live tasks than this, invariants are checked only now and then.
const CHECK_EVERY_STEP: usize = 500;
const PROGRESS_STEP: usize = 1 << 12;
/// After so many preemptions in a row by which no task got any further, none ever will.
const FRUITLESS: u64 = 100_000;

pub(super) struct Run<'a, O> {
    pub(super) simulation: &'a Simulation,
    pub(super) trace: &'a Trace,
    submissions: std::vec::IntoIter<Task>,
    next_submission: usize,
    scheduler: Scheduler,
    /// The scheduler wants to know what a monitor sees.
    pub(super) monitored: bool,
    /// It wants to know how much memory tasks hold.
    pub(super) watched: bool,
    /// Somebody looks at GPUs as they change: the scheduler or the observer.
    pub(super) looked_at: bool,
    /// Tasks have GPUs to themselves and nobody looks at the memory that they hold.
    pub(super) unseen: bool,
    /// So that nobody's speed depends on anybody else.
    pub(super) alone: bool,
    pub(super) observer: &'a mut O,
    pub(super) agenda: Agenda,
    pub(super) devices: Vec<Device>,
    pub(super) seats: Seats,
    pub(super) results: Vec<TaskResult>,
    /// Milliseconds of work that each task has to do when it is next launched.
    pub(super) left: Vec<f64>,
    /// Preemptions in a row by which no task got any further.
    pub(super) fruitless: u64,
    ended: usize,
    makespan: Time,
    steps: u64,
    pub(super) scratch: Scratch,
    /// The moment that is being played.
    now: Time,
    /// Effects of this moment in the order of their decision, and how many were carried out.
    wishes: Vec<Effect>,
    done: usize,
    /// They are being carried out.
    busy: bool,
}

impl<'a, O: Observer> Run<'a, O> {
    pub(super) fn new(
        simulation: &'a Simulation,
        trace: &'a Trace,
        submissions: Vec<Task>,
        scheduler: Scheduler,
        observer: &'a mut O,
    ) -> Self {
        let gpus = simulation.fleet.gpus();
        let mut devices: Vec<Device> = gpus.iter().map(|gpu| Device::new(gpu.model)).collect();
        for (gpu, device) in devices.iter_mut().enumerate() {
            let Figures { signal, power } = device.figures(&simulation.power);
            observer.gpu_changed(Time::START, gpu, &signal, power.watts());
        }
        let pending = TaskResult {
            start: None,
            end: None,
            state: TaskState::Pending,
            preemptions: 0,
            ooms: 0,
            ran_s: 0.0,
            energy_j: 0.0,
        };
        let (monitored, watched) = (scheduler.watches_gpus(), scheduler.watches_tasks());
        let looked_at = monitored || observer.sees_gpus();
        let unseen = simulation.policy.needs_idle() && !looked_at && !watched;
        Run {
            simulation,
            trace,
            results: vec![pending; submissions.len()],
            left: trace.tasks().iter().map(|task| task.duration.0 as f64).collect(),
            submissions: submissions.into_iter(),
            next_submission: 0,
            monitored,
            watched,
            looked_at,
            unseen,
            // A part of a GPU is slower than the whole.
            alone: unseen && simulation.policy.share != Share::Mig,
            scheduler,
            observer,
            agenda: Agenda::default(),
            devices,
            seats: Seats::default(),
            fruitless: 0,
            ended: 0,
            makespan: Time::START,
            steps: 0,
            scratch: Scratch::default(),
            now: Time::START,
            wishes: Vec::new(),
            done: 0,
            busy: false,
        }
    }

    pub(super) fn play(mut self) -> Result<(Summary, Vec<TaskResult>), SimulationError> {
        loop {
            if self.fruitless > FRUITLESS {
                return Err(SimulationError::NoProgress { at: self.now });
            }
            let arrival = self.trace.tasks().get(self.next_submission).map(|task| task.submit);
            let due = self.agenda.next_time();
            match (arrival, due) {
                (None, None) => break,
                // Whatever is due first, ends before arrivals at one moment, wake-ups after both.
                (Some(arrival), due) if due.is_none_or(|due| arrival < due) => self.submit(arrival),
                (Some(arrival), Some(due)) if arrival == due && self.agenda.only_wakes_at(due) => {
                    self.submit(arrival);
                }
                _ => self.step(),
            }
            self.decide_at_end_of_moment();
            // Once all tasks have ended only stale entries are left.
            if self.ended == self.results.len() {
                break;
            }
            self.check();
        }
        Ok(self.finish())
    }

    fn submit(&mut self, now: Time) {
        self.next_submission += 1;
        if let Some(task) = self.submissions.next() {
            self.tell(now, Event::Submitted(task));
        }
    }

    fn step(&mut self) {
        let Some(due) = self.agenda.pop() else { return };
        match due.what {
            What::Finish => self.finish_due(due.at, due.seat, due.stamp),
            What::Grow => self.grow(due.at, due.seat, due.stamp),
            What::Wake => self.tell(due.at, Event::Wake),
        }
    }

    /// Tells the scheduler, which decides once it has heard everything that happens at this moment.
    pub(super) fn tell(&mut self, now: Time, event: Event) {
        self.now = now;
        self.scheduler.note(now, event, &mut self.wishes);
        self.carry_out_wishes();
    }

    /// Lets the scheduler decide, unless more happens at this moment.
    fn decide_at_end_of_moment(&mut self) {
        let arrival = self.trace.tasks().get(self.next_submission).map(|task| task.submit);
        if arrival == Some(self.now) || self.agenda.next_time() == Some(self.now) {
            return;
        }
        self.scheduler.decide(self.now, &mut self.wishes);
        self.carry_out_wishes();
    }

    /// Does what the scheduler wants. What it wants on being told of one effect's consequences comes
    /// after the effects that were decided before.
    fn carry_out_wishes(&mut self) {
        if self.wishes.is_empty() || std::mem::replace(&mut self.busy, true) {
            return;
        }
        while let Some(effect) = self.wishes.get_mut(self.done) {
            let effect = std::mem::replace(effect, Effect::WakeAt(Time::NEVER));
            self.done += 1;
            self.carry_out(self.now, effect);
        }
        self.wishes.clear();
        self.done = 0;
        self.busy = false;
    }

    fn carry_out(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Launch { task, placement } => self.launch(now, task, placement),
            Effect::Retire { task, state } => {
                let result = &mut self.results[task.index()];
                result.state = state;
                result.end = Some(now);
                self.makespan = self.makespan.max(now);
                self.ended += 1;
                if self.ended.is_multiple_of(PROGRESS_STEP) {
                    self.observer.progress(self.ended);
                }
            }
            Effect::WakeAt(at) => self.agenda.wake_at(at),
            Effect::Preempt(task) => self.preempt(now, task),
            Effect::Stop(task) => unreachable!("nobody cancels task {task} in a trace"),
        }
    }

    fn check(&mut self) {
        self.steps += 1;
        let rarely = self.seats.len() > CHECK_EVERY_STEP && !self.steps.is_multiple_of(4096);
        if cfg!(debug_assertions) && !rarely {
            self.scheduler.sanity_check();
        }
    }

    fn finish(mut self) -> (Summary, Vec<TaskResult>) {
        let makespan = self.makespan;
        let mut totals = FleetTotals::default();
        for device in &mut self.devices {
            device.account(makespan, &self.simulation.power);
            totals.energy_j += device.energy_j;
            totals.energy_vacant_j += device.energy_vacant_j;
            totals.smact_mean += device.sm_seconds;
            totals.memory_mean_bytes += device.byte_millis as f64 / 1000.0;
        }
        let device_seconds = makespan.secs() * self.devices.len() as f64;
        if device_seconds > 0.0 {
            totals.smact_mean /= device_seconds;
            totals.memory_mean_bytes /= device_seconds;
        }
        let bound = makespan_bound(self.trace, &self.simulation.fleet);
        let summary = Summary::new(self.trace, &self.results, makespan, bound, totals);
        (summary, self.results)
    }
}
