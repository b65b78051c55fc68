//! Answers for programs.

use super::EstimateError;
use coloc_estimate::graph::Flag;
use coloc_estimate::{Breakdown, Estimate};
use coloc_model::Bytes;
use serde::Serialize;

/// The version of every answer's fields.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
pub(super) struct EstimateAnswer<'a> {
    schema: u32,
    peak_mib: f64,
    bound_mib: f64,
    smact: Option<f64>,
    smocc: Option<f64>,
    dram: Option<f64>,
    estimator: &'a str,
    flags: &'a [Flag],
    fits: Option<bool>,
    breakdown_bytes: Option<Breakdown>,
}

pub(super) fn estimate(estimate: &Estimate, device: Option<Bytes>) -> EstimateAnswer<'_> {
    let utilization = estimate.utilization;
    EstimateAnswer {
        schema: SCHEMA,
        peak_mib: estimate.peak.mib(),
        bound_mib: estimate.bound.mib(),
        smact: utilization.map(|utilization| utilization.smact.get()),
        smocc: utilization.map(|utilization| utilization.smocc.get()),
        dram: utilization.map(|utilization| utilization.dram.get()),
        estimator: estimate.estimator,
        flags: &estimate.flags,
        fits: device.map(|device| estimate.peak <= device),
        breakdown_bytes: estimate.breakdown,
    }
}

/// Any answer with the schema's version in front.
#[derive(Serialize)]
pub(super) struct Versioned<T: Serialize> {
    schema: u32,
    #[serde(flatten)]
    answer: T,
}

impl<T: Serialize> Versioned<T> {
    pub(super) fn new(answer: T) -> Self {
        Versioned { schema: SCHEMA, answer }
    }
}

pub(super) fn print(answer: &impl Serialize) -> Result<(), EstimateError> {
    println!("{}", serde_json::to_string_pretty(answer)?);
    Ok(())
}
