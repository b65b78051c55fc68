//! Tasks as clients see them.

use crate::estimated::EstimateFlag;
use crate::moment::{self, Moment};
use crate::text::RawText;
use crate::view::{AttemptView, DecisionView, NeighbourView, Progress, ReasonCode, RuleView};
use coloc_model::{Bytes, TaskState};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// How a [`TaskState`] is written, for clients that write one without this crate.
pub(crate) struct StateShape;

impl JsonSchema for StateShape {
    fn schema_name() -> Cow<'static, str> {
        "TaskState".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Where a task stands.",
            "type": "string",
            "enum": TaskState::ALL.map(TaskState::name),
        })
    }
}

/// What is said of a task that waits and of which nothing else is said.
pub const WAITING: &str = "waiting for a GPU";

/// A task in a list. Its texts are its own, or borrowed where lists are long.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "TaskView")]
pub struct TaskView<T = String> {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: T,
    /// Whose it is.
    pub user: T,
    /// Where it stands.
    #[schemars(with = "StateShape")]
    pub state: TaskState,
    /// Why, for people.
    pub reason: Option<T>,
    /// GPUs that it wants.
    pub gpus: u32,
    /// GPUs that it has, or had last.
    #[serde(default)]
    pub gpu_ids: Vec<u32>,
    /// The array that it is part of.
    pub array_id: Option<u32>,
    /// Its number there.
    pub array_index: Option<u32>,
    /// When it was submitted, in seconds since 1970.
    pub submitted_s: f64,
    /// When its last attempt began.
    pub started_s: Option<f64>,
    /// When it ended.
    pub ended_s: Option<f64>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// The most it may run, in seconds.
    pub time_limit_s: Option<f64>,
    /// What it said that it needs on each GPU.
    pub gpu_mem_bytes: Option<u64>,
    /// What it is expected to need.
    pub estimate_bytes: Option<u64>,
    /// The most that was seen.
    #[serde(default)]
    pub peak_bytes: u64,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u32,
    /// Times it ran out of GPU memory.
    #[serde(default)]
    pub ooms: u32,
    /// Times it was preempted.
    #[serde(default)]
    pub preemptions: u32,
    /// How its process ended, as a shell has it.
    pub exit_code: Option<i32>,
    /// What its GPUs' memory is booked with before it is seen: it is expected to stay below.
    #[serde(default)]
    pub bound_bytes: Option<u64>,
    /// Booked on each of its GPUs.
    #[serde(default)]
    pub promised_bytes: Option<u64>,
    /// Memory that it holds now, on the GPU where it holds most; null if it was not seen.
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// When it was started for the first time.
    #[serde(default)]
    pub first_started_s: Option<f64>,
    /// The user who holds it; null if it is not held, or that was not kept.
    #[serde(default)]
    pub held_by: Option<T>,
    /// Its place among the tasks that wait for GPUs, the first being 1; null if it does not wait for GPUs.
    #[serde(default)]
    pub position: Option<u32>,
    /// What it waits for, in a word; null if it does not wait.
    #[serde(default)]
    pub reason_code: Option<ReasonCode>,
    /// How far it is, if it runs and its log tells.
    #[serde(default)]
    pub progress: Option<Progress>,
    /// When its last attempt was off its GPUs; null while one runs.
    #[serde(default)]
    pub stopped_s: Option<f64>,
}

impl<T> TaskView<T> {
    /// How long its last attempt ran, or runs, in seconds; `None` if none was started, or it waits for the next.
    pub fn ran_s(&self, now: f64) -> Option<f64> {
        let began = self.started_s.filter(|_| self.state != TaskState::Pending)?;
        // Of a task that waited again before it ended, the end is later than its last attempt's.
        let stopped = self.stopped_s.filter(|_| !self.state.is_on_gpus());
        Some((stopped.or(self.ended_s).unwrap_or(now) - began).max(0.0))
    }
}

