//! What keeps tasks from the scheduler for a while: an hour, other tasks, their array.

use coloc_model::{Task, TaskId, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// What a task waits for before the scheduler hears of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Gate {
    /// Not before this time.
    pub begin: Option<Time>,
    /// These must have ended.
    pub after: Vec<TaskId>,
    /// One of these must have ended, if there are any.
    pub after_any: Vec<TaskId>,
    /// Its array, and how many of that may be at work at once.
    pub array: Option<(TaskId, Option<u32>)>,
}

#[derive(Default)]
pub(super) struct Gates {
    shut: BTreeMap<TaskId, (Task, Gate)>,
    knocking: BTreeSet<TaskId>,
    after: FxHashMap<TaskId, Vec<TaskId>>,
    of_array: FxHashMap<TaskId, BTreeSet<TaskId>>,
    at_work: FxHashMap<TaskId, FxHashSet<TaskId>>,
    arrays: FxHashMap<TaskId, TaskId>,
}

impl Gates {
    pub(super) fn add(&mut self, task: Task, gate: Gate) {
        for on in gate.after.iter().chain(&gate.after_any) {
            self.after.entry(*on).or_default().push(task.id);
        }
        if let Some((array, _)) = gate.array {
            self.arrays.insert(task.id, array);
        }
        self.shut.insert(task.id, (task, gate));
    }

    pub(super) fn at_work(&mut self, task: TaskId, array: TaskId) {
        self.arrays.insert(task, array);
        self.at_work.entry(array).or_default().insert(task);
    }

    pub(super) fn knock(&mut self, task: TaskId) {
        self.knocking.insert(task);
    }

    pub(super) fn anyone_knocks(&self) -> bool {
        !self.knocking.is_empty()
    }

    /// A task has ended: those that wait for it, or for its place in the array, knock.
    pub(super) fn ended(&mut self, task: TaskId) {
        for waiting in self.after.remove(&task).unwrap_or_default() {
            if let Some((_, gate)) = self.shut.get_mut(&waiting) {
                gate.after.retain(|on| *on != task);
                if gate.after_any.contains(&task) {
                    gate.after_any.clear();
                }
                self.knocking.insert(waiting);
            }
        }
        let Some(array) = self.arrays.remove(&task) else { return };
        if let Some(at_work) = self.at_work.get_mut(&array) {
            at_work.remove(&task);
        }
        if let Some(waiting) = self.of_array.get_mut(&array) {
            self.knocking.extend(waiting.pop_first());
        }
    }

    /// Those of the knocking whose gate is open now.
    pub(super) fn open(&mut self, now: Time) -> Vec<Task> {
        let mut open = Vec::new();
        for id in std::mem::take(&mut self.knocking) {
            let Some((_, gate)) = self.shut.get(&id) else { continue };
            let waits = !gate.after.is_empty() || !gate.after_any.is_empty();
            if waits || gate.begin.is_some_and(|begin| begin > now) {
                continue;
            }
            if let Some((array, at_once)) = gate.array {
                let at_work = self.at_work.entry(array).or_default();
                if at_once.is_some_and(|most| at_work.len() >= most as usize) {
                    self.of_array.entry(array).or_default().insert(id);
                    continue;
                }
                at_work.insert(id);
            }
            open.extend(self.shut.remove(&id).map(|(task, _)| task));
        }
        open
    }
}
