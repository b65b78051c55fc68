//! What the stream of events tells.

use crate::view::{DecisionView, FaultView, TaskView, VerdictView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an event has in `data`, by the name of the event: `hello`, `task`, `sample`, `status` or `decision`. `missed` has nothing
/// that counts: the listener has to ask for lists anew.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EventData {
    /// The first event of every stream.
    Hello(Hello),
    /// What the monitor saw.
    Sample(SampleFrame),
    /// What was decided.
    Decision(DecisionNews),
    /// How the daemon is.
    Status(StatusNews),
    /// A task is like this now.
    Task(Box<TaskView>),
}

/// Which daemon speaks, and where its events stand.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Hello {
    /// Names this run of the daemon.
    pub epoch: String,
    /// The last event before this stream.
    pub seq: u64,
    /// The version of the schema.
    pub schema: u32,
    /// The daemon's time, in seconds since 1970.
    pub now_s: f64,
}

/// What the monitor saw of all GPUs, once a second.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct SampleFrame {
    /// When, in seconds since 1970.
    pub at_s: f64,
    /// Each GPU.
    pub gpus: Vec<GpuFrame>,
}

/// What the monitor saw of a GPU.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct GpuFrame {
    /// Its number.
    pub index: u32,
    /// In use by any process.
    pub memory_used_bytes: u64,
    /// Promised to tasks.
    pub memory_promised_bytes: u64,
    /// SM activity.
    pub smact: f64,
    /// SM occupancy.
    pub smocc: Option<f64>,
    /// Activity of the memory.
    pub drama: Option<f64>,
    /// Power draw.
    pub power_w: Option<f64>,
    /// Temperature of the die.
    pub temperature_c: Option<f64>,
    /// Whether it would take a task now.
    pub verdict: VerdictView,
    /// The tasks on it.
    pub residents: Vec<ResidentFrame>,
    /// Memory that processes hold which are not tasks.
    pub foreign_bytes: u64,
}

/// What the monitor saw of a task on a GPU.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ResidentFrame {
    /// The task.
    pub id: u32,
    /// Memory that it holds.
    pub used_bytes: Option<u64>,
    /// Memory that it was promised.
    pub promised_bytes: u64,
    /// SM activity that is its own.
    pub sm_share: Option<f64>,
    /// How many times as long it takes as alone, as is predicted.
    pub slowdown: Option<f64>,
}

/// What changes of how the daemon is.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct StatusNews {
    /// The daemon's time, in seconds since 1970.
    pub now_s: f64,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Tasks by state: those that have not ended, and those that ended today.
    pub counts: BTreeMap<String, u64>,
    /// It starts nothing new.
    pub draining: bool,
    /// The disk is full.
    pub disk_full: bool,
    /// What of the machine keeps tasks from being launched.
    pub trouble: Option<String>,
    /// Times that tasks ran out of GPU memory today.
    pub ooms_today: u64,
    /// Tasks among those that completed today all the same.
    pub recovered_today: u64,
    /// Energy of all GPUs today.
    pub energy_today_j: Option<f64>,
    /// What is wrong now.
    pub faults: Vec<FaultView>,
}

/// What was decided of a task.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct DecisionNews {
    /// The task.
    pub task: u32,
    /// What.
    #[serde(flatten)]
    pub decision: DecisionView,
}
