//! One simulation run.

use super::crowd::Scratch;
use super::device::{Device, Figures};
use super::due::{Due, Kind};
use super::run_slots::RunSlots;
use super::{Observer, Simulation, SimulationError};
use crate::bound::makespan_bound;
use crate::event_loop::{EventLoop, What, World};
use crate::metrics::{FleetTotals, Summary, TaskResult};
use crate::trace::Trace;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{Share, Task, TaskId, TaskState, Time};

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
    pub(super) events: EventLoop<Due>,
    /// The scheduler wants to know what a monitor sees.
    pub(super) monitored: bool,
    /// It wants to know how much memory tasks hold.
    pub(super) watched: bool,
    /// The scheduler or the observer looks at GPUs as they change.
    pub(super) looked_at: bool,
    /// Tasks have GPUs to themselves, and neither scheduler nor observer looks at the memory that they hold.
    pub(super) unseen: bool,
    /// The same without MIG: no task's speed depends on other tasks.
    pub(super) alone: bool,
    pub(super) observer: &'a mut O,
    pub(super) devices: Vec<Device>,
    pub(super) run_slots: RunSlots,
    pub(super) results: Vec<TaskResult>,
    /// Milliseconds of work that each task has to do when it is next launched.
    pub(super) left: Vec<f64>,
    /// Preemptions in a row by which no task got any further.
    pub(super) fruitless: u64,
    ended: usize,
    makespan: Time,
    steps: u64,
    pub(super) scratch: Scratch,
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
            events: EventLoop::new(scheduler, Time::START),
            observer,
            devices,
            run_slots: RunSlots::default(),
            fruitless: 0,
            ended: 0,
            makespan: Time::START,
            steps: 0,
            scratch: Scratch::default(),
        }
    }

    pub(super) fn play(mut self) -> Result<(Summary, Vec<TaskResult>), SimulationError> {
        while let Some(at) = self.next_time() {
            if self.fruitless > FRUITLESS {
                return Err(SimulationError::NoProgress { at: self.events.now });
            }
            self.advance(at);
            // Once all tasks have ended only stale entries are left.
            if self.ended == self.results.len() {
                break;
            }
            self.check();
        }
        Ok(self.finish())
    }

    /// When the next task of the trace is submitted.
    fn next_submit(&self) -> Option<Time> {
        self.trace.tasks().get(self.next_submission).map(|task| task.submit)
    }

    fn retire(&mut self, now: Time, task: TaskId, state: TaskState) {
        let result = &mut self.results[task.index()];
        result.state = state;
        result.end = Some(now);
        self.makespan = self.makespan.max(now);
        self.ended += 1;
        if self.ended.is_multiple_of(PROGRESS_STEP) {
            self.observer.progress(self.ended);
        }
    }

    fn check(&mut self) {
        self.steps += 1;
        let rarely = self.run_slots.len() > CHECK_EVERY_STEP && !self.steps.is_multiple_of(4096);
        if cfg!(debug_assertions) && !rarely {
            self.events.scheduler.sanity_check();
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
        let mut summary = Summary::new(self.trace, &self.results, makespan, bound, totals);
        let contract = self.simulation.policy.contract;
        summary.contract = contract.map(|_| self.events.scheduler.settling().into());
        (summary, self.results)
    }
}

impl<O: Observer> World for Run<'_, O> {
    type Due = Due;

    fn event_loop(&mut self) -> &mut EventLoop<Due> {
        &mut self.events
    }

    fn next_time(&self) -> Option<Time> {
        self.next_submit().into_iter().chain(self.events.agenda.next_time()).min()
    }

    /// At one time, ends and memory steps come before submissions, and wake-ups after them.
    fn happen(&mut self, at: Time) {
        let agenda = &self.events.agenda;
        let is_due = agenda.next_time() == Some(at);
        if self.next_submit() == Some(at) && (!is_due || agenda.only_wakes_at(at)) {
            self.next_submission += 1;
            if let Some(task) = self.submissions.next() {
                self.tell(at, Event::Submitted(task));
            }
            return;
        }
        match self.events.agenda.pop() {
            Some((at, What::Due(due))) => match due.kind {
                Kind::Finish => self.finish_due(at, due.run_slot, due.stamp),
                Kind::Grow => self.grow(at, due.run_slot, due.stamp),
            },
            Some((at, What::Wake)) => self.tell(at, Event::Wake),
            None => {}
        }
    }

    fn carry_out(&mut self, now: Time, effect: Effect) {
        match effect {
            Effect::Launch { task, placement } => self.launch(now, task, placement),
            Effect::Retire { task, state } => self.retire(now, task, state),
            Effect::Preempt(task) => self.preempt(now, task),
            Effect::WakeAt(at) => self.events.wake_at(at),
            Effect::Stop(task) => unreachable!("nobody cancels task {task} in a trace"),
        }
    }
}
