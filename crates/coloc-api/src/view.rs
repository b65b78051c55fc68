//! What people and programs see. The names of fields are a contract.

mod attempt;
mod event;
mod gpu;
mod progress;
mod reason;
mod rule;
mod series;
mod simulated;
mod status;
mod task;
mod timeline;

pub use attempt::{AttemptView, DecisionGpu, DecisionKind, DecisionView, NeighbourView};
pub use event::{DecisionNews, EventData, GpuFrame, Hello, ResidentFrame, SampleFrame, StatusNews};
pub use gpu::{
    ForeignView, GpuView, HostView, InstanceView, ResidentView, VerdictView, VerdictWord,
};
pub use progress::Progress;
pub use reason::ReasonCode;
pub use rule::RuleView;
pub use series::{SeriesAnswer, SeriesView};
pub use simulated::{
    JobView, OutcomeRow, OutcomeTask, SavedDay, SavedUser, SavingsAnswer, SavingsCost, WhatifAnswer,
};
pub use status::{EstimateQuality, FaultView, LimitsView, PolicyView, Scope, StatusView};
pub(crate) use task::StateShape;
pub use task::{
    Containment, EnforcementView, Expected, GpuWhy, MemoryView, MpsEnforcementView, Process,
    StoryLine, TaskDetail, TaskView, WAITING, WhyView,
};
pub use timeline::{TimelineAnswer, TimelineAttempt, TimelineForeign, TimelineWaiting};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What it may be used for.
    #[serde(default)]
    pub scope: Scope,
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
