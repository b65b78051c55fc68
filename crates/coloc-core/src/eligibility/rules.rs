//! Whether one task is eligible, and why not.

use super::names::Names;
use coloc_model::{Millis, TaskId, Time, UserId};
use rustc_hash::FxHashMap;
use std::fmt;
use std::ops::Range;

/// The longest pause between the starts of two attempts, the first of which failed.
const LONGEST_PAUSE: Millis = Millis::from_secs(300);

/// How long after its start a task that has failed so often may start again: a task that fails at once would keep a daemon
/// busy otherwise.
pub fn retry_pause(failures: u32) -> Millis {
    let doubled = failures.saturating_sub(1).min(10);
    Millis::from_secs(1 << doubled).min(LONGEST_PAUSE)
}

/// A task that another waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dependency {
    /// That task. The number of an array is that of its first task, and means all of its tasks.
    pub task: TaskId,
    /// What it must have done.
    pub kind: DependencyKind,
}

/// What a task must have done that another waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DependencyKind {
    /// It was started so long ago, or never will be.
    After(Millis),
    /// It ended well.
    AfterOk,
    /// It ended, and not well.
    AfterNotOk,
    /// It ended.
    AfterAny,
    /// It ended well; of an array, the task with the same index alone.
    AfterCorr,
}

/// A task's place in an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArrayMember {
    /// The first task of the array names it. Ids of an array follow each other.
    pub array: TaskId,
    /// Its index, which grows with the ids.
    pub index: u32,
    /// How many of the array the scheduler may have at once.
    pub at_once: Option<u32>,
}

/// The pause after a failed attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retry {
    /// When it is over.
    pub at: Time,
    /// How often the task has failed.
    pub failures: u32,
}

/// What a task waits for before the scheduler hears of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Conditions {
    /// It is held.
    pub held: bool,
    /// Not before this time.
    pub begin: Option<Time>,
    /// It has failed, and will be tried again.
    pub retry: Option<Retry>,
    /// Tasks that it waits for, the newest last.
    pub after: Vec<Dependency>,
    /// One of them is enough.
    pub any: bool,
    /// It waits until whatever this user submitted before under this name has ended.
    pub singleton: Option<(UserId, String)>,
    /// Its place in an array.
    pub array: Option<ArrayMember>,
}

/// How a task stands that others may wait for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Its place in an array.
    pub array: Option<ArrayMember>,
    /// When it was started for the first time.
    pub first_started: Option<Time>,
    /// How it ended.
    pub end: Option<End>,
}

/// The end of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// When that was.
    pub at: Time,
    /// It completed.
    pub ok: bool,
}

/// What the rules must know of tasks.
pub trait Tasks {
    /// What a task waits for; `None` unless it waits to be eligible.
    fn conditions(&self, task: TaskId) -> Option<Conditions>;
    /// How a task stands or ended; `None` of one that is not known.
    fn facts(&self, task: TaskId) -> Option<Facts>;
    /// Something that was asked since the last time could not be told: what follows from it does not count.
    fn was_unable(&self) -> bool {
        false
    }
    /// The last of these that has not ended.
    fn last_unended(&self, tasks: Range<TaskId>) -> Option<TaskId>;
}

/// What is said of a held task.
pub const HELD: &str = "held: `coloc release` lets it go on";