impl<T: Into<String>> TaskView<T> {
    /// With texts of its own.
    pub fn owned(self) -> TaskView {
        TaskView {
            id: self.id,
            name: self.name.into(),
            user: self.user.into(),
            state: self.state,
            reason: self.reason.map(Into::into),
            gpus: self.gpus,
            gpu_ids: self.gpu_ids,
            array_id: self.array_id,
            array_index: self.array_index,
            submitted_s: self.submitted_s,
            started_s: self.started_s,
            ended_s: self.ended_s,
            priority: self.priority,
            time_limit_s: self.time_limit_s,
            gpu_mem_bytes: self.gpu_mem_bytes,
            estimate_bytes: self.estimate_bytes,
            peak_bytes: self.peak_bytes,
            attempts: self.attempts,
            ooms: self.ooms,
            preemptions: self.preemptions,
            exit_code: self.exit_code,
            bound_bytes: self.bound_bytes,
            promised_bytes: self.promised_bytes,
            used_bytes: self.used_bytes,
            first_started_s: self.first_started_s,
            held_by: self.held_by.map(Into::into),
            position: self.position,
            reason_code: self.reason_code,
            progress: self.progress,
            stopped_s: self.stopped_s,
        }
    }
}

/// A task with everything that is known of it.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TaskDetail {
    /// As in a list.
    #[serde(flatten)]
    pub task: TaskView,
    /// The command.
    pub command: Vec<RawText>,
    /// Where it runs.
    pub directory: RawText,
    /// Kinds of GPU that it may run on; without any, all.
    #[serde(default)]
    pub gpu_kinds: Vec<String>,
    /// Pools of GPUs that it may run in; of a task that named none, the one that it got.
    #[serde(default)]
    pub pools: Vec<String>,
    /// Where its output is.
    pub log: String,
    /// What it left was removed, and with it that log.
    #[serde(default)]
    pub log_removed: bool,
    /// What its GPUs' memory is booked with before it is seen: it is expected to stay below.
    #[serde(default)]
    pub estimate_bound_bytes: Option<u64>,
    /// Which estimator said so.
    #[serde(default)]
    pub estimator: Option<String>,
    /// Why that is less certain.
    #[serde(default)]
    pub estimate_flags: Vec<EstimateFlag>,
    /// What it is promised of its GPUs' memory.
    #[serde(flatten, default)]
    pub memory: MemoryView,
    /// Copies that `srun` starts in it.
    #[serde(default)]
    pub ntasks: Option<u32>,
    /// CPUs that it asked for.
    #[serde(default)]
    pub cpus: Option<u32>,
    /// Host memory that it asked to be held to.
    #[serde(default)]
    pub host_mem_bytes: Option<u64>,
    /// What holds its last attempt to what it was given.
    #[serde(default)]
    pub enforcement: Option<Box<EnforcementView>>,
    /// What happened to it.
    pub story: Vec<StoryLine>,
    /// Its attempts, the first one first; of very many, the last ones.
    #[serde(default)]
    pub attempts_list: Vec<AttemptView>,
    /// What was decided of it, the first decision first; of very many, the last ones.
    #[serde(default)]
    pub decisions: Vec<DecisionView>,
    /// Tasks that were on its GPUs while it was.
    #[serde(default)]
    pub neighbours: Vec<NeighbourView>,
    /// Energy of its GPUs that is laid to it.
    #[serde(default)]
    pub energy_j: Option<f64>,
    /// How that was found: `measured`, `modelled` or `emulated`.
    #[serde(default)]
    pub energy_kind: Option<String>,
    /// Mean SM activity that is laid to it, over its GPUs and its last attempt.
    #[serde(default)]
    pub smact_mean: Option<f64>,
}

