//! What people and programs see. The names of fields are a contract.

mod gpu;
mod task;

pub use gpu::{GpuView, HostView, ResidentView};
pub(crate) use task::StateShape;
pub use task::{
    Containment, EnforcementView, Expected, GpuWhy, MemoryView, MpsEnforcementView, Process,
    StoryLine, TaskDetail, TaskView, WAITING, WhyView,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the daemon is.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
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
}

/// A token as it is listed.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TokenView {
    /// Its number.
    pub id: u32,
    /// Whose it is.
    pub user: String,
    /// What it is for.
    pub label: String,
    /// When it was made, in seconds since 1970.
    pub created_s: f64,
    /// When it stops being of use.
    pub expires_s: Option<f64>,
    /// When it was used last, to the minute.
    pub last_used_s: Option<f64>,
    /// When it was revoked.
    pub revoked_s: Option<f64>,
}

/// A setting that was chosen, and where.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ChosenSetting {
    /// The flag's name.
    pub key: String,
    /// What it was given, each time; nothing for a flag that is off.
    pub values: Vec<String>,
    /// The file and line, the variable, or the command line.
    pub origin: String,
}
