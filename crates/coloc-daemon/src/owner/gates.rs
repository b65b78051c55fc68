//! What keeps a task from the scheduler: somebody holds it, others must end first, its hour has not come,
//! or enough of its array run.

use super::{Live, Owner};
use crate::record::{Moment, Phase, Record};
use crate::spec::{Dependency, DependencyKind};
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, Time};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Why a task is not the scheduler's yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Gate {
    Held,
    Begin(Moment),
    Dependency(TaskId),
    Never(TaskId),
    Array { array: TaskId, at_once: u32 },
}

impl Gate {
    pub(super) fn reason(&self) -> String {
        match self {
            Gate::Held => "held: `coloc release` lets it go on".to_owned(),
            Gate::Begin(_) => "waits for its begin time".to_owned(),
            Gate::Dependency(task) => format!("waits for task {task} to end"),
            Gate::Never(task) => format!("task {task} did not end as it had to"),
            Gate::Array { at_once, .. } => format!("{at_once} of its array are at work"),
        }
    }
}

/// Who is to be looked at, and when.
#[derive(Default)]
pub(super) struct Gates {
    knocking: BTreeSet<TaskId>,
    by_time: BTreeMap<Moment, Vec<TaskId>>,
    after: FxHashMap<TaskId, Vec<TaskId>>,
    of_array: FxHashMap<TaskId, BTreeSet<TaskId>>,
    at_work: FxHashMap<TaskId, FxHashSet<TaskId>>,
}

impl Gates {
    /// Something about this task changed: look again.
    pub(super) fn knock(&mut self, task: TaskId) {
        self.knocking.insert(task);
    }

    /// A task ended for good: those that wait for it, or for its place in the array, knock.
    pub(super) fn ended(&mut self, task: TaskId, array: Option<TaskId>) {
        self.knocking.extend(self.after.remove(&task).unwrap_or_default());
        self.not_at_work(task, array);
    }

    /// A task was started: those that wait for no more than that are let in.
    pub(super) fn started(&mut self, task: TaskId) {
        self.knocking.extend(self.after.remove(&task).unwrap_or_default());
    }

    fn not_at_work(&mut self, task: TaskId, array: Option<TaskId>) {
        let Some(array) = array else { return };
        if let Some(at_work) = self.at_work.get_mut(&array) {
            at_work.remove(&task);
        }
        if let Some(waiting) = self.of_array.get_mut(&array) {
            self.knocking.extend(waiting.pop_first());
        }
    }

    fn wait(&mut self, task: TaskId, gate: &Gate) {
        match gate {
            Gate::Held | Gate::Never(_) => {}
            Gate::Begin(at) => self.by_time.entry(*at).or_default().push(task),
            Gate::Dependency(on) => self.after.entry(*on).or_default().push(task),
            Gate::Array { array, .. } => {
                self.of_array.entry(*array).or_default().insert(task);
            }
        }
    }

    /// A task of an array is the scheduler's.
    pub(super) fn at_work(&mut self, task: TaskId, array: TaskId) {
        self.at_work.entry(array).or_default().insert(task);
    }

    pub(super) fn anyone_knocks(&self) -> bool {
        !self.knocking.is_empty()
    }

    pub(super) fn next_begin(&self) -> Option<Moment> {
        self.by_time.keys().next().copied()
    }
}

impl Owner {
    /// Lets those in whose gate is open now.
    pub(super) fn let_in(&mut self, now: Time, wishes: &mut Vec<Effect>) {
        let moment = Moment::now();
        while let Some(entry) = self.gates.by_time.first_entry()
            && *entry.key() <= moment
        {
            self.gates.knocking.extend(entry.remove());
        }
        for task in std::mem::take(&mut self.gates.knocking) {
            let Some(live) = self.tasks.get(&task) else { continue };
            if live.in_core || live.record.phase.is_on_gpus() {
                continue;
            }
            match self.gate(live, moment) {
                None => self.enter(now, task, wishes),
                Some(Gate::Never(on)) => {
                    self.set_reason(task, Gate::Never(on).reason());
                    self.over(task, Phase::Cancelled);
                }
                Some(gate) => {
                    self.gates.wait(task, &gate);
                    self.set_reason(task, gate.reason());
                }
            }
        }
        if let Some(begin) = self.gates.next_begin() {
            self.wake_at = self.wake_at.min(self.clock.time(begin));
        }
    }

