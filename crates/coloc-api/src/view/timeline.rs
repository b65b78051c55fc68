//! What ran where and when, and what is expected to.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What ran and runs in a span of time, and what is expected to.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TimelineAnswer {
    /// The version of the answer.
    pub schema: u32,
    /// From when on, in seconds since 1970.
    pub from_s: f64,
    /// Until when.
    pub to_s: f64,
    /// The daemon's time.
    pub now_s: f64,
    /// Attempts, the first one first.
    pub attempts: Vec<TimelineAttempt>,
    /// Tasks that wait.
    pub waiting: Vec<TimelineWaiting>,
    /// Processes that are not tasks.
    pub foreign: Vec<TimelineForeign>,
    /// There were more attempts than one answer has: the oldest were left out.
    pub truncated: bool,
}

/// An attempt.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TimelineAttempt {
    /// Its task.
    pub task: u32,
    /// The task's name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// Which attempt.
    pub number: u32,
    /// GPUs that it had.
    pub gpus: Vec<u32>,
    /// The MIG instance that it had.
    pub instance: Option<String>,
    /// When it began, in seconds since 1970.
    pub started_s: f64,
    /// When it ended; null while it runs.
    pub ended_s: Option<f64>,
    /// How it ended; null while it runs.
    pub outcome: Option<String>,
    /// When it is expected to end.
    pub predicted_end_s: Option<f64>,
    /// Times that it ran out of GPU memory: 1 or 0.
    pub ooms: u32,
}

/// A task that waits.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TimelineWaiting {
    /// The task.
    pub task: u32,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// GPUs that it is expected on; none if that is not foreseen.
    pub gpus: Vec<u32>,
    /// When it is expected to start, in seconds since 1970.
    pub expected_start_s: Option<f64>,
    /// When it is expected to end.
    pub expected_end_s: Option<f64>,
}

/// A process that is no task, on a GPU.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TimelineForeign {
    /// The GPU.
    pub gpu: u32,
    /// Whose it is.
    pub user: Option<String>,
    /// Its PID.
    pub pid: u32,
    /// When it was first seen, in seconds since 1970.
    pub from_s: f64,
    /// When it was last seen; null while it is there.
    pub to_s: Option<f64>,
}
