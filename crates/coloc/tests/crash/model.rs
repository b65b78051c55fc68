//! What was acknowledged, and what may have counted without being acknowledged.

use super::program::Program;
use serde_json::Value;

/// A value that may be one of several, since a command for it was not answered.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct OneOf<T>(Vec<T>);

impl<T: PartialEq + Clone> OneOf<T> {
    pub(super) fn surely(value: T) -> Self {
        OneOf(vec![value])
    }

    pub(super) fn or(&mut self, value: T) {
        self.0.push(value);
    }

    /// Says whether that can be, and is sure of it from then on.
    pub(super) fn turns_out(&mut self, seen: &T) -> bool {
        let can_be = self.0.contains(seen);
        *self = OneOf::surely(seen.clone());
        can_be
    }

    /// One of the values.
    pub(super) fn any(&self) -> T {
        self.0[0].clone()
    }

    pub(super) fn is_surely(&self, value: &T) -> bool {
        self.0.iter().all(|known| known == value)
    }
}

/// Whether a client asked for something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Asked {
    Never,
    /// It was not answered.
    Perhaps,
    Acknowledged,
}

/// How a task that is waited for must end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum When {
    Ok,
    NotOk,
    Any,
}

impl When {
    pub(super) fn name(self) -> &'static str {
        match self {
            When::Ok => "afterok",
            When::NotOk => "afternotok",
            When::Any => "afterany",
        }
    }
}

/// A task that waits for another, or for all of an array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct After {
    pub(super) tasks: Vec<u32>,
    pub(super) when: When,
}

/// How a task ended.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct End {
    pub(super) state: String,
    pub(super) exit_code: Option<i64>,
    /// Programs that had started by then.
    pub(super) starts: usize,
}

/// What is known of a task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) id: u32,
    pub(super) program: Program,
    pub(super) retries: usize,
    pub(super) index: Option<u64>,
    pub(super) limit_ms: Option<u64>,
    pub(super) name: OneOf<String>,
    pub(super) priority: OneOf<i64>,
    pub(super) held: OneOf<bool>,
    pub(super) after: Option<After>,
    pub(super) cancel: Asked,
    pub(super) requeue: Asked,
    /// Requeues that were acknowledged: which attempt was known to be there.
    pub(super) requeued_from: Vec<u32>,
    /// How it ended, once it was seen to have.
    pub(super) end: Option<End>,
}

impl Task {
    /// It can still be asked for something.
    pub(super) fn lives(&self) -> bool {
        self.end.is_none() && self.cancel == Asked::Never
    }
}

/// Tasks that are submitted at once.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub(super) name: String,
    pub(super) body: Value,
    pub(super) program: Program,
    pub(super) retries: usize,
    pub(super) indices: Vec<u64>,
    pub(super) limit_ms: Option<u64>,
    pub(super) priority: i64,
    pub(super) held: bool,
    pub(super) after: Option<After>,
}

impl Submission {
    /// How many tasks it has.
    pub(super) fn size(&self) -> usize {
        self.indices.len().max(1)
    }

    pub(super) fn has_key(&self) -> bool {
        self.body["key"].is_string()
    }

    /// Its tasks, once their ids are known.
    pub(super) fn tasks(&self, ids: &[u32]) -> Vec<Task> {
        let task = |(place, &id): (usize, &u32)| Task {
            id,
            program: self.program,
            retries: self.retries,
            index: self.indices.get(place).copied(),
            limit_ms: self.limit_ms,
            name: OneOf::surely(self.name.clone()),
            priority: OneOf::surely(self.priority),
            held: OneOf::surely(self.held),
            after: self.after.clone(),
            cancel: Asked::Never,
            requeue: Asked::Never,
            requeued_from: Vec::new(),
            end: None,
        };
        ids.iter().enumerate().map(task).collect()
    }
}

/// The submission that a name is of; updates add to it.
pub(super) fn submission_of(name: &str) -> &str {
    name.split('+').next().unwrap_or(name)
}
