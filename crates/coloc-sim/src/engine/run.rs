//! One simulation run.

use super::clock::{Agenda, Due};
use super::device::{Device, Guest};
use super::{Observer, Simulation};
use crate::bound::makespan_bound;
use crate::metrics::{FleetTotals, Summary, TaskResult};
use crate::timeline::AttemptEnd;
use crate::trace::Trace;
use coloc_core::{Effect, Event, Scheduler};
use coloc_model::{
    Activity, Bytes, GpuId, GpuSignal, Millis, Outcome, Placement, Slot, Task, TaskId, TaskState,
    Time,
};
use coloc_physics::{Growth, Part, Resident, SharedGpu};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// With more live tasks than this, invariants are checked only now and then.
const CHECK_EVERY_STEP: usize = 500;
/// The speed of a task on a device that it was not meant for.
const SLOWEST: f64 = 0.001;
const PROGRESS_STEP: usize = 1 << 12;

/// A task on its GPUs.
#[derive(Clone, Debug)]
struct Active {
    placement: Placement,
    started: Time,
    attempt: u32,
    growth: Growth,
    /// Milliseconds of work left, at the speed of running alone.
    left: f64,
    rate: f64,
    /// Factor by which this run is faster or slower than its profile.
    luck: f64,
    as_of: Time,
    /// Which finish event is the valid one.
    stamp: u32,
}

pub(super) struct Run<'a, O> {
    simulation: &'a Simulation,
    trace: &'a Trace,
    submissions: std::vec::IntoIter<Task>,
    next_submission: usize,
    scheduler: Scheduler,
    observer: &'a mut O,
    agenda: Agenda,
    devices: Vec<Device>,
    active: FxHashMap<TaskId, Active>,
    results: Vec<TaskResult>,
    attempts: Vec<u32>,
    /// Milliseconds of work that each task has yet to do, as of its last launch.
    work: Vec<f64>,
    ended: usize,
    makespan: Time,
    steps: u64,
    scratch: Scratch,
    /// Effects to be carried out, and whether that is going on.
    todo: VecDeque<Effect>,
    busy: bool,
    /// The moment that is being played.
    now: Time,
    /// A buffer for effects on their way to `todo`.
    wishes: Vec<Effect>,
}

/// Buffers that are used again and again.
#[derive(Default)]
struct Scratch {
    rates: Vec<f64>,
    touched: Vec<GpuId>,
    changed: Vec<(TaskId, f64)>,
}

