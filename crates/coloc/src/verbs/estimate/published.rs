//! Other people's estimators on a model of one's own, to compare.

use super::{EstimateArgs, EstimateError, Who, input};
use coloc_estimate::gpumemnet::GpuMemNet;
use coloc_estimate::horus::{self, HorusEstimator};
use coloc_estimate::{Estimate, Estimator};
use coloc_model::Bytes;

/// The formula; on a summary it counts as the published scripts did.
pub(super) fn horus(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (graph, run) = input::load(args)?;
    let mut estimate = HorusEstimator.estimate(&graph, &run);
    if let Some(path) = &args.summary
        && let Some(counts) = horus::counts(&input::read(path)?, args.horus_quirks)
    {
        let bytes = Bytes::from_mib_f64(counts.capped_mib(run.batch));
        (estimate.peak, estimate.bound) = (bytes, bytes);
    }
    Ok(estimate)
}

/// The upper edge of a class.
pub(super) fn gpumemnet(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (graph, run) = input::load(args)?;
    GpuMemNet::estimate(&graph, &run).ok_or(EstimateError::NoNet)
}

/// Quirks are those of one estimator's reader of summaries.
pub(super) fn check(args: &EstimateArgs) -> Result<(), EstimateError> {
    if args.horus_quirks && (args.estimator != Who::Horus || args.summary.is_none()) {
        return Err(EstimateError::Unused("--horus-quirks works with --estimator horus --summary"));
    }
    Ok(())
}
