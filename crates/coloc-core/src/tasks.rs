//! The tasks that are waiting or running, each with what happened to it so far.

use crate::accounts::Charge;
use crate::queue::Ticket;
use crate::queue::ranked::Standing;
use coloc_model::{Bytes, Placement, Task, TaskId, TaskState, Time};
use rustc_hash::FxHashMap;

/// One live task.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) task: Task,
    pub(crate) ticket: Ticket,
    pub(crate) run: Option<Run>,
    /// How often it ran out of memory.
    pub(crate) ooms: u32,
    /// The most memory it wanted when it died of want.
    pub(crate) wanted: Option<Bytes>,
    /// It waits in the recovery queue, for idle GPUs.
    pub(crate) idle_retry: bool,
    /// It has one try left, alone.
    pub(crate) last_resort: bool,
    /// It is to go as soon as it is off its GPUs.
    pub(crate) cancelled: bool,
    /// What it has had so far.
    pub(crate) standing: Standing,
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
}

impl Record {
    pub(crate) fn new(task: Task, ticket: Ticket) -> Self {
        Record {
            task,
            ticket,
            run: None,
            ooms: 0,
            wanted: None,
            idle_retry: false,
            last_resort: false,
            cancelled: false,
            standing: Standing::default(),
        }
    }

    pub(crate) fn state(&self) -> TaskState {
        match (&self.run, self.ooms) {
            (Some(_), _) => TaskState::Running,
            (None, 0) => TaskState::Pending,
            (None, _) => TaskState::Recovering,
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
