//! Tasks that have not ended, by their user and name.

use coloc_model::{TaskId, UserId};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

#[derive(Clone, Default, Debug)]
pub(super) struct Names {
    tasks: FxHashMap<UserId, FxHashMap<String, BTreeSet<TaskId>>>,
}

impl Names {
    pub(super) fn insert(&mut self, task: TaskId, user: UserId, name: &str) {
        let names = self.tasks.entry(user).or_default();
        match names.get_mut(name) {
            Some(tasks) => tasks.insert(task),
            None => names.entry(name.to_owned()).or_default().insert(task),
        };
    }

    pub(super) fn remove(&mut self, task: TaskId, user: UserId, name: &str) {
        let Some(names) = self.tasks.get_mut(&user) else { return };
        let Some(tasks) = names.get_mut(name) else { return };
        tasks.remove(&task);
        if tasks.is_empty() {
            names.remove(name);
        }
    }

    /// Tasks of one name with ids below, the newest first.
    pub(super) fn before(
        &self,
        task: TaskId,
        user: UserId,
        name: &str,
    ) -> impl Iterator<Item = TaskId> + '_ {
        let tasks = self.tasks.get(&user).and_then(|names| names.get(name));
        tasks.into_iter().flat_map(move |tasks| tasks.range(..task).rev().copied())
    }
}