/// Why a task is not eligible, in Slurm's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ineligible {
    /// It is held.
    Held,
    /// Its begin time has not come.
    BeginTime(Time),
    /// A while has to pass after the start of an attempt that failed.
    Retry(Retry),
    /// A task has to start or end.
    Dependency(TaskId),
    /// All tasks of an array have to end, or to start.
    ArrayDependency {
        /// The array.
        array: TaskId,
        /// The last of it that has not.
        member: TaskId,
    },
    /// A while has to pass after the start of another.
    AfterDelay {
        /// The other task.
        task: TaskId,
        /// When it is over.
        until: Time,
    },
    /// One of several dependencies has to be met.
    AnyDependency(Vec<Ineligible>),
    /// A task did not end as it had to.
    DependencyNeverSatisfied(TaskId),
    /// How the tasks stand that it depends on cannot be told just now. It is looked at again at this time.
    Unknown(Time),
    /// A task of its user and name has to end.
    Singleton(TaskId),
    /// The scheduler has as many of its array as it may have at once.
    ArrayTaskLimit {
        /// The array.
        array: TaskId,
        /// How many that is.
        at_once: u32,
    },
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ineligible::Held => f.write_str(HELD),
            Ineligible::BeginTime(_) => f.write_str("waits for its begin time"),
            Ineligible::Retry(Retry { failures, .. }) => write!(
                f,
                "waits for its next try, {} s after the start of the last: it has failed {failures} times",
                retry_pause(*failures).secs()
            ),
            Ineligible::Dependency(task) | Ineligible::Singleton(task) => {
                write!(f, "waits for task {task} to end")
            }
            Ineligible::ArrayDependency { array, member } if array == member => {
                write!(f, "waits for array {array} to end")
            }
            Ineligible::ArrayDependency { array, member } => {
                write!(f, "waits for array {array} to end, now for task {member} of it")
            }
            Ineligible::AfterDelay { task, .. } => {
                write!(f, "waits until a while after the start of task {task}")
            }
            Ineligible::AnyDependency(all) => {
                let mut some: Vec<String> = all.iter().take(3).map(ToString::to_string).collect();
                let others = all.len().saturating_sub(some.len());
                some.extend((others > 0).then(|| format!("for {others} others")));
                f.write_str(&some.join(", or "))
            }
            Ineligible::Unknown(_) => {
                f.write_str("the journal cannot tell how the tasks ended that it waits for")
            }
            Ineligible::DependencyNeverSatisfied(task) => {
                write!(f, "task {task} did not end as it had to")
            }
            Ineligible::ArrayTaskLimit { at_once, .. } => {
                write!(f, "array limit: {at_once} of it are at work")
            }
        }
    }
}

/// What was found out of arrays: many tasks ask the same of one, and none of it changes.
#[derive(Clone, Default, Debug)]
pub(super) struct Memo {
    /// The first id after each array.
    ends: FxHashMap<TaskId, TaskId>,
    /// Of arrays that have ended, the first of their tasks that did not complete.
    first_failed: FxHashMap<TaskId, Option<TaskId>>,
}

impl Memo {
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.first_failed.clear();
    }
}

/// The rules, but for the limit of an array, at one time.
pub(super) struct Rules<'a, T> {
    pub(super) now: Time,
    pub(super) tasks: &'a T,
    pub(super) names: &'a Names,
    pub(super) memo: &'a mut Memo,
}

