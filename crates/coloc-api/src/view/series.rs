//! What was measured over time, in columns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Series of GPUs and tasks.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SeriesAnswer {
    /// The version of the answer.
    pub schema: u32,
    /// Each that was asked for and is known, in that order.
    pub series: Vec<SeriesView>,
}

/// One series: a value of each column every `step_s` seconds from `start_s` on.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SeriesView {
    /// Of what: `gpu:0` or `task:450`.
    pub of: String,
    /// Seconds from one value to the next.
    pub step_s: f64,
    /// When the first span begins, in seconds since 1970.
    pub start_s: f64,
    /// Means over each span; null for what was not seen. Of a GPU `memory_bytes`, `promised_bytes`, `smact`, `smocc`, `drama` and `power_w`;
    /// of a task `memory_bytes`, `promised_bytes` and `sm_share`.
    pub columns: BTreeMap<String, Vec<Option<f64>>>,
    /// The highest in each span, of the same columns.
    pub max: BTreeMap<String, Vec<Option<f64>>>,
}