/// What a task is promised of the memory of each of its GPUs: by what it declares or is known of it while it waits, as it was
/// booked once it runs.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct MemoryView {
    /// What that rests on: declared, estimated, history or unknown.
    #[serde(default)]
    pub memory_basis: Option<String>,
    /// What it is held to; null for as much as there is.
    #[serde(default)]
    pub limit_bytes: Option<u64>,
    /// It was seen to train at a plateau of memory.
    #[serde(default)]
    pub settled: bool,
    /// The same in a sentence.
    #[serde(default)]
    pub memory_rule: Option<String>,
}

/// What keeps the processes of a task together, so that all of them end with it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// Its session; a process that leaves it may escape.
    #[default]
    Session,
    /// A control group, without limits.
    Cgroup,
    /// A control group with limits.
    CgroupWithLimits,
}

/// What holds an attempt to what it was given.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct EnforcementView {
    /// What keeps its processes together.
    #[serde(default)]
    pub containment: Containment,
    /// How its processes are kept together and killed: `cgroup`, or `session` with the reason.
    pub processes: String,
    /// What enforces its GPU memory, `none` if nothing does.
    pub gpu_memory: String,
    /// The kernel's controller of device memory does.
    #[serde(default)]
    pub dmem: bool,
    /// The host memory that it is held to, as the kernel reads it back.
    #[schemars(with = "Option<u64>")]
    pub host_memory: Option<Bytes>,
    /// The CPUs that it is held to, such as 0-3, as the kernel reads them back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// What its MPS server and its environment allow each of its processes, if it is a client of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<MpsEnforcementView>,
    /// What limits it to the SMs that it asked for, if it asked; `none` if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sms: Option<String>,
}

/// How MPS holds an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct MpsEnforcementView {
    /// Memory by its environment.
    #[schemars(with = "Option<u64>")]
    pub memory: Option<Bytes>,
    /// Memory by its server, which is the limit of the largest task there.
    #[schemars(with = "Option<u64>")]
    pub server_memory: Option<Bytes>,
    /// The most of the SMs that it may use, in percent.
    #[serde(default)]
    pub threads_percent: Option<u8>,
    /// Its server.
    pub server: Process,
}

/// A process. A PID alone does not name one: it is given again after the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub began: u64,
}

/// A line of a task's story.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct StoryLine {
    /// When, in seconds since 1970.
    #[schemars(with = "f64")]
    #[serde(with = "moment::seconds")]
    pub at: Moment,
    /// What happened, for people, with numbers.
    pub what: String,
}

/// Why a task waits.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct WhyView {
    /// The task.
    pub task: TaskView,
    /// In a sentence.
    pub summary: String,
    /// Booked on each of its GPUs.
    #[serde(default)]
    pub promised_bytes: Option<u64>,
    /// What that rests on.
    #[serde(flatten, default)]
    pub memory: MemoryView,
    /// The first task of its kind, whose memory has to be seen before this one can share a GPU.
    #[serde(default)]
    pub awaits: Option<u32>,
    /// Why the machine's CPUs or memory cannot take it now.
    #[serde(default)]
    pub host: Option<String>,
    /// Tasks that are asked before it.
    pub ahead: usize,
    /// What each GPU says.
    pub gpus: Vec<GpuWhy>,
}

/// What one GPU says to a task.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct GpuWhy {
    /// The GPU.
    pub gpu: u32,
    /// The rules that say no, each with the amount that was short.
    pub refusals: Vec<String>,
    /// The same rules as data.
    #[serde(default)]
    pub rules: Vec<RuleView>,
}

/// When a task is expected to start and to end.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Expected {
    /// The task.
    pub id: u32,
    /// When it will start, in seconds since 1970; its start, if it runs.
    pub expected_start_s: Option<f64>,
    /// When it will end.
    pub expected_end_s: Option<f64>,
    /// The GPUs that it will start on; none if it runs, or that cannot be told.
    #[serde(default)]
    pub expected_gpus: Vec<u32>,
    /// What was assumed, or why it cannot be told.
    pub expected_basis: String,
}
