//! A rule that refuses a GPU, with its amounts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A rule that says no to a task on one GPU. Amounts that a rule does not have are null.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct RuleView {
    /// Which rule: a word that stays, such as `memory`, `held_alone` or `busy`.
    pub rule: String,
    /// What there is: memory that can be promised, tasks on the GPU, SM activity.
    #[serde(default)]
    pub have: Option<f64>,
    /// What that is compared with: the memory that the task needs, the most tasks that are allowed.
    #[serde(default)]
    pub limit: Option<f64>,
    /// How far `have` is from what would do.
    #[serde(default)]
    pub short: Option<f64>,
    /// What the amounts count: `bytes`, `tasks`, `clients`, `s` or `ratio`.
    #[serde(default)]
    pub unit: Option<String>,
    /// The task that stands in the way, if it is one.
    #[serde(default)]
    pub task: Option<u32>,
    /// The same for people.
    pub text: String,
}
