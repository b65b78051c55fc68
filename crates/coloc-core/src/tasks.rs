//! The tasks that are waiting or running, each with what happened to it so far.

use crate::accounts::Charge;
use crate::contract::Promised;
use crate::contract::evidence::Plateau;
use crate::queue::Ticket;
use crate::queue::ranked::ServiceRecord;
use coloc_model::{Bytes, Placement, Task, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// What the attempts of a task so far showed of its memory, and what the next one is given for it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempts {
    /// How often it ran out of memory by its own doing.
    pub ooms: u32,
    /// The most memory it wanted when it died of want.
    pub wanted: Option<Bytes>,
    /// What the next attempt is given at least.
    pub granted: Bytes,
    /// How often a neighbour took the memory that it was promised.
    pub wronged: u32,
    /// Its next attempt waits for idle GPUs.
    pub idle_retry: bool,
    /// It has one try left, alone.
    pub last_resort: bool,
}

impl Attempts {
    /// It ran out of memory, by its own doing or a neighbour's, and waits before tasks that did not.
    pub(crate) fn is_recovering(&self) -> bool {
        self.ooms > 0 || self.wronged > 0
    }
}

/// One live task.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) task: Task,
    pub(crate) ticket: Ticket,
    pub(crate) run: Option<Run>,
    /// What its attempts so far showed of its memory.
    pub(crate) attempts: Attempts,
    /// What it was promised under another scheduler, until it is adopted.
    pub(crate) promised: Option<Promised>,
    /// It is to go as soon as it is off its GPUs.
    pub(crate) cancelled: bool,
    /// What it has had so far.
    pub(crate) service_record: ServiceRecord,
}

/// A task's time on its GPUs.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) placement: Placement,
    /// What its user is charged.
    pub(crate) charge: Charge,
    pub(crate) started: Time,
    /// The most memory seen on any of its GPUs.
    pub(crate) seen: Bytes,
    /// It has been watched long enough to be believed.
    pub(crate) settled: bool,
    /// Evidence that it has all the memory that it wants.
    pub(crate) plateau: Plateau,
    /// What it held when it had settled, by the contract.
    pub(crate) settled_at: Bytes,
    /// What it was promised when it was launched.
    pub(crate) promised: Bytes,
    /// What it is held to, which is fixed at its launch.
    pub(crate) limit: Option<Bytes>,
}

impl Record {
    pub(crate) fn new(task: Task, ticket: Ticket) -> Self {
        Record {
            task,
            ticket,
            run: None,
            attempts: Attempts::default(),
            promised: None,
            cancelled: false,
            service_record: ServiceRecord::default(),
        }
    }

    pub(crate) fn state(&self) -> TaskState {
        match (&self.run, self.attempts.is_recovering()) {
            (Some(_), _) => TaskState::Running,
            (None, false) => TaskState::Pending,
            (None, true) => TaskState::Recovering,
        }
    }
}

/// Every live task. Ended ones are forgotten: their history is the journal's.
#[derive(Clone, Default, Debug)]
pub(crate) struct Tasks {
    /// Boxed, so that the map is small and looking up does not touch what it passes.
    records: FxHashMap<TaskId, Box<Record>>,
}

impl Tasks {
    pub(crate) fn get(&self, task: TaskId) -> Option<&Record> {
        self.records.get(&task).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, task: TaskId) -> Option<&mut Record> {
        self.records.get_mut(&task).map(Box::as_mut)
    }

    /// A task that the caller knows to be alive.
    pub(crate) fn live(&self, task: TaskId) -> &Record {
        self.records.get(&task).expect("queues and ledgers name live tasks only")
    }

    pub(crate) fn insert(&mut self, record: Record) {
        self.records.insert(record.task.id, Box::new(record));
    }

    pub(crate) fn remove(&mut self, task: TaskId) -> Option<Record> {
        self.records.remove(&task).map(|record| *record)
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// In no particular order: for checks only.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Record> {
        self.records.values().map(Box::as_ref)
    }
}
