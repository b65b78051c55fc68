//! What is asked of a daemon.

use crate::spec::{TaskSpec, TaskUpdate};
use crate::text::RawText;
use crate::view::Scope;
use coloc_model::Lesson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a user submits.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The task.
    pub spec: TaskSpec,
    /// Many of them.
    #[serde(default)]
    pub array: Option<ArrayRequest>,
    /// They wait until they are released.
    #[serde(default)]
    pub held: bool,
    /// A name that the sender gives this submission alone: when it is sent again within a week, the answer is that of the
    /// first time and nothing is submitted twice.
    #[serde(default)]
    pub key: Option<String>,
    /// They wait until whatever the caller submitted before under the same name has ended.
    #[serde(default)]
    pub singleton: bool,
}

impl Submission {
    /// One task.
    pub fn of(spec: TaskSpec) -> Self {
        Submission { spec, array: None, held: false, key: None, singleton: false }
    }
}

/// Tasks that differ in a number.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayRequest {
    /// The numbers.
    pub indices: Vec<u32>,
    /// How many may run at once.
    #[serde(default)]
    pub at_once: Option<u32>,
}

/// What can be done with a task.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Make it go away.
    Cancel,
    /// Let it wait.
    Hold,
    /// Let it go on.
    Release,
    /// Stop it and start it again.
    Requeue,
    /// Let it be different.
    Update(TaskUpdate),
    /// Tell its processes something.
    Signal(SignalRequest),
}

impl Change {
    /// A running task is told to go.
    pub const fn tells(&self) -> bool {
        matches!(self, Change::Cancel | Change::Requeue)
    }
}

/// Something to be done with tasks.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRequest {
    /// The tasks.
    pub ids: Vec<u32>,
    /// What.
    pub change: Change,
}

/// A signal, and which processes it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// Its number.
    pub signal: i32,
    /// For all processes of the task, and not for the program alone. STOP, CONT and KILL always are.
    #[serde(default)]
    pub full: bool,
}

impl SignalRequest {
    /// No program hears STOP, CONT and KILL, so that its workers would go on by themselves.
    pub fn is_for_all(self) -> bool {
        self.full || crate::signals::is_unheard(self.signal)
    }
}

/// GPUs that one request may name.
pub const MOST_GPU_NAMES: usize = 1024;
/// The longest reason for taking a GPU out of service, in bytes.
pub const LONGEST_REASON: usize = 255;

/// A GPU as people name it.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GpuName {
    /// By the daemon's number.
    Index(u32),
    /// By its UUID.
    Uuid(String),
}

impl std::fmt::Display for GpuName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GpuName::Index(index) => write!(f, "{index}"),
            GpuName::Uuid(uuid) => f.write_str(uuid),
        }
    }
}

/// GPUs that are to take nothing new, or to take tasks again.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuService {
    /// Which.
    #[schemars(length(min = 1, max = MOST_GPU_NAMES))]
    pub gpus: Vec<GpuName>,
    /// They take nothing new (true), or tasks again (false).
    pub drained: bool,
    /// Why they take nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_REASON))]
    pub reason: Option<String>,
}

/// Users and groups that one reservation may name.
pub const MOST_RESERVED_FOR: usize = 64;

/// GPUs that are to take only the tasks of some users, or of all again.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuReservation {
    /// Which.
    #[schemars(length(min = 1, max = MOST_GPU_NAMES))]
    pub gpus: Vec<GpuName>,
    /// Users, and groups with a leading `@`; none for all again.
    #[schemars(length(max = MOST_RESERVED_FOR))]
    pub reserved_for: Vec<String>,
    /// Until when, in seconds since 1970; for good if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_s: Option<f64>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = LONGEST_REASON))]
    pub reason: Option<String>,
}

/// What was found out about a command.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teaching {
    /// The command.
    pub command: Vec<RawText>,
    /// The script that is its first word, if submitted tasks have a copy of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<RawText>,
    /// Where it ran.
    pub directory: RawText,
    /// What was found.
    #[schemars(with = "LessonShape")]
    pub lesson: Lesson,
}

