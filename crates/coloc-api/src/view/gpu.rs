//! The GPUs as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A GPU as the daemon sees it.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct GpuView {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub uuid: String,
    /// Its kind.
    pub model: String,
    /// Its memory.
    pub memory_total_bytes: u64,
    /// In use by any process.
    pub memory_used_bytes: u64,
    /// Promised to tasks.
    pub memory_promised_bytes: u64,
    /// SM activity.
    pub smact: f64,
    /// Tasks on it.
    pub tasks: Vec<u32>,
    /// The same, with what is known of each.
    #[serde(default)]
    pub residents: Vec<ResidentView>,
    /// It cannot be used: it fell off the bus, or its driver is gone.
    #[serde(default)]
    pub lost: bool,
    /// It takes nothing new: it is faulty, or an administrator wants it so. Tasks on it go on.
    #[serde(default)]
    pub drained: bool,
    /// Why.
    #[serde(default)]
    pub drain_reason: Option<String>,
    /// Since when, in seconds since 1970.
    #[serde(default)]
    pub drained_s: Option<f64>,
    /// The administrator who wanted it; null if the daemon did, because of a fault.
    #[serde(default)]
    pub drained_by: Option<String>,
    /// The pools that it is in, the preferred first.
    #[serde(default)]
    pub pool: Vec<String>,
    /// The users and groups (`@lab`) that it is reserved for; empty if it is for all.
    #[serde(default)]
    pub reserved_for: Vec<String>,
    /// Until when, in seconds since 1970.
    #[serde(default)]
    pub reserved_until_s: Option<f64>,
    /// Why.
    #[serde(default)]
    pub reserve_reason: Option<String>,
    /// The administrator who reserved it.
    #[serde(default)]
    pub reserved_by: Option<String>,
    /// What is wrong with its memory now.
    #[serde(default)]
    pub faults: Vec<String>,
    /// Resident warps against the most that fit; null if no source tells.
    #[serde(default)]
    pub smocc: Option<f64>,
    /// Share of cycles in which its memory was busy; null if no source tells.
    #[serde(default)]
    pub drama: Option<f64>,
    /// Share of time in which any kernel ran.
    #[serde(default)]
    pub gract: Option<f64>,
    /// Where that was read: `dcgm`, `gpm` or `nvml`, with `emulated` before it if the GPU is made of software; null if no source answered.
    #[serde(default)]
    pub source: Option<String>,
    /// Power draw.
    #[serde(default)]
    pub power_w: Option<f64>,
    /// The most power that it may draw.
    #[serde(default)]
    pub power_limit_w: Option<f64>,
    /// Temperature of the die.
    #[serde(default)]
    pub temperature_c: Option<f64>,
    /// Energy since its driver was loaded.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// Clock of the SMs.
    #[serde(default)]
    pub clock_mhz: Option<f64>,
    /// How tasks share it: `exclusive`, `streams`, `mps` or `mig`.
    #[serde(default)]
    pub sharing: String,
    /// It is partitioned.
    #[serde(default)]
    pub mig: bool,
    /// Its MIG instances.
    #[serde(default)]
    pub instances: Vec<InstanceView>,
    /// Processes on it that are not tasks.
    #[serde(default)]
    pub foreign: Vec<ForeignView>,
    /// Whether it would take a task now.
    #[serde(default)]
    pub verdict: VerdictView,
    /// SM activity that is expected of the tasks on it, in GPUs; null if the policy does not look at it.
    #[serde(default)]
    pub sm_demand: Option<f64>,
    /// The most of it that the policy allows.
    #[serde(default)]
    pub sm_demand_limit: Option<f64>,
}

/// A MIG instance.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct InstanceView {
    /// NVIDIA's name for its size, such as `3g.20gb`.
    pub profile: String,
    /// The first memory slice that it has.
    pub start_slice: u32,
    /// Memory slices that it has.
    pub slices: u32,
    /// Its memory.
    pub memory_bytes: u64,
    /// The task in it, if one is.
    pub task: Option<u32>,
}

/// A process on a GPU that is no task.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ForeignView {
    /// Its PID.
    pub pid: u32,
    /// Whose it is, if that can be told.
    pub user: Option<String>,
    /// Memory that it holds; null if the driver does not tell.
    pub bytes: Option<u64>,
    /// Its program, if that can be told.
    pub name: Option<String>,
}

/// Whether a GPU would take a task now, whichever task that is.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct VerdictView {
    /// For programs.
    pub word: VerdictWord,
    /// For people, with the rule and its numbers.
    pub text: String,
    /// When that is over, in seconds since 1970, if that is known.
    pub until_s: Option<f64>,
}

/// A verdict in a word.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictWord {
    /// It takes what fits.
    #[default]
    Open,
    /// It is busier than the policy allows.
    Hot,
    /// No memory, or no room for another task, is left.
    Full,
    /// A task has it to itself.
    Taken,
    /// It takes nothing new.
    Drained,
    /// It cannot be used.
    Lost,
}

/// CPUs and memory of the machine: what tasks that run asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(default)]
pub struct HostView {
    /// CPUs that tasks may ask for; null if they are not counted.
    pub cpus_total: Option<u32>,
    /// CPUs that tasks which run asked for.
    pub cpus_used: u32,
    /// Memory that tasks may ask for; null if it is not counted.
    pub memory_total_bytes: Option<u64>,
    /// Memory that tasks which run asked for.
    pub memory_used_bytes: u64,
}

/// A task on a GPU.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ResidentView {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// Memory of this GPU that it was promised.
    pub promised_bytes: u64,
    /// The process that leads its session, once it has one.
    pub leader_pid: Option<u32>,
    /// Memory of this GPU that it holds now; null if it was not seen on it.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// What it was expected to need.
    #[serde(default)]
    pub estimate_bytes: Option<u64>,
    /// What it was expected to stay below.
    #[serde(default)]
    pub bound_bytes: Option<u64>,
    /// When its attempt began, in seconds since 1970.
    #[serde(default)]
    pub since_s: Option<f64>,
    /// Which attempt.
    #[serde(default)]
    pub attempt: u32,
    /// The MIG instance that it has here.
    #[serde(default)]
    pub instance: Option<String>,
    /// It was seen to train at a plateau of memory.
    #[serde(default)]
    pub settled: bool,
    /// SM activity of this GPU that is its own; null where nothing tells it from that of others.
    #[serde(default)]
    pub sm_share: Option<f64>,
    /// How many times as long it takes as alone, as the scheduler predicts.
    #[serde(default)]
    pub slowdown: Option<f64>,
    /// Times it ran out of GPU memory.
    #[serde(default)]
    pub ooms: u32,
    /// GPUs that it has in all.
    #[serde(default)]
    pub gpus: u32,
}
