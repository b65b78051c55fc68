//! Where a task stands.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a task stands. The names are those of the JSON contract.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
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
    /// A user cancelled it, or a dependency can never be met.
    Cancelled,
    /// It was stopped at its time limit.
    TimedOut,
    /// It ran out of memory once too often.
    OutOfMemory,
    /// Its process vanished and it is not known how it ended.
    Lost,
}

impl TaskState {
    /// All of them.
    pub const ALL: [TaskState; 11] = [
        TaskState::Pending,
        TaskState::Launching,
        TaskState::Running,
        TaskState::Preempting,
        TaskState::Recovering,
        TaskState::Completed,
        TaskState::Failed,
        TaskState::Cancelled,
        TaskState::TimedOut,
        TaskState::OutOfMemory,
        TaskState::Lost,
    ];

    /// The phase of this name.
    pub fn named(name: &str) -> Option<Self> {
        TaskState::ALL.into_iter().find(|phase| phase.name() == name)
    }

    /// The name used in JSON and tables.
    pub const fn name(self) -> &'static str {
        match self {
            TaskState::Pending => "pending",
            TaskState::Launching => "launching",
            TaskState::Running => "running",
            TaskState::Preempting => "preempting",
            TaskState::Recovering => "recovering",
            TaskState::Completed => "completed",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
            TaskState::TimedOut => "timed_out",
            TaskState::OutOfMemory => "out_of_memory",
            TaskState::Lost => "lost",
        }
    }

    /// It will not run again.
    pub const fn is_over(self) -> bool {
        use TaskState::{Cancelled, Completed, Failed, Lost, OutOfMemory, TimedOut};
        matches!(self, Completed | Failed | Cancelled | TimedOut | OutOfMemory | Lost)
    }

    /// It has, or may have, a process.
    pub const fn is_on_gpus(self) -> bool {
        matches!(self, TaskState::Launching | TaskState::Running | TaskState::Preempting)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer as _;
    use serde::de::value::{Error, StrDeserializer};

    #[test]
    fn one_list_of_names_serves_json_and_tables() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::named(state.name()), Some(state));
            let name: StrDeserializer<'_, Error> = state.name().into_deserializer();
            assert_eq!(TaskState::deserialize(name), Ok(state), "{state}");
        }
        assert_eq!(TaskState::named("asleep"), None);
    }
}
