//! A task's life on its GPUs: launch, memory growth, and the ways to leave.

use super::device::Guest;
use super::due::Due;
use super::run::Run;
use super::run_slots::{Progress, RunSlot, Stamp, Stay};
use super::{Observer, Simulation};
use crate::event_loop::World as _;
use crate::timeline::AttemptEnd;
use coloc_core::Event;
use coloc_model::{
    Activity, Bytes, GpuId, GpuModel, Millis, Outcome, Placement, Slot, TaskId, Time,
};
use coloc_physics::{Growth, MemoryCurve, Part, Phases, Profile};

/// The speed of a task on a device that it was not meant for.
const SLOWEST: f64 = 0.001;

/// The most a task may hold: the device, or its MIG instance.
fn limit(model: GpuModel, slot: &Slot) -> Bytes {
    slot.instance.map_or(model.memory(), |instance| instance.memory)
}

impl<O: Observer> Run<'_, O> {
    pub(super) fn launch(&mut self, now: Time, task: TaskId, placement: Placement) {
        let traced = &self.trace.tasks()[task.index()];
        let result = &mut self.results[task.index()];
        let attempt = result.preemptions + result.ooms;
        result.start.get_or_insert(now);
        let slots = placement.slots.clone();
        let memory_curve = traced.memory_curve();
        let plateau = memory_curve.plateau;
        let growth = self.growth(&memory_curve, &slots);
        let left = self.left[task.index()];
        // A task that has done some of its work was preempted, and its state comes back first.
        let begun = left < traced.duration.0 as f64;
        let restoring = if begun { self.simulation.preemption.cost(plateau) } else { Millis::ZERO };
        let progress = Progress {
            task,
            only_gpu: if let [only] = &*slots { Some(only.gpu) } else { None },
            left,
            rate: 0.0,
            luck: self.simulation.noise.map_or(1.0, |noise| noise.speed(task.0, attempt)),
            as_of: now + restoring,
            queued: Time::NEVER,
        };
        let stay = Stay { placement, started: now, growth };
        let (run_slot, stamp) = self.run_slots.take(progress, stay);
        let node = |slot: &Slot| self.simulation.fleet.gpu(slot.gpu).node;
        let spread = slots.iter().any(|slot| node(slot) != node(&slots[0]));
        if self.is_undisturbed(growth) {
            let speed = self.move_in(now, task, &slots, spread);
            self.turn(now, run_slot, speed);
            return;
        }
        for slot in slots.iter() {
            let mut guest = self.guest(task, run_slot, slot, spread);
            if growth.is_none() {
                guest.held = plateau;
            }
            if !memory_curve.trains(Millis::ZERO) {
                guest.profile.activity = Activity::default();
            }
            let device = &mut self.devices[slot.gpu.index()];
            device.account(now, &self.simulation.power);
            device.guests.push(guest);
            device.guests_changed();
        }
        if let Some(next) = growth.and_then(|at| memory_curve.next(at)) {
            self.events.agenda.add(now + next, Due::grow(task, run_slot, stamp));
        }
        self.crowd_changed(now, &slots);
        if let Some(at) = growth {
            self.allocate(now, task, run_slot, &slots, at);
        }
    }

    /// How a task's memory grows, step by step; `None` where it has room and is unseen: then it holds
    /// all from the start, and what is too much is taken off at its end.
    fn growth(&self, memory_curve: &MemoryCurve, slots: &[Slot]) -> Option<Millis> {
        let fits =
            |slot: &Slot| memory_curve.plateau <= limit(self.devices[slot.gpu.index()].model, slot);
        let skip = self.unseen && memory_curve.phases == Phases::NONE && slots.iter().all(fits);
        (!skip).then_some(Millis::ZERO)
    }

    /// A task as one of its devices sees it.
    fn guest(&self, task: TaskId, run_slot: RunSlot, slot: &Slot, spread: bool) -> Guest {
        let traced = &self.trace.tasks()[task.index()];
        let model = self.devices[slot.gpu.index()].model;
        Guest {
            run_slot,
            profile: traced.profile,
            signature: traced.signature,
            part: slot.instance.map_or(Part::Whole, |i| Part::of_instance(model, i)),
            held: Bytes::ZERO,
            limit: limit(model, slot),
            speed: self.speed_on(task, slot.gpu, spread),
            local_rate: 0.0,
            rate: 0.0,
            energy_j: 0.0,
        }
    }

    /// How fast a device is for a task, whose gang may be spread over nodes.
    pub(super) fn speed_on(&self, task: TaskId, gpu: GpuId, spread: bool) -> f64 {
        let signature = self.trace.tasks()[task.index()].signature;
        let model = self.devices[gpu.index()].model;
        let Simulation { speeds, spread_speed, .. } = self.simulation;
        // No scheduler places a task where it cannot run unless told nothing of speeds.
        let speed = speeds.speed(signature, model).unwrap_or(SLOWEST);
        // As measured, else as assumed of all.
        let part = || speeds.spread(signature, model).unwrap_or(*spread_speed);
        if spread { speed * part() } else { speed }
    }

    /// The next step of a task's memory, unless the task is gone.
    pub(super) fn grow(&mut self, now: Time, run_slot: RunSlot, stamp: Stamp) {
        let Some(stay) = self.run_slots.launched(run_slot, stamp) else { return };
        let (at, started) = (now.since(stay.started), stay.started);
        let Some(before) = stay.growth.replace(at) else { return };
        let slots = stay.placement.slots.clone();
        let task = self.run_slots.progress(run_slot).task;
        let traced = self.trace.tasks()[task.index()];
        let memory_curve = traced.memory_curve();
        if let Some(next) = memory_curve.next(at) {
            self.events.agenda.add(started + next, Due::grow(task, run_slot, stamp));
        }
        if memory_curve.trains(at) && !memory_curve.trains(before) {
            self.begin_to_train(now, run_slot, &traced.profile, &slots);
        }
        self.allocate(now, task, run_slot, &slots, at);
    }

    /// A task has loaded what it needs: its GPUs are at work from now on.
    fn begin_to_train(&mut self, now: Time, run_slot: RunSlot, profile: &Profile, slots: &[Slot]) {
        for slot in slots {
            let device = &mut self.devices[slot.gpu.index()];
            device.account(now, &self.simulation.power);
            device.guest_mut(run_slot).profile = *profile;
            device.guests_changed();
        }
        self.crowd_changed(now, slots);
    }

    /// A task wants to hold on each of its GPUs what it holds so long after its launch. If one has no room, the task
    /// that asked dies.
    fn allocate(&mut self, now: Time, task: TaskId, run_slot: RunSlot, slots: &[Slot], at: Millis) {
        let traced = &self.trace.tasks()[task.index()];
        let memory_curve = traced.memory_curve();
        let held = memory_curve.held(at);
        let fits = slots.iter().all(|slot| {
            let device = &mut self.devices[slot.gpu.index()];
            let (capacity, used) = (device.model.memory(), device.used());
            let guest = device.guest_mut(run_slot);
            held <= guest.limit && used - guest.held + held <= capacity
        });
        if !fits {
            self.results[task.index()].ooms += 1;
            let outcome = Outcome::OutOfMemory { wanted: held };
            self.leave(now, run_slot, AttemptEnd::OutOfMemory, outcome);
            return;
        }
        for slot in slots {
            let device = &mut self.devices[slot.gpu.index()];
            device.account_memory(now, &self.simulation.power);
            device.guest_mut(run_slot).held = held;
            device.memory_changed();
            self.show(now, slot.gpu);
        }
        if self.watched {
            self.show_task(now, run_slot);
        }
    }

    /// A finish is due. Where neighbours have slowed the task since, its end lies further ahead.
    pub(super) fn finish_due(&mut self, now: Time, run_slot: RunSlot, stamp: Stamp) {
        if !self.run_slots.finishes(run_slot, stamp) {
            return;
        }
        let progress = self.run_slots.progress(run_slot);
        let end = progress.end();
        if end <= now {
            self.fruitless = 0;
            return self.leave(now, run_slot, AttemptEnd::Completed, Outcome::Completed);
        }
        progress.queued = end;
        self.events.agenda.add(end, Due::finish(progress.task, run_slot, stamp));
    }

    /// A task's process ended, well or not.
    pub(super) fn leave(
        &mut self,
        now: Time,
        run_slot: RunSlot,
        end: AttemptEnd,
        outcome: Outcome,
    ) {
        if let Some(task) = self.clear(now, run_slot, end) {
            self.tell(now, Event::Ended { task, outcome });
        }
    }

    /// Takes a task off its GPUs. What it has yet to do it does later.
    pub(super) fn preempt(&mut self, now: Time, task: TaskId) {
        let Some(run_slot) = self.run_slots.of(task) else { return };
        let mut left = self.run_slots.progress(run_slot).left_at(now).max(0.0);
        let traced = &self.trace.tasks()[task.index()];
        let whole = traced.duration.0 as f64;
        match self.simulation.checkpoint(traced) {
            None => left = whole,
            Some(every) if every > Millis::ZERO => {
                left = (left + (whole - left) % every.0 as f64).min(whole);
            }
            Some(_) => {}
        }
        let before = std::mem::replace(&mut self.left[task.index()], left);
        self.fruitless = if left < before { 0 } else { self.fruitless + 1 };
        self.results[task.index()].preemptions += 1;
        self.clear(now, run_slot, AttemptEnd::Preempted);
    }

    /// Empties a run slot and says which task's it was.
    fn clear(&mut self, now: Time, run_slot: RunSlot, end: AttemptEnd) -> Option<TaskId> {
        let (task, Stay { placement, started, growth }) = self.run_slots.leave(run_slot)?;
        let slots = placement.slots;
        let ran = now.since(started);
        let too_much = match growth {
            Some(_) => 0,
            None => Growth::shortfall(self.trace.tasks()[task.index()].profile.memory, ran),
        };
        if self.is_undisturbed(growth) {
            self.move_out(now, task, &slots, too_much);
        } else {
            let result = &mut self.results[task.index()];
            for slot in slots.iter() {
                let device = &mut self.devices[slot.gpu.index()];
                device.account(now, &self.simulation.power);
                device.byte_millis -= too_much;
                result.energy_j += device.remove(run_slot).energy_j;
                device.guests_changed();
            }
        }
        let result = &mut self.results[task.index()];
        // A task that ran out of memory starts from nothing; a preempted task goes on.
        if end == AttemptEnd::OutOfMemory {
            result.ran_s = 0.0;
            self.left[task.index()] = self.trace.tasks()[task.index()].duration.0 as f64;
        } else {
            result.ran_s += ran.secs();
        }
        self.observer.attempt_ended(task, started, now, &slots, end);
        if !self.is_undisturbed(growth) {
            // A monitor sees the process gone no later than the scheduler hears of its end.
            self.crowd_changed(now, &slots);
        }
        Some(task)
    }
}
