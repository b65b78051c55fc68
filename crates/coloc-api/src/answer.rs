//! What a daemon answers.

use crate::SCHEMA;
use crate::view::{ChosenSetting, Expected, GpuView, HostView, Scope, TaskView, TokenView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer with the version of its schema.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "{T}Answer")]
pub struct Versioned<T> {
    /// The version of the answer.
    pub schema: u32,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

impl<T> Versioned<T> {
    /// An answer by today's schema.
    pub fn new(answer: T) -> Self {
        Versioned { schema: SCHEMA, answer }
    }
}

/// Whether the daemon starts nothing new.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Draining {
    /// It does not.
    pub draining: bool,
}

/// Whether what was measured is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Taught {
    /// It is, and on the disk.
    pub taught: bool,
}

/// Tasks.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Listed {
    /// The version of the answer.
    pub schema: u32,
    /// The tasks, oldest first.
    pub tasks: Vec<TaskView>,
}

/// Tasks that are on the disk.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Submitted {
    /// The version of the answer.
    pub schema: u32,
    /// Their ids.
    pub ids: Vec<u32>,
    /// What they are promised of their GPUs' memory, in a sentence.
    #[serde(default)]
    pub memory_rule: Option<String>,
}

/// Which tasks were changed.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Changed {
    /// The version of the answer.
    pub schema: u32,
    /// Tasks that were changed.
    pub done: Vec<u32>,
    /// Tasks that were not, and why.
    pub refused: Vec<RefusedTask>,
}

/// A task that was not changed.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct RefusedTask {
    /// The task.
    pub id: u32,
    /// Why, for programs.
    pub code: String,
    /// Why, for people.
    pub message: String,
}

/// GPUs.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Gpus {
    /// The version of the answer.
    pub schema: u32,
    /// At least one of them is made of software.
    #[serde(default)]
    pub emulated: bool,
    /// CPUs and memory of the machine.
    #[serde(default)]
    pub host: HostView,
    /// The GPUs.
    pub gpus: Vec<GpuView>,
}

/// GPUs that take nothing new, or tasks again.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Served {
    /// The version of the answer.
    pub schema: u32,
    /// The GPUs that were named.
    pub gpus: Vec<GpuView>,
    /// What is to be known of them: a fault that is still there, one that was not drained.
    pub notes: Vec<String>,
}

/// What is expected of tasks.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Foreseen {
    /// The version of the answer.
    pub schema: u32,
    /// Tasks that have not ended.
    pub tasks: Vec<Expected>,
    /// When this was worked out, in seconds since 1970: it is worked out again after a change, at most every 5 s.
    #[serde(default)]
    pub at_s: f64,
}

/// What went wrong, for a program.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ApiError {
    /// The version of the answer.
    pub schema: u32,
    /// For people.
    pub error: String,
    /// For programs: a word that stays.
    #[serde(default)]
    pub code: String,
}

/// The settings in force that were chosen; the others are as `coloc daemon --help` tells.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ConfigInForce {
    /// The version of the answer.
    pub schema: u32,
    /// Each with where it was chosen.
    pub settings: Vec<ChosenSetting>,
    /// The policy that they and the preset amount to.
    #[serde(default)]
    pub policy: serde_json::Value,
    /// Seconds from a polite request to end to a kill.
    #[serde(default)]
    pub grace_s: f64,
    /// Seconds that what ended tasks leave is kept; without a number, for ever.
    #[serde(default)]
    pub keep_logs_s: Option<f64>,
    /// The most that all tasks may leave, in bytes.
    #[serde(default)]
    pub keep_logs_bytes: Option<u64>,
}

/// What a reload came to.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Reload {
    /// The version of the answer.
    pub schema: u32,
    /// The settings in force now.
    pub settings: Vec<ChosenSetting>,
    /// Settings that have changed but count at the next start only.
    pub at_next_start: Vec<String>,
}

impl Reload {
    /// In a sentence.
    pub fn told(&self) -> String {
        match self.at_next_start.as_slice() {
            [] => "the configuration was read again and is in force".to_owned(),
            later => format!(
                "the configuration was read again and is in force, but for {}: these count at the next start",
                later.join(", ")
            ),
        }
    }
}

/// A token that was made.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TokenMade {
    /// The version of the answer.
    pub schema: u32,
    /// The token. It is not kept, and cannot be shown again.
    pub token: String,
    /// What is known of it.
    #[serde(flatten)]
    pub view: TokenView,
    /// Where the daemon listens on the network, if it does.
    pub listens: Option<String>,
    /// What its certificate is known by there.
    pub fingerprint: Option<String>,
}

/// Tokens.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TokenList {
    /// The version of the answer.
    pub schema: u32,
    /// The caller's, or for an administrator those of all users.
    pub tokens: Vec<TokenView>,
}

/// A code that a page signs in with, once.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct WebCode {
    /// The version of the answer.
    pub schema: u32,
    /// The code.
    pub code: String,
    /// When it stops being of use, in seconds since 1970.
    pub expires_s: f64,
    /// The page's address with the code in it.
    pub url: String,
}

/// What a page shows from now on.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct WebSession {
    /// The version of the answer.
    pub schema: u32,
    /// The token. It is not kept, and cannot be shown again.
    pub token: String,
    /// What it may be used for.
    pub scope: Scope,
    /// Whose it is.
    pub user: String,
    /// When it stops being of use, in seconds since 1970.
    pub expires_s: f64,
}

/// Codes of refusals by which a client does something else than tell its user. docs/api.md lists all.
pub mod code {
    /// The code of a daemon that cannot answer just now.
    pub const BUSY: &str = "busy";
    /// The code of a daemon that is about to go.
    pub const STOPPING: &str = "stopping";
    /// The code of a task that has ended, or never was.
    pub const NO_SUCH_TASK: &str = "no_such_task";
    /// The code of a task that is not held, and so cannot be released.
    pub const NOT_HELD: &str = "not_held";
    /// The code of a task without processes, which hears no signal.
    pub const NOT_RUNNING: &str = "not_running";
}
