//! The memory of a task from its layers: what `coloc estimate` tells and `coloc submit` sends along.

mod error;
mod layers;

pub(crate) use error::LayersError;
pub(crate) use layers::{Layers, Source, load, read};

use crate::config::environments;
use coloc_api::estimated::{EstimateFlag, Replayed};
use coloc_estimate::environment::loads_of;
use coloc_estimate::graph::{FlagKind, Graph};
use coloc_estimate::{Estimate, Estimator as _, Family, ReplayEstimator, catalogue};
use coloc_model::{Bytes, Loads};

/// What is sent with a task whose layers are known.
pub(crate) struct Forecast {
    pub(crate) estimate: Estimate,
    pub(crate) flags: Vec<EstimateFlag>,
    /// What an environment can be learned from, where the replay is sure enough for that.
    pub(crate) replayed: Option<Replayed>,
}

/// What a task with these layers is expected to need, for the user who submits it.
pub(crate) fn forecast(layers: &Layers<'_>, env: Option<&str>) -> Result<Forecast, LayersError> {
    let environment = environments::chosen(env)?;
    let (graph, run) = layers::load(layers, &environment)?;
    let estimate = ReplayEstimator::within(environment.constants).estimate(&graph, &run);
    let context = estimate.breakdown.map_or(0, |parts| parts.context);
    let replayed = teaches(&graph)
        .ok()
        .map(|loads| Replayed { allocator: estimate.peak.saturating_sub(Bytes(context)), loads });
    // As `--json` has them.
    let flags = serde_json::from_value(serde_json::to_value(&estimate.flags)?)?;
    Ok(Forecast { estimate, flags, replayed })
}

/// What a run of this graph teaches of its environment, or why it teaches nothing: its replay must be sure.
pub(crate) fn teaches(graph: &Graph) -> Result<Loads, &'static str> {
    let unsure = |kind: FlagKind| match kind {
        FlagKind::UnknownOperation => Some("unknown operations"),
        FlagKind::HiddenLayers => Some("hidden layers"),
        FlagKind::SummaryMismatch => Some("contradictions in its numbers"),
        FlagKind::Assumption | FlagKind::Unverified | FlagKind::OutOfMemory => None,
    };
    if let Some(reason) = graph.flags.iter().find_map(|flag| unsure(flag.kind)) {
        return Err(reason);
    }
    match Family::of(graph) {
        Family::OddConvolutions => Err("convolutions with odd channel counts"),
        Family::Dense | Family::RegularConvolutions | Family::Attention => Ok(loads_of(graph)),
    }
}

pub(crate) fn known_tasks() -> String {
    let known = catalogue::task_names().filter(|name| catalogue::task(name).is_some());
    known.collect::<Vec<_>>().join(", ")
}