/// How a [`Lesson`] is written, for clients that write one without this crate.
#[derive(JsonSchema)]
#[schemars(rename = "Lesson")]
#[expect(dead_code, reason = "only its shape is of use")]
struct LessonShape {
    /// SM activity alone, from 0 to 1.
    sm: Option<f64>,
    /// The most memory it held, in bytes.
    peak: Option<u64>,
    /// How it takes neighbours, and is one.
    interference: Option<InterferenceShape>,
}

/// Sensitivity and pressure, of the usual.
#[derive(JsonSchema)]
#[schemars(rename = "InterferenceProfile")]
#[expect(dead_code, reason = "only its shape is of use")]
struct InterferenceShape {
    /// How much others slow it.
    sensitivity: f64,
    /// How much it slows others.
    pressure: f64,
}

/// What a list is to have.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ListRequest {
    /// Ended tasks too.
    pub all: bool,
    /// Of those, only what ended since, in seconds since 1970.
    pub since_s: f64,
    /// Only this user's.
    pub user: Option<String>,
    /// Only the caller's.
    pub mine: bool,
    /// Only tasks in these states, with commas between them, such as `pending,running`.
    pub state: Option<String>,
    /// At most so many.
    pub limit: Option<u32>,
    /// Only tasks with a higher id than this one: the last of the page before.
    pub after: Option<u32>,
    /// Only these fields of each task, with commas between them, such as `id,state,reason_code`.
    pub fields: Option<String>,
}

/// Which part of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogRequest {
    /// From this byte on; from so many bytes before the end, if it is negative.
    pub offset: i64,
    /// Of this attempt, the first being 1; of the last if it is left out.
    pub attempt: Option<u32>,
    /// Go on with what the attempt writes, until it ends.
    pub follow: bool,
}

/// Which events are wanted.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EventsRequest {
    /// Only these kinds, with commas between them: `task`, `sample`, `status`, `decision`. Without it, `task`.
    pub kinds: Option<String>,
}

/// Which series are wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SeriesRequest {
    /// Of what, with commas between them, such as `gpu:0,task:450`.
    pub of: String,
    /// From when on, in seconds since 1970; from the first value on if it is left out.
    pub from_s: Option<f64>,
    /// Until when; until now if it is left out.
    pub to_s: Option<f64>,
    /// At most so many values of each column; 600 if it is left out.
    pub points: Option<u32>,
}

/// Which part of the timeline.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimelineRequest {
    /// From when on, in seconds since 1970; the last hour if it is left out.
    pub from_s: Option<f64>,
    /// Until when; until now if it is left out.
    pub to_s: Option<f64>,
}

/// What is to be played again.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WhatifRequest {
    /// What was submitted since, in seconds since 1970.
    pub since_s: f64,
    /// Only this user's.
    pub user: Option<String>,
    /// Other GPUs, such as `8xA100-40GB`; those that there were if it is left out.
    pub fleet: Option<String>,
    /// Policies: `exclusive`, a preset, `PRESET:ESTIMATOR` or `QUEUE/PLACE/SHARE`; three usual ones if there are none.
    pub policies: Vec<String>,
}

/// Which past.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SavingsRequest {
    /// What was submitted since, in seconds since 1970; the last seven days if it is left out.
    pub since_s: Option<f64>,
}

/// A code to sign in with.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebCodeRequest {
    /// What the page may do.
    pub scope: Scope,
}

/// A code, for a token.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebSessionRequest {
    /// The code.
    pub code: String,
}

/// What of the past is wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PastRequest {
    /// What was submitted since, in seconds since 1970.
    pub since_s: f64,
    /// Only this user's.
    pub user: Option<String>,
}

/// A token that is wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TokenRequest {
    /// Whose: the caller's, unless an administrator says otherwise.
    pub user: Option<String>,
    /// What it is for.
    pub label: String,
    /// How long it is good for, in seconds; for ever if nothing is said.
    pub lasts_s: Option<f64>,
    /// What it may be used for.
    pub scope: Scope,
}
