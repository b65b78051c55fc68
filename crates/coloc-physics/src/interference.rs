//! Model IM-1: how fast tasks run that share a GPU.
//!
//! Each pair slows down by the product of what one task offers and the other feels; a capacity step
//! keeps the sum of demands within the device; packing beyond the device costs extra. Which numbers
//! are fitted and which are assumed stands in `docs/physics.md`.

use crate::{PairTable, Profile};
use coloc_model::mig::{Instance, MigTable};
use coloc_model::{Activity, Fraction, GpuModel, Share, SignatureId};
use serde::{Deserialize, Serialize};

/// The coefficients of the model.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interference {
    /// Slow-down per product of GPU-active shares when contexts are time-sliced (fitted on 1,388
    /// measured pairs).
    pub streams: f64,
    /// Slow-down per product of SM shares under MPS (assumed).
    pub mps: f64,
    /// Slow-down per product of DRAM shares under MPS (assumed).
    pub mps_dram: f64,
    /// Throughput lost per device's worth of demand beyond one device (fitted to two and three copies
    /// of ResNet152: 1.14x, then 1.09x).
    pub overload: f64,
}

impl Default for Interference {
    fn default() -> Self {
        Interference { streams: 0.49, mps: 0.25, mps_dram: 0.3, overload: 0.0565 }
    }
}

impl Interference {
    /// The same model with every coefficient multiplied: the sensitivity test of any result.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Interference {
            streams: self.streams * factor,
            mps: self.mps * factor,
            mps_dram: self.mps_dram * factor,
            overload: self.overload * factor,
        }
    }
}

/// The part of a device that a task may use.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum Part {
    /// All of it, shared with the other tasks there.
    Whole,
    /// A partition of its own.
    Slice {
        /// Share of the device's SMs.
        sm: f64,
        /// Share of the device's memory bandwidth.
        bandwidth: f64,
    },
}

impl Part {
    /// The partition that a MIG instance is.
    pub fn of_instance(model: GpuModel, instance: Instance) -> Part {
        let Some(table) = model.mig() else { return Part::Whole };
        Part::Slice {
            sm: sm_share(model, table, instance.compute),
            bandwidth: f64::from(instance.span) / f64::from(table.memory_slices),
        }
    }

    /// A compute instance with `slices` of a GPU instance that covers the whole board: SMs of its own,
    /// memory and bandwidth shared with the other compute instances.
    pub fn compute_instance(model: GpuModel, slices: u8) -> Part {
        let Some(table) = model.mig() else { return Part::Whole };
        Part::Slice { sm: sm_share(model, table, slices), bandwidth: 1.0 }
    }
}

fn sm_share(model: GpuModel, table: &MigTable, slices: u8) -> f64 {
    f64::from(u32::from(slices) * table.sms_per_slice) / f64::from(model.sms())
}

/// A task on a device.
#[derive(Clone, Copy, Debug)]
pub struct Resident<'a> {
    /// What it does when alone.
    pub profile: &'a Profile,
    /// What it runs, to look up measured pairs.
    pub signature: SignatureId,
    /// The part of the device it has.
    pub part: Part,
}

/// The rules of one shared device: the model and the pairs that were measured.
#[derive(Clone, Default, Debug)]
pub struct SharedGpu {
    /// The model's coefficients.
    pub interference: Interference,
    /// Measured pairs, which win over the model.
    pub pairs: PairTable,
}

