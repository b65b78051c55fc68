//! How tasks stand in a forecast.

use super::Past;
use coloc_core::eligibility::{Conditions, End, Facts, Tasks};
use coloc_model::{Task, TaskId, Time, UserId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

pub(super) struct Known<'a> {
    /// Tasks that the scheduler has not heard of.
    coming: FxHashMap<TaskId, (Task, Conditions)>,
    /// Tasks that had not ended when the forecast began.
    facts: BTreeMap<TaskId, Facts>,
    names: FxHashMap<TaskId, (UserId, String)>,
    past: Past<'a>,
}

impl<'a> Known<'a> {
    pub(super) fn new(past: Past<'a>) -> Self {
        Known {
            coming: FxHashMap::default(),
            facts: BTreeMap::new(),
            names: FxHashMap::default(),
            past,
        }
    }

    pub(super) fn stands(&mut self, task: TaskId, facts: Facts, user: UserId, name: &str) {
        self.facts.insert(task, facts);
        self.names.insert(task, (user, name.to_owned()));
    }

    /// The scheduler has a task.
    pub(super) fn waits(&mut self, task: TaskId) {
        self.facts.entry(task).or_default();
    }

    pub(super) fn array(&self, task: TaskId) -> Option<TaskId> {
        self.facts.get(&task)?.array.map(|member| member.array)
    }

    pub(super) fn comes(&mut self, task: Task, conditions: Conditions) {
        let facts = Facts { array: conditions.array, ..Facts::default() };
        self.facts.entry(task.id).or_insert(facts);
        self.coming.insert(task.id, (task, conditions));
    }

    /// The scheduler hears of a task.
    pub(super) fn came(&mut self, task: TaskId) -> Option<Task> {
        self.coming.remove(&task).map(|(task, _)| task)
    }

    pub(super) fn started(&mut self, task: TaskId, now: Time) {
        if let Some(facts) = self.facts.get_mut(&task) {
            facts.first_started.get_or_insert(now);
        }
    }

    /// A task ended: its array, its user and its name.
    pub(super) fn ended(
        &mut self,
        task: TaskId,
        at: Time,
        ok: bool,
    ) -> (Option<TaskId>, UserId, String) {
        self.coming.remove(&task);
        if let Some(facts) = self.facts.get_mut(&task) {
            facts.end = Some(End { at, ok });
        }
        let (user, name) = self.names.remove(&task).unwrap_or((UserId(0), String::new()));
        (self.array(task), user, name)
    }
}

impl Tasks for Known<'_> {
    fn conditions(&self, task: TaskId) -> Option<Conditions> {
        self.coming.get(&task).map(|(_, conditions)| conditions.clone())
    }

    fn facts(&self, task: TaskId) -> Option<Facts> {
        self.facts.get(&task).copied().or_else(|| (self.past)(task))
    }

    fn last_unended(&self, tasks: Range<TaskId>) -> Option<TaskId> {
        let mut all = self.facts.range(tasks).rev();
        all.find(|(_, facts)| facts.end.is_none()).map(|(&task, _)| task)
    }
}
