//! A modelled GPU: who is on it, how fast they run, what it draws.

use super::seats::Seat;
use coloc_model::{Activity, Bytes, GpuModel, GpuSignal, Millis, SignatureId, Time};
use coloc_physics::{Part, Power, Profile};

/// A task on a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guest {
    pub(super) seat: Seat,
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
    fn sm(&self) -> f64 {
        self.profile.activity.sm.get() * self.rate
    }
}

/// One device and its running totals.
#[derive(Clone, Debug)]
pub(super) struct Device {
    pub(super) model: GpuModel,
    pub(super) guests: Vec<Guest>,
    pub(super) signal: GpuSignal,
    pub(super) power: Power,
    since: Time,
    memory_since: Time,
    pub(super) energy_j: f64,
    pub(super) energy_vacant_j: f64,
    pub(super) sm_seconds: f64,
    /// Bytes held times milliseconds: whole numbers, so that the order of adding does not matter.
    pub(super) byte_millis: u128,
}

impl Device {
    pub(super) fn new(model: GpuModel, power: Power) -> Self {
        Device {
            model,
            guests: Vec::new(),
            signal: GpuSignal::default(),
            power,
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

    pub(super) fn guest_mut(&mut self, seat: Seat) -> &mut Guest {
        let guest = self.guests.iter_mut().find(|guest| guest.seat == seat);
        guest.expect("a running task is on all of its devices")
    }

    /// Takes a guest off the device; the others keep their order.
    pub(super) fn remove(&mut self, seat: Seat) -> Guest {
        let index = self.guests.iter().position(|guest| guest.seat == seat);
        self.guests.remove(index.expect("a running task is on all of its devices"))
    }

    /// What residents are doing, for the monitor's view.
    pub(super) fn activities(&self) -> impl Iterator<Item = (Activity, f64)> + '_ {
        self.guests.iter().map(|guest| (guest.profile.activity, guest.rate))
    }

    /// Brings the total of memory up to `now`.
    pub(super) fn account_memory(&mut self, now: Time) {
        let span = now.since(self.memory_since);
        self.byte_millis += u128::from(self.signal.used.0) * u128::from(span.0);
        self.memory_since = now;
    }

    /// Brings all totals up to `now` and hands each guest its share of the energy: what the device draws
    /// anyway by residency, what its work costs by SM activity.
    pub(super) fn account(&mut self, now: Time) {
        let span = now.since(self.since);
        if span == Millis::ZERO {
            return;
        }
        self.account_memory(now);
        let span = span.secs();
        self.since = now;
        self.energy_j += self.power.watts() * span;
        self.sm_seconds += self.signal.activity.sm.get() * span;
        if self.guests.is_empty() {
            self.energy_vacant_j += self.power.watts() * span;
            return;
        }
        let even = 1.0 / self.guests.len() as f64;
        let work: f64 = self.guests.iter().map(Guest::sm).sum();
        for guest in &mut self.guests {
            let share = if work > 0.0 { guest.sm() / work } else { even };
            guest.energy_j += (self.power.still * even + self.power.dynamic * share) * span;
        }
    }
}
