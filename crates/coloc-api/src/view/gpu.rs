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
}

/// A task on a GPU.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
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
}
