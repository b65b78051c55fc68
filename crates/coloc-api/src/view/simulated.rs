//! What would have been: the past played under other policies or on other GPUs, and what sharing saved. Predicted, not measured.
//! Spans are in seconds of the tasks: where time is scaled, the scheduler's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer that is being worked out: ask again.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct JobView {
    /// The version of the answer.
    pub schema: u32,
    /// Names what is being worked out.
    pub job: String,
    /// Simulations that are done, and how many there are in all.
    pub done: u32,
    /// How many there are in all; 0 if it has not begun.
    pub of: u32,
}

/// What would have been.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct WhatifAnswer {
    /// The version of the answer.
    pub schema: u32,
    /// What was submitted since, in seconds since 1970.
    pub since_s: f64,
    /// The GPUs that it was played on.
    pub fleet: String,
    /// How it went.
    pub observed: OutcomeRow,
    /// How the model says that it went, under the policy and on the GPUs that there were; null if the journal does not say them.
    pub model: Option<OutcomeRow>,
    /// The model's mean completion time by what was observed: 1 is perfect.
    pub agreement: Option<f64>,
    /// Each policy that was asked for.
    pub rows: Vec<OutcomeRow>,
    /// What was assumed, for people.
    pub assumptions: Vec<String>,
}

/// How it went, or would have gone.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct OutcomeRow {
    /// The policy.
    pub policy: String,
    /// From the first submission to the last end.
    pub makespan_s: f64,
    /// Mean time from submission to end.
    pub jct_mean_s: f64,
    /// Its median.
    pub jct_p50_s: f64,
    /// The first value that has 95 % before it.
    pub jct_p95_s: f64,
    /// Mean time from submission to the first start.
    pub wait_mean_s: f64,
    /// Times that tasks ran out of GPU memory.
    pub oom_count: u32,
    /// Mean SM activity of the GPUs; null where it was not measured.
    pub smact_mean: Option<f64>,
    /// Energy of the GPUs; null where it was not measured.
    pub energy_j: Option<f64>,
    /// Each task, in seconds since the first submission.
    pub tasks: Vec<OutcomeTask>,
}

/// How a task went, or would have gone.
#[derive(Clone, Copy, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct OutcomeTask {
    /// The task.
    pub id: u32,
    /// When it was submitted, in seconds since the first submission.
    pub submit_s: f64,
    /// When it started; null if it never did.
    pub start_s: Option<f64>,
    /// When it ended.
    pub end_s: Option<f64>,
}

/// What sharing saved: what was observed beside what would have been if every task had had its GPUs to itself.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SavingsAnswer {
    /// The version of the answer.
    pub schema: u32,
    /// What was submitted since, in seconds since 1970.
    pub since_s: f64,
    /// Tasks that ran and ended.
    pub tasks: u32,
    /// Hours of GPUs that tasks would have held alone, less those that were held.
    pub gpu_hours_saved: f64,
    /// By how much completion times were shorter on average.
    pub jct_saved_mean_s: f64,
    /// Energy that was saved, both modelled.
    pub energy_saved_j: Option<f64>,
    /// By day.
    pub by_day: Vec<SavedDay>,
    /// By user.
    pub by_user: Vec<SavedUser>,
    /// What that cost.
    pub cost: SavingsCost,
    /// What was assumed, for people.
    pub assumptions: Vec<String>,
}

/// A day.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SavedDay {
    /// The day, such as 2026-02-01, by UTC.
    pub day: String,
    /// Hours of GPUs if each task had had its own.
    pub exclusive_gpu_h: f64,
    /// Hours in which GPUs had tasks.
    pub shared_gpu_h: f64,
}

/// A user.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SavedUser {
    /// The user.
    pub user: String,
    /// Tasks that ran and ended.
    pub tasks: u32,
    /// How long they waited, in all.
    pub waited_s: f64,
    /// How long they would have waited.
    pub would_have_waited_s: f64,
    /// Hours of GPUs if each task had had its own.
    #[serde(default)]
    pub exclusive_gpu_h: f64,
    /// Their part of the hours in which GPUs had tasks.
    #[serde(default)]
    pub shared_gpu_h: f64,
    /// Energy that was laid to them; null if none was seen.
    #[serde(default)]
    pub energy_j: Option<f64>,
}

/// What sharing cost.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SavingsCost {
    /// Work that was done again after tasks ran out of memory.
    pub oom_repeated_s: f64,
    /// Tasks that were slowed by more than `slowed_beyond`, as the scheduler believed.
    pub slowed_tasks: u32,
    /// How many times as long counts as slowed.
    pub slowed_beyond: f64,
    /// Tasks of which is known how much they were slowed: `slowed_tasks` are of these.
    #[serde(default)]
    pub known_tasks: u32,
}
