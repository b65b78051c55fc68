//! Answers for programs.

use super::EstimateError;
use crate::output;
use coloc_estimate::graph::Flag;
use coloc_estimate::ladder::Step;
use coloc_estimate::{Breakdown, Estimate};
use coloc_model::Bytes;
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct EstimateAnswer<'a> {
    peak_mib: f64,
    bound_mib: f64,
    smact: Option<f64>,
    smocc: Option<f64>,
    dram: Option<f64>,
    estimator: &'a str,
    flags: &'a [Flag],
    fits: Option<bool>,
    breakdown_bytes: Option<Breakdown>,
    /// Who was asked before somebody answered.
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    asked: &'a [Step],
}

pub(super) fn estimate<'a>(
    estimate: &'a Estimate,
    device: Option<Bytes>,
    asked: &'a [Step],
) -> EstimateAnswer<'a> {
    let utilization = estimate.utilization;
    EstimateAnswer {
        peak_mib: estimate.peak.mib(),
        bound_mib: estimate.bound.mib(),
        smact: utilization.map(|utilization| utilization.smact.get()),
        smocc: utilization.map(|utilization| utilization.smocc.get()),
        dram: utilization.map(|utilization| utilization.dram.get()),
        estimator: estimate.estimator,
        flags: &estimate.flags,
        fits: device.map(|device| estimate.peak <= device),
        breakdown_bytes: estimate.breakdown,
        asked,
    }
}

/// An answer as text, with the schema's version in front.
pub(super) fn text(answer: &impl Serialize) -> Result<String, EstimateError> {
    Ok(output::versioned(answer)?)
}
