//! What the daemon knows of one task, and keeps.

use crate::run::Process;
use crate::usage::Usage;
use coloc_model::{Bytes, Placement, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A moment of the world's clock, in milliseconds since 1970.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Moment(pub u64);

impl Moment {
    /// Now.
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Moment(since.map_or(0, |since| since.as_millis() as u64))
    }

    /// Seconds since 1970.
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

/// Moments as those outside see them: seconds since 1970, with a fraction.
pub(crate) mod seconds {
    use super::Moment;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(at: &Moment, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(at.secs())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Moment, D::Error> {
        f64::deserialize(from).map(|seconds| Moment((seconds * 1000.0).round() as u64))
    }
}

/// Which submission a task came with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpecId(pub u32);

/// A user of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub u32);

/// Where a task stands. The names are those of the JSON contract.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It waits.
    #[default]
    Pending,
    /// It was decided to start it, and that is written down.
    Launching,
    /// Its process is there.
    Running,
    /// It is being taken off its GPUs and will come back.
    Preempting,
    /// It ran out of memory and waits for another try.
    Recovering,
    /// It ended well.
    Completed,
    /// It failed by itself.
    Failed,
    /// Somebody wanted it gone.
    Cancelled,
    /// It was stopped at its time limit.
    TimedOut,
    /// It ran out of memory once too often.
    OutOfMemory,
    /// Its process vanished and nobody knows how it ended.
    Lost,
}

impl Phase {
    /// All of them.
    pub const ALL: [Phase; 11] = [
        Phase::Pending,
        Phase::Launching,
        Phase::Running,
        Phase::Preempting,
        Phase::Recovering,
        Phase::Completed,
        Phase::Failed,
        Phase::Cancelled,
        Phase::TimedOut,
        Phase::OutOfMemory,
        Phase::Lost,
    ];

    /// The phase of this name.
    pub fn named(name: &str) -> Option<Self> {
        Phase::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The name used in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Pending => "pending",
            Phase::Launching => "launching",
            Phase::Running => "running",
            Phase::Preempting => "preempting",
            Phase::Recovering => "recovering",
            Phase::Completed => "completed",
            Phase::Failed => "failed",
            Phase::Cancelled => "cancelled",
            Phase::TimedOut => "timed_out",
            Phase::OutOfMemory => "out_of_memory",
            Phase::Lost => "lost",
        }
    }

    /// It will not run again.
    pub const fn is_over(self) -> bool {
        use Phase::{Cancelled, Completed, Failed, Lost, OutOfMemory, TimedOut};
        matches!(self, Completed | Failed | Cancelled | TimedOut | OutOfMemory | Lost)
    }

    /// It has, or may have, a process.
    pub const fn is_on_gpus(self) -> bool {
        matches!(self, Phase::Launching | Phase::Running | Phase::Preempting)
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Exit {
    /// As a shell would report it.
    pub const fn shell_code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

/// A task's place in an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArrayPlace {
    /// The first task of the array names it.
    pub array: TaskId,
    /// Its number in the array.
    pub index: u32,
    /// How many of the array may run at once.
    pub at_once: Option<u32>,
}

/// A task, as it is written down.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Its id.
    pub id: TaskId,
    /// What was submitted.
    pub spec: SpecId,
    /// Who submitted it.
    pub owner: Uid,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// Where it stands.
    pub phase: Phase,
    /// Somebody wants it to wait.
    pub held: bool,
    /// Somebody wants it gone.
    pub cancelled: bool,
    /// When it was submitted.
    pub submitted: Moment,
    /// When its last attempt was started.
    pub started: Option<Moment>,
    /// When it was started for the first time.
    pub first_started: Option<Moment>,
    /// When it ended for good.
    pub ended: Option<Moment>,
    /// How often it was launched. Attempt n has directory `runs/ID.n`.
    pub attempt: u32,
    /// How often it ran out of GPU memory.
    pub ooms: u32,
    /// How often it was preempted.
    pub preemptions: u32,
    /// How often it was run again after a failure of its own.
    pub retried: u32,
    /// How often a GPU was lost under it.
    #[serde(default)]
    pub losses: u32,
    /// Where it runs, or ran last.
    pub placement: Option<Placement>,
    /// How its last process ended.
    pub exit: Option<Exit>,
    /// The most memory that was seen on one of its GPUs.
    pub peak: Bytes,
    /// What the monitor saw of its last attempt.
    #[serde(default)]
    pub usage: Usage,
    /// What it wanted when it ran out of memory.
    pub wanted: Option<Bytes>,
    /// Why it is where it is, for people.
    pub reason: Option<String>,
    /// What holds its last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<Box<Holds>>,
    /// What its last attempt held when the watchdog ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_greedy: Option<Bytes>,
}

/// What holds an attempt to what it was given.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Holds {
    /// How its processes are kept together and killed: `cgroup`, or `session` with the reason.
    pub processes: String,
    /// What enforces its GPU memory, `none` if nothing does.
    pub gpu_memory: String,
    /// The host memory that it is held to, as the kernel reads it back.
    #[schemars(with = "Option<u64>")]
    pub host_memory: Option<Bytes>,
    /// What its MPS server and its environment allow each of its processes, if it is a client of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mps: Option<MpsHold>,
    /// What limits it to the SMs that it asked for, if it asked; `none` if nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sms: Option<String>,
}

/// How MPS holds an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct MpsHold {
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

impl Record {
    /// A task that was just submitted.
    pub fn new(id: TaskId, spec: SpecId, owner: Uid, now: Moment) -> Self {
        Record {
            id,
            spec,
            owner,
            array: None,
            phase: Phase::Pending,
            held: false,
            cancelled: false,
            submitted: now,
            started: None,
            first_started: None,
            ended: None,
            attempt: 0,
            ooms: 0,
            preemptions: 0,
            retried: 0,
            losses: 0,
            placement: None,
            exit: None,
            peak: Bytes::ZERO,
            usage: Usage::default(),
            wanted: None,
            reason: None,
            holds: None,
            too_greedy: None,
        }
    }
}
