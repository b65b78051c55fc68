//! The GPU where incumbents and newcomer together are predicted to slow down least.

use super::{Cost, real_cost};
use crate::belief::{harm_by_profile, least_harm, predicted_harm, product};
use crate::demand::Demand;
use crate::gpus::GpuState;
use coloc_model::{InterferenceProfile, Share};

pub(super) fn cost(gpu: &GpuState, demand: &Demand) -> Cost {
    let residents = gpu.residents().iter();
    let mut profiles =
        residents.clone().map(|booking| booking.interference).chain([demand.interference]);
    if profiles.any(|interference| interference != InterferenceProfile::USUAL) {
        let incumbents = residents.map(|booking| (booking.load, booking.interference));
        let newcomer = (demand.load, demand.interference);
        return real_cost(harm_by_profile(product(gpu.share()), incumbents, newcomer).max(0.0));
    }
    // While no task is stretched harm follows from the sum alone. Then cost and bound are one number, and
    // a search need not open every GPU whose bound is a rounding error below.
    if gpu.load + demand.load <= 1.0 {
        return least(product(gpu.share()), gpu.load, demand.load, 1.0);
    }
    let incumbents = residents.map(|booking| booking.load);
    real_cost(predicted_harm(product(gpu.share()), incumbents, demand.load).max(0.0))
}

pub(super) fn bound(least_load: f64, demand: &Demand) -> Cost {
    if least_load.is_infinite() {
        return Cost::MAX;
    }
    // Pools may share their GPUs in another way: no way does less harm than MPS.
    least(product(Share::Mps), least_load, demand.load, demand.least_factor)
}

/// The two formulas round differently; a bound must not end up above what it bounds.
fn least(product: f64, load: f64, newcomer: f64, least_factor: f64) -> Cost {
    real_cost((least_harm(product, load, newcomer, least_factor) * (1.0 - 1e-9)).max(0.0))
}