impl<T: Tasks> Rules<'_, T> {
    pub(super) fn judge(
        &mut self,
        task: TaskId,
        conditions: &Conditions,
    ) -> Result<(), Ineligible> {
        if conditions.held {
            return Err(Ineligible::Held);
        }
        if let Some(begin) = conditions.begin.filter(|&begin| begin > self.now) {
            return Err(Ineligible::BeginTime(begin));
        }
        if let Some(retry) = conditions.retry.filter(|retry| self.is_ahead(retry.at)) {
            return Err(Ineligible::Retry(retry));
        }
        self.dependencies(conditions)?;
        if let Some((user, name)) = &conditions.singleton {
            let first = conditions.array.map_or(task, |member| member.array);
            if let Some(before) = self.names.before(first, *user, name).next() {
                return Err(Ineligible::Singleton(before));
            }
        }
        Ok(())
    }

    /// A clock that was set back must not draw a pause out.
    fn is_ahead(&self, at: Time) -> bool {
        at > self.now && at.since(self.now) <= LONGEST_PAUSE
    }

    fn dependencies(&mut self, conditions: &Conditions) -> Result<(), Ineligible> {
        let index = conditions.array.map(|member| member.index);
        if conditions.any {
            return self.any_dependency(&conditions.after, index);
        }
        // The newest first: of many tasks that wait for all before them, one is looked at when one ends.
        conditions.after.iter().rev().try_for_each(|dependency| self.dependency(dependency, index))
    }

    /// One of several is enough.
    fn any_dependency(
        &mut self,
        after: &[Dependency],
        index: Option<u32>,
    ) -> Result<(), Ineligible> {
        let (mut waits, mut never) = (Vec::new(), Ok(()));
        for dependency in after {
            match self.dependency(dependency, index) {
                Ok(()) => return Ok(()),
                Err(why @ Ineligible::DependencyNeverSatisfied(_)) => never = Err(why),
                Err(why) => waits.push(why),
            }
        }
        if waits.is_empty() { never } else { Err(Ineligible::AnyDependency(waits)) }
    }

    fn dependency(
        &mut self,
        dependency: &Dependency,
        index: Option<u32>,
    ) -> Result<(), Ineligible> {
        let Dependency { task, kind } = *dependency;
        let task = match (kind, index) {
            (DependencyKind::AfterCorr, Some(index)) => self.with_index(task, index),
            _ => task,
        };
        let never = Err(Ineligible::DependencyNeverSatisfied(task));
        let Some(facts) = self.tasks.facts(task) else { return never };
        if let DependencyKind::After(delay) = kind {
            // That it was started is enough, or that it never will be.
            let since = facts.first_started.or(facts.end.map(|end| end.at));
            let until = since.ok_or(Ineligible::Dependency(task))? + delay;
            return match until <= self.now || delay == Millis::ZERO {
                true => Ok(()),
                false => Err(Ineligible::AfterDelay { task, until }),
            };
        }
        let is_array = kind != DependencyKind::AfterCorr
            && facts.array.is_some_and(|member| member.array == task);
        let end = facts.end.ok_or(match is_array {
            true => Ineligible::ArrayDependency { array: task, member: task },
            false => Ineligible::Dependency(task),
        })?;
        let failed = match is_array {
            true => self.first_failed(task)?,
            false => (!end.ok).then_some(task),
        };
        let ok = failed.is_none();
        let met = match kind {
            DependencyKind::AfterOk | DependencyKind::AfterCorr => ok,
            DependencyKind::AfterNotOk => !ok,
            DependencyKind::AfterAny | DependencyKind::After(_) => true,
        };
        let to_blame = failed.unwrap_or(task);
        if met { Ok(()) } else { Err(Ineligible::DependencyNeverSatisfied(to_blame)) }
    }

    /// The first task of an array that did not complete, once all have ended.
    fn first_failed(&mut self, array: TaskId) -> Result<Option<TaskId>, Ineligible> {
        if let Some(&failed) = self.memo.first_failed.get(&array) {
            return Ok(failed);
        }
        let end = match self.memo.ends.get(&array) {
            Some(&end) => end,
            None => {
                let end = self.partition(array, |_| true);
                self.memo.ends.insert(array, end);
                end
            }
        };
        // Most likely, the last of them ends last.
        if let Some(member) = self.tasks.last_unended(array..end) {
            return Err(Ineligible::ArrayDependency { array, member });
        }
        let mut members = (array.0..end.0).map(TaskId);
        let failed = members.find(|&member| {
            self.tasks.facts(member).and_then(|f| f.end).is_some_and(|end| !end.ok)
        });
        self.memo.first_failed.insert(array, failed);
        Ok(failed)
    }

    /// The task of an array with this index, or its first if it has none.
    fn with_index(&self, array: TaskId, index: u32) -> TaskId {
        let found = self.partition(array, |member| member.index < index);
        match self.member(array, found) {
            Some(member) if member.index == index => found,
            _ => array,
        }
    }

    fn member(&self, array: TaskId, task: TaskId) -> Option<ArrayMember> {
        self.tasks.facts(task)?.array.filter(|member| member.array == array)
    }

    /// The first id from that of an array on that is not its, or of which this does not hold. Few of them are looked at.
    fn partition(&self, array: TaskId, holds: impl Fn(ArrayMember) -> bool) -> TaskId {
        let is_in = |id: u32| self.member(array, TaskId(id)).is_some_and(&holds);
        let mut step = 1;
        while is_in(array.0.saturating_add(step)) {
            step = step.saturating_mul(2);
        }
        let (mut low, mut high) = (array.0, array.0.saturating_add(step));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_in(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        TaskId(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let pauses =
            [1, 2, 3, 9, 10, 1000, u32::MAX].map(|failures| retry_pause(failures).0 / 1000);
        assert_eq!(pauses, [1, 2, 4, 256, 300, 300, 300]);
    }
}
