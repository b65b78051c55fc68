//! Which waiting tasks the scheduler may hear of: hold, begin time, pause before a retry, dependencies, singletons and
//! the limit of an array. The rules are in `rules.rs`; here is kept which tasks are to be looked at again
//! when a task starts or ends, or a time comes, so that no event looks at every waiting task.

mod names;
mod rules;

pub use rules::{
    ArrayMember, Conditions, Dependency, DependencyKind, End, Facts, HELD, Ineligible, Retry,
    Tasks, retry_pause,
};

use coloc_model::{Millis, TaskId, Time, UserId};
use names::Names;
use rules::{Memo, Rules};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// A task whose dependencies cannot be told is looked at again after this long.
const LOOK_AGAIN: Millis = Millis::from_secs(1);

/// The tasks of an array that the scheduler has, and those that wait until it has fewer.
#[derive(Clone, Default, Debug)]
struct ArrayLoad {
    eligible: FxHashSet<TaskId>,
    limited: BTreeSet<TaskId>,
}

/// What waiting tasks wait for, and which of them are to be looked at.
#[derive(Clone, Default, Debug)]
pub struct Eligibility {
    look: BTreeSet<TaskId>,
    by_time: BTreeSet<(Time, TaskId)>,
    /// Tasks that others wait for, each with one that waits.
    dependents: BTreeSet<(TaskId, TaskId)>,
    arrays: FxHashMap<TaskId, ArrayLoad>,
    /// The array of each task that was last found to wait for its array's limit.
    limited: FxHashMap<TaskId, TaskId>,
    names: Names,
    memo: Memo,
}

impl Eligibility {
    /// A task that has not ended is known by this name.
    pub fn named(&mut self, task: TaskId, user: UserId, name: &str) {
        self.names.insert(task, user, name);
    }

    /// It has another name: a singleton that waits for it may no longer have to.
    pub fn renamed(&mut self, task: TaskId, user: UserId, from: &str, to: &str) {
        if from == to {
            return;
        }
        self.names.remove(task, user, from);
        self.names.insert(task, user, to);
        self.look_at_dependents(task);
    }

    /// Something about a waiting task changed.
    pub fn look_at(&mut self, task: TaskId) {
        self.look.insert(task);
    }

    /// A task was started.
    pub fn started(&mut self, task: TaskId) {
        self.look_at_dependents(task);
    }

    /// The scheduler has a task of an array already.
    pub fn admitted(&mut self, task: TaskId, array: TaskId) {
        self.arrays.entry(array).or_default().eligible.insert(task);
    }

    /// The scheduler has let go of a task, which has not ended: another of its array may come.
    pub fn left(&mut self, task: TaskId, array: Option<TaskId>) {
        if let Some(array) = array {
            if let Some(load) = self.arrays.get_mut(&array) {
                load.eligible.remove(&task);
            }
            self.offer(array);
        }
    }

    /// A task ended for good.
    pub fn ended(&mut self, task: TaskId, array: Option<TaskId>, user: UserId, name: &str) {
        self.names.remove(task, user, name);
        self.look_at_dependents(task);
        self.limited.remove(&task);
        if let Some(array) = array {
            if let Some(load) = self.arrays.get_mut(&array) {
                load.limited.remove(&task);
            }
            self.left(task, Some(array));
            let is_empty = |load: &ArrayLoad| load.eligible.is_empty() && load.limited.is_empty();
            if self.arrays.get(&array).is_some_and(is_empty) {
                self.arrays.remove(&array);
            }
        }
    }

    /// The next task that had to be looked at, in the order of ids, and why it is not eligible. An eligible one is the
    /// scheduler's from now on.
    pub fn next(
        &mut self,
        now: Time,
        tasks: &impl Tasks,
    ) -> Option<(TaskId, Result<(), Ineligible>)> {
        while let Some(&(at, task)) = self.by_time.first()
            && at <= now
        {
            self.by_time.pop_first();
            self.look.insert(task);
        }
        while let Some(task) = self.look.pop_first() {
            let array = self.limited.remove(&task);
            if let Some(load) = array.and_then(|array| self.arrays.get_mut(&array)) {
                load.limited.remove(&task);
            }
            let verdict = tasks.conditions(task).map(|conditions| {
                let verdict = self.judge(task, &conditions, now, tasks);
                self.note(task, &conditions, &verdict);
                verdict
            });
            let takes = matches!(verdict, Some(Ok(()) | Err(Ineligible::ArrayTaskLimit { .. })));
            // A place that it was offered and does not take is the next one's.
            if let Some(array) = array.filter(|_| !takes) {
                self.offer(array);
            }
            if let Some(verdict) = verdict {
                return Some((task, verdict));
            }
        }
        // What is remembered of others does not change; it is forgotten so that it does not grow.
        self.memo.clear();
        None
    }

