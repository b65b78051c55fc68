//! How the daemon is.

use crate::view::Containment;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How the daemon is.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct StatusView {
    /// Its version.
    pub version: String,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Kinds of tasks of which it was taught what was measured.
    #[serde(default)]
    pub lessons: usize,
    /// The disk is full.
    pub disk_full: bool,
    /// It starts nothing new.
    pub draining: bool,
    /// The daemon's process.
    pub pid: u32,
    /// What keeps the processes of tasks together.
    #[serde(default)]
    pub containment: Containment,
    /// How the processes of tasks are kept together, killed and limited.
    #[serde(default)]
    pub processes: String,
    /// What of the machine keeps tasks from being launched, if anything does.
    #[serde(default)]
    pub trouble: Option<String>,
    /// The machine's name.
    #[serde(default)]
    pub host: String,
    /// At least one GPU is made of software.
    #[serde(default)]
    pub emulated: bool,
    /// The scheduler's seconds in one of the world's: time limits are in the scheduler's, starts and ends in the world's.
    #[serde(default)]
    pub time_scale: f64,
    /// The daemon's time, in seconds since 1970.
    #[serde(default)]
    pub now_s: f64,
    /// When the daemon started.
    #[serde(default)]
    pub started_s: f64,
    /// The user who asks.
    #[serde(default)]
    pub user: String,
    /// That user may touch every user's tasks.
    #[serde(default)]
    pub admin: bool,
    /// What the caller may do here.
    #[serde(default)]
    pub scope: Scope,
    /// How it schedules.
    #[serde(default)]
    pub policy: PolicyView,
    /// Tasks by state: those that have not ended, and those that ended today.
    #[serde(default)]
    pub counts: BTreeMap<String, u64>,
    /// Times that tasks ran out of GPU memory today.
    #[serde(default)]
    pub ooms_today: u64,
    /// Tasks among those that completed today all the same.
    #[serde(default)]
    pub recovered_today: u64,
    /// How good estimates of memory were.
    #[serde(default)]
    pub estimate: EstimateQuality,
    /// Energy of all GPUs since midnight by the machine's clock, or since the daemon started; null if no GPU tells.
    #[serde(default)]
    pub energy_today_j: Option<f64>,
    /// Names this run of the daemon: events of another run are not this one's.
    #[serde(default)]
    pub epoch: String,
    /// The last event that was sent.
    #[serde(default)]
    pub seq: u64,
    /// Beyond what GPUs count as busy.
    #[serde(default)]
    pub limits: LimitsView,
    /// What is wrong now.
    #[serde(default)]
    pub faults: Vec<FaultView>,
}

/// What a caller may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look.
    Read,
    /// Look, and do what the user may.
    #[default]
    Act,
}

/// How a daemon schedules, in words.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct PolicyView {
    /// The preset; null if another queue, placement or way to share was chosen.
    pub preset: Option<String>,
    /// The order of waiting tasks.
    pub queue: String,
    /// How a GPU is chosen.
    pub place: String,
    /// How tasks share one.
    pub share: String,
    /// What says what tasks need, if an estimator does.
    pub estimator: Option<String>,
}

/// How good estimates of memory were, over ended tasks that had one and were seen.
#[derive(Clone, Copy, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct EstimateQuality {
    /// The median of (estimate - peak) / peak; null without rows.
    pub error_median: Option<f64>,
    /// The part of them that stayed below the bound.
    pub within_bound: Option<f64>,
    /// How many they were.
    pub rows: u64,
}

/// Beyond what GPUs count as busy; null where the policy has no limit.
#[derive(Clone, Copy, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct LimitsView {
    /// SM activity.
    pub smact: Option<f64>,
    /// SM occupancy.
    pub smocc: Option<f64>,
    /// Activity of the memory.
    pub drama: Option<f64>,
}

/// Something that is wrong.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct FaultView {
    /// For programs: `disk_full`, `journal`, `draining`, `machine`, `gpu_lost`, `gpu_fault` or `monitor`.
    pub word: String,
    /// For people.
    pub text: String,
}
