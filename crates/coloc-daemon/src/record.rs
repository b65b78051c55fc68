//! What the daemon knows of one task, and keeps.

use crate::accounting::Accounting;
use crate::usage::Usage;
use coloc_api::moment::Moment;
use coloc_api::view::EnforcementView;
use coloc_core::{Attempts, Promised};
use coloc_model::{Bytes, Placement, TaskId, TaskState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which submission a task came with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpecId(pub u32);

/// A user of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Uid(pub u32);

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
    /// The user who submitted it.
    pub owner: Uid,
    /// Its place in an array.
    pub array: Option<ArrayPlace>,
    /// Where it stands.
    pub phase: TaskState,
    /// A user holds it.
    pub held: bool,
    /// Which user; not known of tasks that were submitted so, and of those that the daemon holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<Uid>,
    /// A user wants it gone.
    pub cancelled: bool,
    /// When it was submitted.
    pub submitted: Moment,
    /// When its last attempt was started.
    pub started: Option<Moment>,
    /// When it was started for the first time.
    pub first_started: Option<Moment>,
    /// When its last attempt was off its GPUs; `None` while one runs, and in journals that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Moment>,
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
    /// After a failure it is not run again before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Moment>,
    /// How often a GPU was lost under it.
    #[serde(default)]
    pub losses: u32,
    /// A hook was told, or is, that it waits for long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub long_wait_told: bool,
    /// Where it runs, or ran last.
    pub placement: Option<Placement>,
    /// How its last process ended.
    pub exit: Option<Exit>,
    /// The most memory that was seen on one of its GPUs.
    pub peak: Bytes,
    /// What the monitor saw of its last attempt.
    #[serde(default)]
    pub usage: Usage,
    /// What all of its attempts used of their GPUs.
    #[serde(default)]
    pub accounting: Accounting,
    /// What it wanted when it ran out of memory.
    pub wanted: Option<Bytes>,
    /// Why it is where it is, for people.
    pub reason: Option<String>,
    /// What holds its last attempt.
    #[serde(default, alias = "holds", skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Box<EnforcementView>>,
    /// What its last attempt held when the watchdog ended it.
    #[serde(default, alias = "too_greedy", skip_serializing_if = "Option::is_none")]
    pub ended_by_watchdog: Option<Bytes>,
    /// What the daemon wants of the attempt that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
    /// The attempt that runs was told of another time limit than it began with.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub limit_changed: bool,
    /// What it is promised of its GPUs' memory, and what its attempts showed of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<MemoryState>>,
}

/// What a scheduler has to know again of a task's memory after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryState {
    /// What the attempts so far showed.
    pub attempts: Attempts,
    /// What the attempt that runs, or ran last, was promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promised: Option<Promised>,
}

/// What the daemon wants of a running attempt: that it goes, for this reason. It is written down before a signal goes out,
/// and a restart carries it on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// Its user, or an administrator, wants it gone.
    Cancel,
    /// It is to start again.
    Requeue,
    /// Others go first, and it comes back.
    Preempt,
    /// Its time is over.
    TimeLimit,
    /// It holds memory that its neighbours were promised.
    Memory,
    /// It did nothing for too long.
    Idle,
    /// Its GPU or its MPS server is gone.
    Loss,
}

impl Intent {
    /// What is happening to the task, for people.
    pub(crate) fn tells(self) -> &'static str {
        match self {
            Intent::Cancel => "is being cancelled",
            Intent::Requeue => "is being requeued",
            Intent::Preempt => "is being preempted",
            Intent::TimeLimit => "is being stopped at its time limit",
            Intent::Memory => "is being ended by the memory watchdog",
            Intent::Idle => "is being stopped: it left its GPUs idle",
            Intent::Loss => "is being stopped: its GPU or MPS server is gone",
        }
    }
}

impl Record {
    /// Notes what is wanted of the running attempt. A cancelled task stays cancelled, whatever else is wanted of it.
    pub fn want(&mut self, intent: Intent) {
        self.intent = Some(if self.cancelled { Intent::Cancel } else { intent });
    }

    /// When its last attempt ended: of a task that waited again before it ended, earlier than its end.
    pub fn left_its_gpus(&self) -> Option<Moment> {
        self.stopped.or(self.ended)
    }

    /// A task that was just submitted.
    pub fn new(id: TaskId, spec: SpecId, owner: Uid, now: Moment) -> Self {
        Record {
            id,
            spec,
            owner,
            array: None,
            phase: TaskState::Pending,
            held: false,
            held_by: None,
            cancelled: false,
            submitted: now,
            started: None,
            first_started: None,
            stopped: None,
            ended: None,
            attempt: 0,
            ooms: 0,
            preemptions: 0,
            retried: 0,
            retry_at: None,
            losses: 0,
            long_wait_told: false,
            placement: None,
            exit: None,
            peak: Bytes::ZERO,
            usage: Usage::default(),
            accounting: Accounting::default(),
            wanted: None,
            reason: None,
            enforcement: None,
            ended_by_watchdog: None,
            intent: None,
            limit_changed: false,
            memory: None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use coloc_api::spec::TaskSpec;

    /// A submission of this command.
    pub(crate) fn spec(command: &[&str]) -> TaskSpec {
        let command = command.iter().map(|&word| word.into()).collect();
        TaskSpec::new("test".to_owned(), command, "/".into())
    }
}
