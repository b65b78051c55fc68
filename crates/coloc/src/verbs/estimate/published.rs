//! Other people's estimators on a model of one's own, to compare.

use super::{EstimateArgs, EstimateError};
use crate::config::environments;
use crate::estimating::{self, Source};
use coloc_estimate::gpumemnet::GpuMemNet;
use coloc_estimate::graph::Graph;
use coloc_estimate::horus::{self, HorusEstimator};
use coloc_estimate::learned::DEFAULT_ENVIRONMENT;
use coloc_estimate::run::RunConfig;
use coloc_estimate::{Estimate, Estimator};

/// The formula; on a summary it counts as the published scripts did.
pub(super) fn horus(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (graph, run) = load(args)?;
    if let Some(Source::Summary(path)) = args.layers.source()
        && let Some(counts) = horus::counts(&estimating::read(path)?, args.horus_quirks)
    {
        return Ok(counts.estimate(run.batch, graph.flags, args.horus_quirks));
    }
    Ok(HorusEstimator.estimate(&graph, &run))
}

/// The upper edge of a class.
pub(super) fn gpumemnet(args: &EstimateArgs) -> Result<Estimate, EstimateError> {
    let (graph, run) = load(args)?;
    GpuMemNet::estimate(&graph, &run).ok_or(EstimateError::NoNet)
}

/// Neither knows environments.
fn load(args: &EstimateArgs) -> Result<(Graph, RunConfig), EstimateError> {
    Ok(estimating::load(&args.layers.layers()?, &environments::find(DEFAULT_ENVIRONMENT)?)?)
}
