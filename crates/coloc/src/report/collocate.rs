//! The page of `coloc collocate`: the published analysis of collocation, drawn from the model.

use super::compare::Gpu;
use super::frame;
use serde::Serialize;

/// What the page of a collocation study shows.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct CollocatePage {
    /// Heading and window title.
    pub(crate) title: String,
    /// The device; its memory is the capacity line.
    pub(crate) gpu: Gpu,
    /// What the numbers are, such as "predicted by the model, not measured".
    pub(crate) note: String,
    /// Every arrangement that was tried.
    pub(crate) experiments: Vec<Experiment>,
}

/// One arrangement of tasks on the device.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Experiment {
    /// What runs.
    pub(crate) workload: String,
    /// What runs beside it, once, if anything.
    pub(crate) with: Option<String>,
    /// How they share: `exclusive`, `streams`, `mps`, `mig` or `lanes`.
    pub(crate) share: String,
    /// The partition, such as `7 x 1g.5gb`; empty where there is none.
    pub(crate) layout: String,
    /// Copies of the workload at once, not counting what runs beside it.
    pub(crate) copies: u32,
    /// Whether memory allows it; the figures below mean nothing when it does not.
    pub(crate) fits: bool,
    /// Aggregate throughput against running one at a time.
    pub(crate) throughput: f64,
    /// Mean time of a task over its time alone.
    pub(crate) slowdown_mean: f64,
    /// SM activity, 0 to 1.
    pub(crate) smact: f64,
    /// Memory in use.
    pub(crate) memory_mib: f64,
    /// Power drawn.
    pub(crate) power_w: f64,
    /// Energy against running one at a time.
    pub(crate) energy_ratio: f64,
    /// The throughput that was published for this arrangement, against one at a time.
    pub(crate) published: Option<f64>,
    /// Where that number comes from.
    pub(crate) published_what: Option<String>,
}

/// The page for a collocation study, complete.
pub(crate) fn collocate_page(data: &CollocatePage) -> String {
    frame::page(&data.title, data, &[include_str!("collocate.js")])
}
