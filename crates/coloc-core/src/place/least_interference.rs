//! The GPU where incumbents and newcomer together are predicted to slow down least.

use super::{Cost, real_cost};
use crate::belief::{least_harm, predicted_harm};
use crate::demand::Demand;
use crate::gpus::GpuState;

pub(super) fn cost(gpu: &GpuState, demand: &Demand) -> Cost {
    // While nobody is stretched harm follows from the sum alone. Then cost and bound are one number, and
    // a search need not open every GPU whose bound is a rounding error below.
    if gpu.load + demand.load <= 1.0 {
        return bound(gpu.load, demand);
    }
    let incumbents = gpu.residents().iter().map(|booking| booking.load);
    real_cost(predicted_harm(incumbents, demand.load).max(0.0))
}

pub(super) fn bound(least_load: f64, demand: &Demand) -> Cost {
    if least_load.is_infinite() {
        return Cost::MAX;
    }
    // The two formulas round differently; a bound must not end up above what it bounds.
    real_cost((least_harm(least_load, demand.load) * (1.0 - 1e-9)).max(0.0))
}