impl SharedGpu {
    /// The speed of each resident relative to running alone, into `rates`.
    #[inline]
    pub fn rates(&self, share: Share, residents: &[Resident<'_>], rates: &mut Vec<f64>) {
        rates.clear();
        if let [only] = residents {
            rates.push(slice_rate(only));
            return;
        }
        rates.extend((0..residents.len()).map(|i| 1.0 / self.slowdown(share, residents, i)));
        match share {
            Share::Mig | Share::Exclusive => {}
            Share::Streams => self.fit_capacity(residents, rates, &[|a| a.gpu]),
            Share::Mps => self.fit_capacity(residents, rates, &[|a| a.sm, |a| a.dram]),
        }
    }

    /// How many times longer resident `i` takes because of the others, before the capacity step.
    fn slowdown(&self, share: Share, residents: &[Resident<'_>], i: usize) -> f64 {
        let me = &residents[i];
        let mut slowdown = 1.0;
        let mut measured_any = false;
        for (j, other) in residents.iter().enumerate() {
            if j == i {
                continue;
            }
            slowdown += match self.pairs.get(share, me.signature, other.signature) {
                Some(measured) => {
                    measured_any = true;
                    measured - 1.0
                }
                None => self.pair_term(share, me.profile, other.profile),
            };
        }
        // A measurement on slices already contains what the smaller slice costs.
        if measured_any { slowdown } else { slowdown / slice_rate(me) }
    }

    fn pair_term(&self, share: Share, me: &Profile, other: &Profile) -> f64 {
        let (mine, theirs) = (me.activity, other.activity);
        let felt = me.sensitivity * other.pressure;
        let product = |a: Fraction, b: Fraction| a.get() * b.get();
        let Interference { streams, mps, mps_dram, .. } = self.interference;
        match share {
            Share::Mig | Share::Exclusive => 0.0,
            Share::Streams => streams * felt * product(mine.gpu, theirs.gpu),
            Share::Mps => {
                mps * felt * product(mine.sm, theirs.sm)
                    + mps_dram * product(mine.dram, theirs.dram)
            }
        }
    }

    /// Slows all tasks in proportion until no resource is used beyond its capacity, then charges for
    /// the demand that was packed beyond one device (it grows with demand, not with what got through).
    fn fit_capacity(
        &self,
        residents: &[Resident<'_>],
        rates: &mut [f64],
        resources: &[fn(&Activity) -> Fraction],
    ) {
        let demand = |resource: fn(&Activity) -> Fraction| {
            residents.iter().map(move |r| resource(&r.profile.activity).get())
        };
        for &resource in resources {
            let load: f64 = demand(resource).zip(rates.iter()).map(|(d, rate)| d * rate).sum();
            if load > 1.0 {
                rates.iter_mut().for_each(|rate| *rate /= load);
            }
        }
        let excess = demand(resources[0]).sum::<f64>() - 1.0;
        if excess > 0.0 {
            let cost = 1.0 + self.interference.overload * excess;
            rates.iter_mut().for_each(|rate| *rate /= cost);
        }
    }
}

/// The speed of a task on its part of the device, undisturbed: the part of its time in which no kernel
/// runs is not affected, the rest stretches with the scarcest resource.
fn slice_rate(resident: &Resident<'_>) -> f64 {
    let Part::Slice { sm, bandwidth } = resident.part else { return 1.0 };
    let Activity { gpu, sm: sm_demand, dram, .. } = resident.profile.activity;
    let active = gpu.get();
    if active == 0.0 {
        return 1.0;
    }
    let stretch = (sm_demand.get() / active / sm).max(dram.get() / active / bandwidth).max(1.0);
    1.0 / ((1.0 - active) + active * stretch)
}

impl SharedGpu {
    /// What a monitor shows of a device whose residents run at these rates.
    pub fn observed(residents: impl Iterator<Item = (Activity, f64)>) -> Activity {
        let (mut sm, mut occupancy, mut dram, mut idle) = (0.0, 0.0, 0.0, 1.0);
        for (activity, rate) in residents {
            sm += activity.sm.get() * rate;
            occupancy += activity.occupancy.get() * rate;
            dram += activity.dram.get() * rate;
            // Any kernel makes the device "utilized": the shares overlap instead of adding up.
            idle *= 1.0 - activity.gpu.get();
        }
        let sm = Fraction::saturating(sm);
        Activity {
            gpu: Fraction::saturating((1.0 - idle).max(sm.get())),
            sm,
            occupancy: Fraction::saturating(occupancy),
            dram: Fraction::saturating(dram),
        }
    }
}
