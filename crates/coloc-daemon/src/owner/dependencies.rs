//! Which other tasks a task waits for.

use super::gates::Gate;
use super::{Live, Owner};
use crate::record::{ArrayPlace, Moment, Phase, Record};
use crate::spec::{Dependency, DependencyKind, TaskSpec};
use coloc_model::TaskId;
use rustc_hash::FxHashSet;

impl Owner {
    /// What a task waits for among others; nothing once they have done what it waits for.
    pub(super) fn waits_for_others(&self, live: &Live, now: Moment) -> Option<Gate> {
        let index = live.record.array.map(|place| place.index);
        let waits = |dependency: &Dependency| self.waits_for(self.meant(*dependency, index), now);
        let waits = if live.spec.after_any {
            any_of(live.spec.after.iter().map(waits))
        } else {
            // The newest first: of many that wait for all before them, one knocks when one ends.
            live.spec.after.iter().rev().find_map(waits)
        };
        let of_its_name = || {
            let first = first_of(&live.record);
            let name = &live.spec.name;
            let mut before = self.tasks.range(..first).rev().map(|(_, other)| other);
            before.find(|other| other.record.owner == live.record.owner && other.spec.name == *name)
        };
        waits.or_else(|| {
            live.spec.singleton.then(of_its_name)?.map(|other| Gate::Dependency(other.record.id))
        })
    }

    /// The task that is meant: of an array, for `aftercorr`, the one with the same number.
    fn meant(&self, dependency: Dependency, index: Option<u32>) -> Dependency {
        let (DependencyKind::AfterCorr, Some(index)) = (dependency.when, index) else {
            return dependency;
        };
        // Numbers of an array grow with the ids.
        let first = dependency.task;
        let end = self.end_of_array(first, |place| place.index < index);
        match self.place_in(first, end) {
            Some(place) if place.index == index => Dependency { task: end, ..dependency },
            _ => dependency,
        }
    }

    /// The place of a task, if it is one of this array.
    fn place_in(&self, array: TaskId, task: TaskId) -> Option<ArrayPlace> {
        let place = match self.tasks.get(&task) {
            Some(live) => live.record.array,
            None => self.journal.task(task).ok().flatten()?.array,
        };
        place.filter(|place| place.array == array)
    }

    /// The first id from that of an array on that is not its, or of which this does not hold. Ids of an array follow each
    /// other, so that few of them have to be looked at.
    fn end_of_array(&self, array: TaskId, holds: impl Fn(ArrayPlace) -> bool) -> TaskId {
        let is_in = |id: u32| self.place_in(array, TaskId(id)).is_some_and(&holds);
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

    fn waits_for(&self, dependency: Dependency, now: Moment) -> Option<Gate> {
        let Dependency { task, when, .. } = dependency;
        let ended = |task| self.journal.task(task).ok().flatten();
        if when == DependencyKind::After {
            // That it was started is enough, or that it never will be.
            let since = match self.tasks.get(&task) {
                Some(live) => live.record.first_started,
                None => match ended(task) {
                    Some(record) => record.first_started.or(record.ended),
                    None => return Some(Gate::Never(task)),
                },
            };
            let Some(since) = since else { return Some(Gate::Dependency(task)) };
            let delay = self.clock.world(dependency.delay).as_millis() as u64;
            let at = Moment(since.0.saturating_add(delay));
            let passed = at <= now || dependency.delay.0 == 0;
            return (!passed).then_some(Gate::Since { task, at });
        }
        if self.tasks.contains_key(&task) {
            return Some(Gate::Dependency(task));
        }
        let Some(first) = ended(task) else { return Some(Gate::Never(task)) };
        // The number of an array is that of its first task, and means all of them.
        let is_array = first.array.is_some_and(|place| place.array == task);
        let mut phases = vec![first.phase];
        if is_array && when != DependencyKind::AfterCorr {
            let end = self.end_of_array(task, |_| true);
            // Most likely, the last of them ends last.
            if let Some((&member, _)) = self.tasks.range(task..end).next_back() {
                return Some(Gate::Dependency(member));
            }
            let others = (task.0 + 1..end.0).filter_map(|id| ended(TaskId(id)));
            phases.extend(others.map(|record| record.phase));
        }
        let well = |phase: &Phase| *phase == Phase::Completed;
        let good = match when {
            DependencyKind::AfterOk | DependencyKind::AfterCorr => phases.iter().all(well),
            DependencyKind::AfterNotOk => !phases.iter().all(well),
            DependencyKind::AfterAny | DependencyKind::After => true,
        };
        (!good).then_some(Gate::Never(task))
    }

    /// Whether a task that is submitted so would wait for its own end.
    pub(super) fn waits_for_itself(&self, task: TaskId, new: &TaskSpec) -> bool {
        let Some(own) = self.tasks.get(&task).map(|live| &live.record) else { return false };
        let needs = |record: &Record, spec: &TaskSpec| {
            let mut needs: Vec<TaskId> = spec.after.iter().map(|other| other.task).collect();
            let before = self.tasks.range(..first_of(record)).rev().map(|(_, other)| other);
            let of_its_name = |other: &&Live| {
                let name = &with_new(other, task, new).name;
                other.record.owner == record.owner && *name == spec.name
            };
            for other in before.filter(|_| spec.singleton).filter(of_its_name) {
                needs.push(other.record.id);
                // It waits for those before it.
                if with_new(other, task, new).singleton {
                    break;
                }
            }
            needs
        };
        let mut next = needs(own, new);
        let mut seen = FxHashSet::default();
        while let Some(on) = next.pop() {
            // The number of an array means all of its tasks.
            if on == task || own.array.is_some_and(|place| place.array == on) {
                return true;
            }
            if seen.insert(on)
                && let Some(live) = self.tasks.get(&on)
            {
                next.extend(needs(&live.record, &live.spec));
            }
        }
        false
    }
}

/// What a task is submitted as, once one of them is changed.
fn with_new<'a>(live: &'a Live, changed: TaskId, new: &'a TaskSpec) -> &'a TaskSpec {
    if live.record.id == changed { new } else { &live.spec }
}

/// Its id, or that of its array's first task.
fn first_of(record: &Record) -> TaskId {
    record.array.map_or(record.id, |place| place.array)
}

/// What is waited for if one of several is enough.
fn any_of(all: impl Iterator<Item = Option<Gate>>) -> Option<Gate> {
    let (mut waits, mut never) = (Vec::new(), None);
    for gate in all {
        match gate? {
            Gate::Never(task) => never = Some(Gate::Never(task)),
            gate => waits.push(gate),
        }
    }
    if waits.is_empty() { never } else { Some(Gate::AnyOf(waits)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough() {
        let (waits, never) = (Gate::Dependency(TaskId(1)), Gate::Never(TaskId(2)));
        let any = |gates: &[Option<&Gate>]| any_of(gates.iter().map(|gate| gate.cloned()));
        assert_eq!(any(&[]), None);
        assert_eq!(any(&[Some(&waits), None, Some(&never)]), None);
        assert_eq!(any(&[Some(&never), Some(&never)]), Some(never.clone()));
        assert_eq!(any(&[Some(&never), Some(&waits)]), Some(Gate::AnyOf(vec![waits])));
    }
}
