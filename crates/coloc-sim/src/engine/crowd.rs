//! What neighbours do to each other's speed, and what a monitor sees of it.

use super::Observer;
use super::device::{Figures, Guest};
use super::due::Due;
use super::run::Run;
use super::run_slots::RunSlot;
use crate::event_loop::World as _;
use coloc_core::Event;
use coloc_model::{Fraction, GpuId, Share, Slot, Time};
use coloc_physics::Resident;

/// Buffers that are used again and again.
#[derive(Default)]
pub(super) struct Scratch {
    rates: Vec<f64>,
    touched: Vec<GpuId>,
    changed: Vec<RunSlot>,
}

impl<O: Observer> Run<'_, O> {
    /// A task came or went on these GPUs: all tasks on them get a new speed.
    pub(super) fn crowd_changed(&mut self, now: Time, slots: &[Slot]) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.touched.clear();
        scratch.changed.clear();
        for slot in slots {
            self.recompute_local_rates(slot.gpu, &mut scratch);
            if self.looked_at {
                scratch.touched.push(slot.gpu);
            }
        }
        for &run_slot in &scratch.changed {
            self.change_speed(now, run_slot, &mut scratch.touched);
        }
        scratch.touched.sort_unstable();
        for &gpu in &scratch.touched {
            self.show(now, gpu);
        }
        self.scratch = scratch;
    }

    fn recompute_local_rates(&mut self, gpu: GpuId, scratch: &mut Scratch) {
        let share = self.simulation.policy.share;
        let device = &mut self.devices[gpu.index()];
        match &device.guests[..] {
            [] => return,
            [only] => {
                self.simulation.physics.rates(share, &[resident(only)], &mut scratch.rates);
            }
            all => {
                let all: Vec<Resident<'_>> = all.iter().map(resident).collect();
                self.simulation.physics.rates(share, &all, &mut scratch.rates);
            }
        }
        for (guest, &rate) in device.guests.iter_mut().zip(&scratch.rates) {
            if guest.local_rate != rate {
                guest.local_rate = rate;
                // A gang that has its GPUs to itself is named once.
                if scratch.changed.last() != Some(&guest.run_slot) {
                    scratch.changed.push(guest.run_slot);
                }
            }
        }
    }

    /// Gives a task the speed of its slowest GPU, and works out anew when it will be done.
    fn change_speed(&mut self, now: Time, run_slot: RunSlot, touched: &mut Vec<GpuId>) {
        let only = self.run_slots.progress(run_slot).only_gpu;
        let gang = only.is_none().then(|| self.run_slots.stay(run_slot).placement.slots.clone());
        let gpus = || only.into_iter().chain(gang.iter().flat_map(|s| s.iter().map(|s| s.gpu)));
        let (mut slowest, mut speed) = (f64::INFINITY, f64::INFINITY);
        for gpu in gpus() {
            let guest = self.devices[gpu.index()].guest_mut(run_slot);
            slowest = slowest.min(guest.local_rate);
            speed = speed.min(guest.local_rate * guest.speed);
        }
        if !self.turn(now, run_slot, speed) {
            return;
        }
        for gpu in gpus() {
            let device = &mut self.devices[gpu.index()];
            device.account(now, &self.simulation.power);
            // A lucky run is faster, not busier: activity follows the speed that the device allows.
            device.guest_mut(run_slot).rate = slowest;
            device.guests_changed();
            if self.looked_at && !touched.contains(&gpu) {
                touched.push(gpu);
            }
        }
        if self.watched {
            self.show_task(now, run_slot);
        }
    }

    /// Shows what a monitor sees of a task from now on that can tell what each process does.
    pub(super) fn show_task(&mut self, now: Time, run_slot: RunSlot) {
        let task = self.run_slots.progress(run_slot).task;
        let gpu = self.run_slots.stay(run_slot).placement.slots[0].gpu;
        let guest = self.devices[gpu.index()].guest_mut(run_slot);
        let error = self.simulation.sm_error.factor(now, task);
        let (used, seen) = (guest.held, (guest.sm() * error).min(1.0));
        // Of clients of MPS a driver tells only what all of them do.
        let told = self.simulation.policy.share != Share::Mps || self.simulation.tells_mps_clients;
        let activity = told.then(|| Fraction::new(seen));
        self.tell(now, Event::TaskSeen { task, used, activity });
    }

    /// Gives a task a speed, but for its luck, and works out when it will be done; says whether that is news.
    pub(super) fn turn(&mut self, now: Time, run_slot: RunSlot, speed: f64) -> bool {
        let progress = self.run_slots.progress(run_slot);
        let rate = speed * progress.luck;
        if rate == progress.rate {
            return false;
        }
        progress.turn(now, rate);
        let (task, end) = (progress.task, progress.end());
        // A finish that is due too early will find out by itself.
        if end < progress.queued {
            progress.queued = end;
            let stamp = self.run_slots.stamp(run_slot);
            self.events.agenda.add(end, Due::finish(task, run_slot, stamp));
        }
        true
    }

    /// Shows what a monitor sees of a GPU from now on.
    pub(super) fn show(&mut self, now: Time, gpu: GpuId) {
        let device = &mut self.devices[gpu.index()];
        let Figures { signal, power } = device.figures(&self.simulation.power);
        self.observer.gpu_changed(now, gpu.index(), &signal, power.watts());
        if self.monitored {
            self.tell(now, Event::GpuSeen { gpu, signal });
        }
    }
}

fn resident(guest: &Guest) -> Resident<'_> {
    Resident { profile: &guest.profile, signature: guest.signature, part: guest.part }
}
