//! What ran, as a simulation needs it.

use crate::view::StateShape;
use coloc_model::{Activity, Basis, GpuModel, TaskState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Ended tasks, and how the daemon that ran them was set up.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Past {
    /// The version of the answer.
    pub schema: u32,
    /// The last setup; `None` if the journal does not say.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    pub setup: Option<Setup>,
    /// Tasks that ran, by when they were submitted.
    pub tasks: Vec<PastTask>,
    /// Tasks that ended without having run.
    pub never_ran: usize,
}

/// How a daemon was set up. What a policy is, schedulers know; on the wire it is what they write.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Setup<P = serde_json::Value> {
    /// How it scheduled.
    pub policy: P,
    /// The GPUs of its machine.
    pub gpus: Vec<GpuModel>,
    /// The scheduler's seconds in one of the world's.
    pub time_scale: f64,
    /// The GPUs by name, in the same order: placements of tasks are numbers in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uuids: Vec<String>,
}

impl PastTask {
    /// How long its last attempt ran, in seconds of the world's.
    pub fn ran_s(&self) -> f64 {
        (self.stopped_s.unwrap_or(self.ended_s) - self.started_s).max(0.0)
    }
}

impl<P> Setup<P> {
    /// The same with its policy written in another way.
    pub fn try_map<Q, E>(self, policy: impl FnOnce(P) -> Result<Q, E>) -> Result<Setup<Q>, E> {
        let Setup { gpus, time_scale, uuids, .. } = self;
        Ok(Setup { policy: policy(self.policy)?, gpus, time_scale, uuids })
    }
}

/// A task that ran and has ended.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct PastTask {
    /// Its id.
    pub id: u32,
    /// What it ran: its name, with a number where another command had the same.
    pub kind: String,
    /// Whose it was.
    pub user: String,
    /// How it ended.
    #[schemars(with = "StateShape")]
    pub state: TaskState,
    /// GPUs at once.
    pub gpus: u32,
    /// Kinds of GPU that it named; none means any.
    #[serde(default)]
    pub gpu_kinds: Vec<String>,
    /// It wanted them to itself.
    pub exclusive: bool,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// When it was submitted, in seconds since 1970.
    pub submitted_s: f64,
    /// When it was first started.
    pub first_started_s: f64,
    /// When its last attempt began.
    pub started_s: f64,
    /// When its last attempt was off its GPUs: before its end if it was cancelled while it waited again. `None` in the
    /// answers of older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_s: Option<f64>,
    /// When it ended.
    pub ended_s: f64,
    /// Times it ran out of GPU memory.
    pub ooms: u32,
    /// Times it was preempted.
    pub preemptions: u32,
    /// Memory on each GPU: the most that was seen, else what it said or was estimated to need.
    pub memory_bytes: Option<u64>,
    /// What its user declared that it needs on each GPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_bytes: Option<u64>,
    /// What it was expected to hold when it was submitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate_bytes: Option<u64>,
    /// What it would stay below by that estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_bytes: Option<u64>,
    /// What its booking rested on; `None` in the answers of older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub basis: Option<Basis>,
    /// How busy it would keep a GPU to itself, from what was seen; `None` if it was never seen.
    #[schemars(with = "Option<BTreeMap<String, f64>>")]
    pub activity: Option<Activity>,
    /// How many times as long it took as alone, as the scheduler believes.
    pub slowdown: f64,
    /// Energy of its GPUs that is laid to it; `None` if it was never seen, and in the answers of older daemons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_j: Option<f64>,
    /// It shared a GPU; false in the answers of older daemons.
    #[serde(default)]
    pub shared: bool,
    /// Nothing was known of tasks that it shared a GPU with: `slowdown` is a guess.
    #[serde(default)]
    pub slowdown_guessed: bool,
}