    /// Tasks are to be looked at, whatever the time is.
    pub fn has_more(&self) -> bool {
        !self.look.is_empty()
    }

    /// When the next task is to be looked at by the time alone.
    pub fn next_time(&self) -> Option<Time> {
        self.by_time.first().map(|&(at, _)| at)
    }

    /// Whether a task would wait for its own end under these conditions and this name.
    pub fn waits_for_itself(
        &self,
        task: TaskId,
        conditions: &Conditions,
        name: (UserId, &str),
        tasks: &impl Tasks,
    ) -> bool {
        let changed = (task, name.0, name.1);
        let mut next = self.needs(task, conditions, changed, tasks);
        let mut seen = FxHashSet::default();
        while let Some(on) = next.pop() {
            // The number of an array means all of its tasks.
            if on == task || conditions.array.is_some_and(|member| member.array == on) {
                return true;
            }
            if seen.insert(on)
                && let Some(conditions) = tasks.conditions(on)
            {
                next.extend(self.needs(on, &conditions, changed, tasks));
            }
        }
        false
    }

    /// The tasks that a task waits for, where one task has another name.
    fn needs(
        &self,
        task: TaskId,
        conditions: &Conditions,
        changed: (TaskId, UserId, &str),
        tasks: &impl Tasks,
    ) -> Vec<TaskId> {
        let mut needs: Vec<TaskId> = conditions.after.iter().map(|other| other.task).collect();
        let Some((user, name)) = &conditions.singleton else { return needs };
        let first = conditions.array.map_or(task, |member| member.array);
        let has_that_name = changed.0 < first && (changed.1, changed.2) == (*user, name);
        needs.extend(has_that_name.then_some(changed.0));
        for other in self.names.before(first, *user, name).filter(|other| *other != changed.0) {
            needs.push(other);
            // A singleton waits for the tasks of its name before it.
            if tasks.conditions(other).is_some_and(|other| other.singleton.is_some()) {
                break;
            }
        }
        needs
    }

    fn judge(
        &mut self,
        task: TaskId,
        conditions: &Conditions,
        now: Time,
        tasks: &impl Tasks,
    ) -> Result<(), Ineligible> {
        let mut rules = Rules { now, tasks, names: &self.names, memo: &mut self.memo };
        let ruled = rules.judge(task, conditions);
        if tasks.was_unable() {
            self.memo.clear();
            return Err(Ineligible::Unknown(now + LOOK_AGAIN));
        }
        ruled?;
        if let Some(ArrayMember { array, at_once: Some(at_once), .. }) = conditions.array {
            let eligible = self.arrays.get(&array).map_or(0, |load| load.eligible.len());
            if eligible >= at_once as usize {
                return Err(Ineligible::ArrayTaskLimit { array, at_once });
            }
        }
        Ok(())
    }

    /// Keeps what a task waits for.
    fn note(&mut self, task: TaskId, conditions: &Conditions, verdict: &Result<(), Ineligible>) {
        match verdict {
            Ok(()) => {
                if let Some(member) = conditions.array {
                    self.admitted(task, member.array);
                }
            }
            Err(why) => self.wait(task, why),
        }
    }

    fn wait(&mut self, task: TaskId, why: &Ineligible) {
        match why {
            Ineligible::Held | Ineligible::DependencyNeverSatisfied(_) => {}
            Ineligible::AnyDependency(all) => all.iter().for_each(|why| self.wait(task, why)),
            Ineligible::BeginTime(at)
            | Ineligible::Unknown(at)
            | Ineligible::Retry(Retry { at, .. })
            | Ineligible::AfterDelay { until: at, .. } => {
                self.by_time.insert((*at, task));
            }
            Ineligible::Dependency(on)
            | Ineligible::Singleton(on)
            | Ineligible::ArrayDependency { member: on, .. } => {
                self.dependents.insert((*on, task));
            }
            Ineligible::ArrayTaskLimit { array, .. } => {
                self.limited.insert(task, *array);
                self.arrays.entry(*array).or_default().limited.insert(task);
            }
        }
    }

    fn look_at_dependents(&mut self, on: TaskId) {
        while let Some(&(found, task)) = self.dependents.range((on, TaskId(0))..).next()
            && found == on
        {
            self.dependents.remove(&(on, task));
            self.look.insert(task);
        }
    }

    /// There may be room for one more of an array.
    fn offer(&mut self, array: TaskId) {
        let load = self.arrays.get_mut(&array);
        self.look.extend(load.and_then(|load| load.limited.pop_first()));
    }
}
