//! What keeps a task from the scheduler: somebody holds it, others must end first, its hour has not come,
//! or enough of its array run.

use super::{Live, Owner};
use crate::record::{Moment, Phase};
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
    /// A while after the start of another.
    Since {
        task: TaskId,
        at: Moment,
    },
    /// One of them has to open.
    AnyOf(Vec<Gate>),
    Never(TaskId),
    Array {
        array: TaskId,
        at_once: u32,
    },
}

impl Gate {
    pub(super) fn reason(&self) -> String {
        match self {
            Gate::Held => "held: `coloc release` lets it go on".to_owned(),
            Gate::Begin(_) => "waits for its begin time".to_owned(),
            Gate::Dependency(task) => format!("waits for task {task} to end"),
            Gate::Since { task, .. } => {
                format!("waits until a while after the start of task {task}")
            }
            Gate::AnyOf(gates) => {
                let mut some: Vec<String> = gates.iter().take(3).map(Gate::reason).collect();
                let others = gates.len().saturating_sub(some.len());
                some.extend((others > 0).then(|| format!("for {others} others")));
                some.join(", or ")
            }
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

    /// A task was started, or is called otherwise: those that wait for it look again.
    pub(super) fn look_again(&mut self, task: TaskId) {
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
            Gate::AnyOf(gates) => gates.iter().for_each(|gate| self.wait(task, gate)),
            Gate::Begin(at) | Gate::Since { at, .. } => {
                self.by_time.entry(*at).or_default().push(task)
            }
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
            // Whom the scheduler is about to let go of knocks again when it has: to come back before would be to go.
            if live.in_core || live.ending.is_some() || live.record.phase.is_on_gpus() {
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
        let waits = self.waits_for_others(live, now);
        if waits.is_some() {
            return waits;
        }
        let place = record.array?;
        let at_once = place.at_once?;
        let at_work = self.gates.at_work.get(&place.array).map_or(0, FxHashSet::len);
        (at_work >= at_once as usize).then_some(Gate::Array { array: place.array, at_once })
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