    fn set_reason(&mut self, task: TaskId, reason: String) {
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.reason = Some(reason);
        }
    }

    fn enter(&mut self, now: Time, task: TaskId, wishes: &mut Vec<Effect>) {
        let Some(core_task) = self.as_core_task(task) else { return };
        if let Some(live) = self.tasks.get_mut(&task) {
            live.in_core = true;
            live.ending = None;
            live.record.reason = None;
            if let Some(place) = live.record.array {
                self.gates.at_work(task, place.array);
            }
        }
        self.scheduler.note(now, Event::Submitted(core_task), wishes);
    }

    fn gate(&self, live: &Live, now: Moment) -> Option<Gate> {
        let record = &live.record;
        if record.held {
            return Some(Gate::Held);
        }
        if let Some(begin) = live.spec.begin_ms.map(Moment).filter(|begin| *begin > now) {
            return Some(Gate::Begin(begin));
        }
        let index = record.array.map(|place| place.index);
        // The newest first: of many that wait for all before them, one knocks when one ends.
        let mut after = live.spec.after.iter().rev();
        let waits = after.find_map(|dep| self.waits_for(self.meant(*dep, index)));
        if waits.is_some() {
            return waits;
        }
        let place = record.array?;
        let at_once = place.at_once?;
        let at_work = self.gates.at_work.get(&place.array).map_or(0, FxHashSet::len);
        (at_work >= at_once as usize).then_some(Gate::Array { array: place.array, at_once })
    }

    /// The task that is meant: of an array, for `aftercorr`, the one with the same number.
    fn meant(&self, dependency: Dependency, index: Option<u32>) -> Dependency {
        let Dependency { task, when } = dependency;
        let (DependencyKind::AfterCorr, Some(index)) = (when, index) else { return dependency };
        let place = |task: TaskId| match self.tasks.get(&task) {
            Some(live) => live.record.array,
            None => self.journal.task(task).ok().flatten()?.array,
        };
        let of_array = |id: u32| place(TaskId(id)).filter(|place| place.array == task);
        let Some(first) = of_array(task.0) else { return dependency };
        // Numbers mostly follow each other, as ids do.
        let likely = task.0.saturating_add(index.saturating_sub(first.index));
        let mut ids = [likely].into_iter().chain(task.0..self.next_task);
        let found = ids.find_map(|id| match of_array(id) {
            Some(place) if place.index == index => Some(Some(id)),
            Some(_) => None,
            // The likely one may be beyond the end; what comes after the array is not looked at.
            None if id == likely => None,
            None => Some(None),
        });
        match found.flatten() {
            Some(id) => Dependency { task: TaskId(id), when: DependencyKind::AfterCorr },
            None => dependency,
        }
    }

    fn waits_for(&self, Dependency { task, when }: Dependency) -> Option<Gate> {
        if let Some(live) = self.tasks.get(&task) {
            let started = live.record.first_started.is_some();
            let enough = started && when == DependencyKind::After;
            return (!enough).then_some(Gate::Dependency(task));
        }
        // The number of an array is that of its first task, and means all of them.
        let ended = |task| self.journal.task(task).ok().flatten();
        let of_array = |record: &Record| record.array.is_some_and(|place| place.array == task);
        let later = (task.0 + 1..self.next_task).map(TaskId);
        let phases = match ended(task) {
            None => return Some(Gate::Never(task)),
            Some(first) if of_array(&first) && when != DependencyKind::AfterCorr => {
                let mut phases = vec![first.phase];
                for member in later {
                    match self.tasks.get(&member) {
                        Some(live) if of_array(&live.record) => {
                            return Some(Gate::Dependency(member));
                        }
                        Some(_) => break,
                        None => {}
                    }
                    let Some(record) = ended(member).filter(of_array) else { break };
                    phases.push(record.phase);
                }
                phases
            }
            Some(only) => vec![only.phase],
        };
        let well = |phase: &Phase| *phase == Phase::Completed;
        let good = match when {
            DependencyKind::AfterOk | DependencyKind::AfterCorr => phases.iter().all(well),
            DependencyKind::AfterNotOk => !phases.iter().all(well),
            DependencyKind::AfterAny | DependencyKind::After => true,
        };
        (!good).then_some(Gate::Never(task))
    }

    /// A task is over: it is written down for the last time and forgotten.
    pub(super) fn over(&mut self, task: TaskId, phase: Phase) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = phase;
        live.record.ended = Some(Moment::now());
        let array = live.record.array.map(|place| place.array);
        crate::past::remember(&mut self.history, &live.record, &live.spec);
        self.changed(task, Some(phase.name().replace('_', " ")));
        self.tasks.remove(&task);
        self.gates.ended(task, array);
    }
}
