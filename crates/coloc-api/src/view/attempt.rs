//! Attempts, decisions and neighbours of a task, as data.

use crate::view::{ReasonCode, RuleView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One attempt at a task.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct AttemptView {
    /// The first is 1.
    pub number: u32,
    /// GPUs that it had.
    pub gpus: Vec<u32>,
    /// The MIG instance that it had.
    pub instance: Option<String>,
    /// When it began, in seconds since 1970; null if it did not.
    pub started_s: Option<f64>,
    /// When it ended; null while it runs.
    pub ended_s: Option<f64>,
    /// How it ended: `completed`, `failed`, `cancelled`, `timeout`, `oom`, `preempted`, `requeued`, `lost` and so on; null while it runs.
    pub outcome: Option<String>,
    /// How its process ended, as a shell has it.
    pub exit_code: Option<i32>,
    /// The most memory that was seen on one of its GPUs.
    pub peak_bytes: u64,
    /// Times that it ran out of GPU memory: 1 or 0.
    pub ooms: u32,
    /// Booked on each of its GPUs.
    pub promised_bytes: Option<u64>,
}

/// What the scheduler decided of a task, and why.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct DecisionView {
    /// When, in seconds since 1970.
    pub at_s: f64,
    /// Which attempt it starts; null if it waits.
    pub attempt: Option<u32>,
    /// What.
    pub kind: DecisionKind,
    /// What it waits for; null if it starts.
    #[serde(default)]
    pub reason_code: Option<ReasonCode>,
    /// GPUs that it got.
    pub chosen: Vec<u32>,
    /// What each GPU said; of very many GPUs, the chosen ones and those that were nearest.
    pub gpus: Vec<DecisionGpu>,
    /// GPUs that are left out of that.
    #[serde(default)]
    pub left_out: u32,
}

/// What was decided.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// It is not started, and what it waits for is another than at the decision before.
    #[default]
    Waits,
    /// It is launched.
    Starts,
}

/// What one GPU said when a task was decided about.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct DecisionGpu {
    /// The GPU.
    pub gpu: u32,
    /// It would have taken the task.
    pub fits: bool,
    /// The cost by which the placement chooses, the lowest being best; null if the placement has none.
    pub score: Option<f64>,
    /// For people.
    pub text: String,
    /// The rules that said no.
    pub refusals: Vec<RuleView>,
}

/// A task that was on a GPU of another while that one was.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct NeighbourView {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// The GPU that both were on.
    pub gpu: u32,
    /// From when on, in seconds since 1970.
    pub since_s: f64,
    /// Until when; null while both are on it.
    pub until_s: Option<f64>,
    /// The most memory that it was seen with.
    pub used_bytes: u64,
    /// How many times as long the task takes because of it, as is predicted; null where that is not known, as after the end of the task.
    pub slows_this: Option<f64>,
    /// How many times as long it takes because of the task.
    pub slowed_by_this: Option<f64>,
}
