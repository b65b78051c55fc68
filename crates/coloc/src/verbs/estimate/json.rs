//! Answers for programs.

use super::EstimateError;
use super::fit::Fit;
use crate::output;
use coloc_estimate::graph::Flag;
use coloc_estimate::ladder::Step;
use coloc_estimate::{Breakdown, Estimate};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct EstimateAnswer<'a> {
    peak_mib: f64,
    bound_mib: f64,
    /// What the bound is worth, in words.
    bound_means: String,
    smact: Option<f64>,
    smocc: Option<f64>,
    dram: Option<f64>,
    estimator: &'a str,
    flags: &'a [Flag],
    /// Whether it is expected to run on the device; `bound_fits`: whether its bound does.
    fits: Option<bool>,
    bound_fits: Option<bool>,
    breakdown_bytes: Option<Breakdown>,
    /// Estimators that were asked, the one that answered last.
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    asked: &'a [Step],
}

pub(super) fn estimate<'a>(
    estimate: &'a Estimate,
    fit: Option<Fit>,
    asked: &'a [Step],
) -> EstimateAnswer<'a> {
    let utilization = estimate.utilization;
    EstimateAnswer {
        peak_mib: estimate.peak.mib(),
        bound_mib: estimate.bound.mib(),
        bound_means: estimate.promise.to_string(),
        smact: utilization.map(|utilization| utilization.smact.get()),
        smocc: utilization.map(|utilization| utilization.smocc.get()),
        dram: utilization.map(|utilization| utilization.dram.get()),
        estimator: estimate.estimator,
        flags: &estimate.flags,
        fits: fit.map(|fit| fit != Fit::Not),
        bound_fits: fit.map(|fit| fit == Fit::Surely),
        breakdown_bytes: estimate.breakdown,
        asked,
    }
}

/// An answer as text, with the schema's version in front.
pub(super) fn text(answer: &impl Serialize) -> Result<String, EstimateError> {
    Ok(output::versioned(answer)?)
}