impl<'a, O: Observer> Run<'a, O> {
    pub(super) fn new(
        simulation: &'a Simulation,
        trace: &'a Trace,
        submissions: Vec<Task>,
        scheduler: Scheduler,
        observer: &'a mut O,
    ) -> Self {
        let idle = |model| simulation.power.draw(model, 0, &Activity::default());
        let gpus = simulation.fleet.gpus();
        let devices: Vec<Device> =
            gpus.iter().map(|gpu| Device::new(gpu.model, idle(gpu.model))).collect();
        for (gpu, device) in devices.iter().enumerate() {
            observer.gpu_changed(Time::START, gpu, &device.signal, device.power.watts());
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
        Run {
            simulation,
            trace,
            results: vec![pending; submissions.len()],
            attempts: vec![0; submissions.len()],
            work: trace.tasks().iter().map(|task| task.duration.0 as f64).collect(),
            submissions: submissions.into_iter(),
            next_submission: 0,
            scheduler,
            observer,
            agenda: Agenda::default(),
            devices,
            active: FxHashMap::default(),
            ended: 0,
            makespan: Time::START,
            steps: 0,
            scratch: Scratch::default(),
            todo: VecDeque::new(),
            busy: false,
            now: Time::START,
            wishes: Vec::new(),
        }
    }

    pub(super) fn play(mut self) -> (Summary, Vec<TaskResult>) {
        loop {
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
        self.finish()
    }

    fn submit(&mut self, now: Time) {
        self.next_submission += 1;
        if let Some(task) = self.submissions.next() {
            self.tell(now, Event::Submitted(task));
        }
    }

    fn step(&mut self) {
        let Some((now, due)) = self.agenda.pop() else { return };
        match due {
            Due::Finish { task, attempt, stamp } => {
                let valid = |active: &Active| (active.attempt, active.stamp) == (attempt, stamp);
                if self.active.get(&task).is_some_and(valid) {
                    self.leave(now, task, AttemptEnd::Completed, Outcome::Completed);
                }
            }
            Due::Grow { task, attempt } => {
                if self.active.get(&task).is_some_and(|active| active.attempt == attempt) {
                    self.grow(now, task);
                }
            }
            Due::Wake => self.tell(now, Event::Wake),
        }
    }

    /// Tells the scheduler, which decides once it has heard everything that happens at this moment.
    fn tell(&mut self, now: Time, event: Event) {
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
        self.todo.extend(self.wishes.drain(..));
        if std::mem::replace(&mut self.busy, true) {
            return;
        }
        while let Some(effect) = self.todo.pop_front() {
            self.carry_out(self.now, effect);
        }
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

    fn launch(&mut self, now: Time, task: TaskId, placement: Placement) {
        let traced = &self.trace.tasks()[task.index()];
        let attempt = self.attempts[task.index()];
        self.attempts[task.index()] += 1;
        self.results[task.index()].start.get_or_insert(now);
        let luck = self.simulation.noise.map_or(1.0, |noise| noise.speed(task.0, attempt));
        let growth = Growth::LAUNCH;
        let held = growth.held(traced.profile.memory);
        for slot in &placement.slots {
            let device = &mut self.devices[slot.gpu.index()];
            let part = slot.instance.map_or(Part::Whole, |i| Part::of_instance(device.model, i));
            let limit = slot.instance.map_or(device.model.memory(), |i| i.memory);
            let guest = Guest {
                task,
                profile: traced.profile,
                signature: traced.signature,
                part,
                held: Bytes::ZERO,
                limit,
                // Nobody places a task where it cannot run unless told nothing of speeds.
                speed: self
                    .simulation
                    .speeds
                    .speed(traced.signature, device.model)
                    .unwrap_or(SLOWEST),
                local_rate: 0.0,
                rate: 0.0,
            };
            device.account(now, |task, joules| self.results[task.index()].energy_j += joules);
            device.guests.push(guest);
        }
        let slots = placement.slots.clone();
        let active = Active {
            placement,
            started: now,
            attempt,
            growth,
            left: self.work[task.index()],
            rate: 0.0,
            luck,
            as_of: now,
            stamp: 0,
        };
        self.active.insert(task, active);
        if let Some((after, _)) = growth.next() {
            self.agenda.add(now + after, Due::Grow { task, attempt });
        }
        self.crowd_changed(now, &slots);
        self.allocate(now, task, &slots, held);
    }

    /// The next step of a task's memory.
    fn grow(&mut self, now: Time, task: TaskId) {
        let Some(active) = self.active.get_mut(&task) else { return };
        let Some((_, growth)) = active.growth.next() else { return };
        active.growth = growth;
        let (slots, attempt) = (active.placement.slots.clone(), active.attempt);
        if let Some((after, _)) = growth.next() {
            self.agenda.add(active.started + after, Due::Grow { task, attempt });
        }
        let held = growth.held(self.trace.tasks()[task.index()].profile.memory);
        self.allocate(now, task, &slots, held);
    }

    /// A task wants to hold `held` on each of its GPUs. If one has no room, the task that asked dies.
    fn allocate(&mut self, now: Time, task: TaskId, slots: &[Slot], held: Bytes) {
        let fits = slots.iter().all(|slot| {
            let device = &mut self.devices[slot.gpu.index()];
            let (capacity, used) = (device.model.memory(), device.used());
            let guest = device.guest_mut(task);
            held <= guest.limit && used - guest.held + held <= capacity
        });
        if !fits {
            self.results[task.index()].ooms += 1;
            let outcome = Outcome::OutOfMemory { wanted: held };
            self.leave(now, task, AttemptEnd::OutOfMemory, outcome);
            return;
        }
        for slot in slots {
            let device = &mut self.devices[slot.gpu.index()];
            device.account(now, |task, joules| self.results[task.index()].energy_j += joules);
            device.guest_mut(task).held = held;
            self.report(now, slot.gpu);
        }
        self.tell(now, Event::TaskSeen { task, used: held });
    }

    /// A task's process ended, well or not.
    fn leave(&mut self, now: Time, task: TaskId, end: AttemptEnd, outcome: Outcome) {
        self.work[task.index()] = self.trace.tasks()[task.index()].duration.0 as f64;
        self.clear(now, task, end);
        self.tell(now, Event::Ended { task, outcome });
    }

    /// Takes a task off its GPUs. What it has yet to do it does later, and what it costs to save and
    /// restore its state comes on top.
    fn preempt(&mut self, now: Time, task: TaskId) {
        let Some(active) = self.active.get(&task) else { return };
        let done = active.rate * now.since(active.as_of).0 as f64;
        let memory = self.trace.tasks()[task.index()].profile.memory;
        let cost = self.simulation.preemption.cost(memory);
        self.work[task.index()] = (active.left - done).max(0.0) + cost.0 as f64;
        self.results[task.index()].preemptions += 1;
        self.clear(now, task, AttemptEnd::Preempted);
    }

    fn clear(&mut self, now: Time, task: TaskId, end: AttemptEnd) {
        let Some(active) = self.active.remove(&task) else { return };
        let slots = active.placement.slots;
        for slot in &slots {
            let device = &mut self.devices[slot.gpu.index()];
            device.account(now, |task, joules| self.results[task.index()].energy_j += joules);
            device.guests.retain(|guest| guest.task != task);
        }
        let result = &mut self.results[task.index()];
        // Whoever ran out of memory starts from nothing; whoever was preempted goes on.
        result.ran_s = match end {
            AttemptEnd::OutOfMemory => 0.0,
            _ => result.ran_s + now.since(active.started).secs(),
        };
        self.observer.attempt_ended(task, active.started, now, &slots, end);
        // A monitor sees the process gone no later than anybody hears of its end.
        self.crowd_changed(now, &slots);
    }

    /// Somebody came or went on these GPUs: everybody on them gets a new speed.
    fn crowd_changed(&mut self, now: Time, slots: &[Slot]) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.touched.clear();
        scratch.changed.clear();
        for slot in slots {
            self.recompute_local_rates(slot.gpu, &mut scratch);
            scratch.touched.push(slot.gpu);
        }
        for index in 0..scratch.changed.len() {
            let (task, _) = scratch.changed[index];
            self.change_speed(now, task, &mut scratch.touched);
        }
        scratch.touched.sort_unstable();
        scratch.touched.dedup();
        for &gpu in &scratch.touched {
            self.report(now, gpu);
        }
        self.scratch = scratch;
    }

    fn recompute_local_rates(&mut self, gpu: GpuId, scratch: &mut Scratch) {
        let share = self.simulation.policy.share;
        let device = &mut self.devices[gpu.index()];
        let residents: Vec<Resident<'_>> = device
            .guests
            .iter()
            .map(|guest| Resident {
                profile: &guest.profile,
                signature: guest.signature,
                part: guest.part,
            })
            .collect();
        self.simulation.physics.rates(share, &residents, &mut scratch.rates);
        for (guest, &rate) in device.guests.iter_mut().zip(&scratch.rates) {
            if guest.local_rate != rate {
                guest.local_rate = rate;
                scratch.changed.push((guest.task, rate));
            }
        }
    }

    /// Gives a task the speed of its slowest GPU, and works out anew when it will be done.
    fn change_speed(&mut self, now: Time, task: TaskId, touched: &mut Vec<GpuId>) {
        let Some(active) = self.active.get_mut(&task) else { return };
        let slots = &active.placement.slots;
        let (mut slowest, mut speed) = (f64::INFINITY, f64::INFINITY);
        for slot in slots {
            let guest = self.devices[slot.gpu.index()].guest_mut(task);
            slowest = slowest.min(guest.local_rate);
            speed = speed.min(guest.local_rate * guest.speed);
        }
        let rate = speed * active.luck;
        if rate == active.rate {
            return;
        }
        active.left -= active.rate * now.since(active.as_of).0 as f64;
        active.as_of = now;
        active.rate = rate;
        active.stamp += 1;
        let millis = (active.left.max(0.0) / rate - 1e-6).ceil().max(0.0);
        let due = Due::Finish { task, attempt: active.attempt, stamp: active.stamp };
        self.agenda.add(now + Millis(millis as u64), due);
        for slot in slots {
            let device = &mut self.devices[slot.gpu.index()];
            device.account(now, |task, joules| self.results[task.index()].energy_j += joules);
            // A lucky run is faster, not busier: activity follows the speed that the device allows.
            device.guest_mut(task).rate = slowest;
            touched.push(slot.gpu);
        }
    }

    /// Works out what a monitor shows of a GPU from now on.
    fn report(&mut self, now: Time, gpu: GpuId) {
        let device = &mut self.devices[gpu.index()];
        device.account(now, |task, joules| self.results[task.index()].energy_j += joules);
        let activity = SharedGpu::observed(device.activities());
        device.power = self.simulation.power.draw(device.model, device.guests.len(), &activity);
        device.signal = GpuSignal { activity, used: device.used() };
        let signal = device.signal;
        self.observer.gpu_changed(now, gpu.index(), &signal, device.power.watts());
        self.tell(now, Event::GpuSeen { gpu, signal });
    }

    fn check(&mut self) {
        self.steps += 1;
        let rarely = self.active.len() > CHECK_EVERY_STEP && !self.steps.is_multiple_of(4096);
        if cfg!(debug_assertions) && !rarely {
            self.scheduler.sanity_check();
        }
    }

    fn finish(mut self) -> (Summary, Vec<TaskResult>) {
        let makespan = self.makespan;
        let mut totals = FleetTotals::default();
        for device in &mut self.devices {
            device.account(makespan, |task, joules| self.results[task.index()].energy_j += joules);
            totals.energy_j += device.energy_j;
            totals.energy_vacant_j += device.energy_vacant_j;
            totals.smact_mean += device.sm_seconds;
            totals.memory_mean_bytes += device.byte_seconds;
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
