//! A modelled GPU: which tasks are on it, how fast they run, what it draws.

use super::run_slots::RunSlot;
use coloc_model::{Bytes, Fraction, GpuModel, GpuSignal, Millis, SignatureId, Time};
use coloc_physics::{Part, Power, PowerModel, Profile, SharedGpu};

/// A task on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) run_slot: RunSlot,
    pub(super) profile: Profile,
    pub(super) signature: SignatureId,
    pub(super) part: Part,
    /// Memory it holds here now.
    pub(super) held: Bytes,
    /// The most it may hold: the device, or its MIG instance.
    pub(super) limit: Bytes,
    /// How fast a device of this kind is for it.
    pub(super) speed: f64,
    /// Share of that speed that the others on this device leave to it.
    pub(super) local_rate: f64,
    /// Share of its speed that it really has: a gang is as fast as its slowest member.
    pub(super) rate: f64,
    /// Its share of what the device drew since it came.
    pub(super) energy_j: f64,
}

impl Guest {
    pub(super) fn sm(&self) -> f64 {
        self.profile.activity.sm.get() * self.rate
    }
}

/// What a monitor shows of a device, and what the device draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) signal: GpuSignal,
    pub(super) power: Power,
}

/// One device and its running totals.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) model: GpuModel,
    pub(super) guests: Vec<Guest>,
    /// What a monitor shows of it, and what it draws; out of date once its guests have changed.
    figures: Figures,
    up_to_date: bool,
    since: Time,
    memory_since: Time,
    pub(super) energy_j: f64,
    pub(super) energy_vacant_j: f64,
    pub(super) sm_seconds: f64,
    /// Bytes held times milliseconds: whole numbers, so that the order of adding does not matter.
    pub(super) byte_millis: u128,
}

impl Device {
    pub(super) fn new(model: GpuModel) -> Self {
        Device {
            model,
            guests: Vec::new(),
            figures: Figures { signal: GpuSignal::default(), power: Power::default() },
            up_to_date: false,
            since: Time::START,
            memory_since: Time::START,
            energy_j: 0.0,
            energy_vacant_j: 0.0,
            sm_seconds: 0.0,
            byte_millis: 0,
        }
    }

    pub(super) fn used(&self) -> Bytes {
        self.guests.iter().map(|guest| guest.held).sum()
    }

    pub(super) fn guest_mut(&mut self, run_slot: RunSlot) -> &mut Guest {
        let guest = self.guests.iter_mut().find(|guest| guest.run_slot == run_slot);
        guest.expect("a running task is on all of its devices")
    }

    /// Takes a guest off the device; the others keep their order.
    pub(super) fn remove(&mut self, run_slot: RunSlot) -> Guest {
        // Mostly it is the only one: no other guest has to move up.
        if let Some(only) = self.guests.pop_if(|last| last.run_slot == run_slot) {
            return only;
        }
        let index = self.guests.iter().position(|guest| guest.run_slot == run_slot);
        self.guests.remove(index.expect("a running task is on all of its devices"))
    }

    /// Guests came, went, or have another speed.
    pub(super) fn guests_changed(&mut self) {
        self.up_to_date = false;
    }

    /// What a monitor shows, and what the device draws. Worked out when a caller asks: much changes
    /// twice in a moment.
    pub(super) fn figures(&mut self, model: &PowerModel) -> Figures {
        if !std::mem::replace(&mut self.up_to_date, true) {
            let at_work = self.guests.iter().map(|guest| (guest.profile.activity, guest.rate));
            let activity = SharedGpu::observed(at_work);
            let power = model.draw(self.model, self.guests.len(), &activity);
            self.figures = Figures { signal: GpuSignal { activity, used: self.used() }, power };
        }
        self.figures
    }

    /// The same after a change of memory alone.
    pub(super) fn memory_changed(&mut self) {
        self.figures.signal.used = self.used();
    }

    /// Brings the total of memory up to `now`.
    pub(super) fn account_memory(&mut self, now: Time, model: &PowerModel) {
        let span = now.since(self.memory_since);
        let used = self.figures(model).signal.used;
        self.byte_millis += u128::from(used.0) * u128::from(span.0);
        self.memory_since = now;
    }

    /// Brings all totals up to `now`, before anything changes.
    #[inline]
    pub(super) fn account(&mut self, now: Time, model: &PowerModel) {
        let span = now.since(self.since);
        if span != Millis::ZERO {
            self.account_span(now, span, model);
        }
    }

    /// Brings all totals up to `now` for a task that had the device to itself but was no guest; says what
    /// energy it took.
    pub(super) fn account_only(
        &mut self,
        now: Time,
        sm: Fraction,
        power: Power,
        held: Bytes,
        too_much: u128,
    ) -> f64 {
        let millis = now.since(self.since);
        (self.since, self.memory_since) = (now, now);
        self.byte_millis += u128::from(held.0) * u128::from(millis.0) - too_much;
        let energy_j = power.watts() * millis.secs();
        self.energy_j += energy_j;
        self.sm_seconds += sm.get() * millis.secs();
        energy_j
    }

    /// Hands each guest its share of the energy: what the device draws anyway by residency, what its work
    /// costs by SM activity.
    fn account_span(&mut self, now: Time, span: Millis, model: &PowerModel) {
        self.account_memory(now, model);
        let Figures { signal, power } = self.figures;
        let span = span.secs();
        self.since = now;
        self.energy_j += power.watts() * span;
        self.sm_seconds += signal.activity.sm.get() * span;
        if self.guests.is_empty() {
            self.energy_vacant_j += power.watts() * span;
            return;
        }
        let even = 1.0 / self.guests.len() as f64;
        let work: f64 = self.guests.iter().map(Guest::sm).sum();
        for guest in &mut self.guests {
            let share = if work > 0.0 { guest.sm() / work } else { even };
            guest.energy_j += (power.still * even + power.dynamic * share) * span;
        }
    }
}
