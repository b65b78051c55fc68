//! What is kept of an estimate with a task.

use coloc_model::{Bytes, Loads};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How an [`coloc_model::Estimate`] is written, for clients that write one without this crate.
#[derive(JsonSchema)]
#[schemars(rename = "Estimate")]
#[expect(dead_code, reason = "only its shape is of use")]
pub(crate) struct EstimateShape {
    /// The most memory the task is expected to hold on each of its GPUs, in bytes.
    peak: u64,
    /// Memory that it stays below with high confidence, in bytes.
    bound: u64,
    /// Expected SM activity when alone, from 0 to 1.
    sm: Option<f64>,
}

/// A reason to doubt an estimate.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct EstimateFlag {
    /// What kind of reason, such as `assumption`.
    pub kind: String,
    /// For people.
    pub detail: String,
}

/// A replay without what the software environment adds, from which that can be learned once the task has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Replayed {
    /// What the framework's allocator holds at most, in bytes.
    #[schemars(with = "u64")]
    pub allocator: Bytes,
    /// What the task loads: plain, convolutions or `batch_norm`.
    #[schemars(with = "String")]
    pub loads: Loads,
}
