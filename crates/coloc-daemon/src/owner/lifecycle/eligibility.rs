//! Which waiting tasks the scheduler hears of. The rules are `coloc_core::eligibility`; here is what they are told of the
//! daemon's tasks, and what becomes of a task that is eligible or never will be.

use crate::clock::Clock;
use crate::journal::{Entry, Journal, JournalError};
use crate::owner::lifecycle::promises::attempts_of;
use crate::owner::{Live, Owner};
use crate::record::{Record, Uid};
use coloc_api::moment::Moment;
use coloc_api::spec::{self, TaskSpec};
use coloc_core::eligibility::{
    ArrayMember, Conditions, Dependency, DependencyKind, End, Facts, Ineligible, Retry, Tasks,
};
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, TaskState, Time, UserId};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

/// Tasks that have not ended, and the journal for tasks that have. Times are the scheduler's, by the world's clock:
/// begin times are given by that.
pub(in crate::owner) struct Known<'a> {
    pub(in crate::owner) tasks: &'a BTreeMap<TaskId, Live>,
    pub(in crate::owner) journal: &'a Journal,
    pub(in crate::owner) clock: &'a Clock,
    /// The journal could not be read.
    pub(in crate::owner) unread: Cell<bool>,
}

impl<'a> Known<'a> {
    pub(in crate::owner) fn of(
        tasks: &'a BTreeMap<TaskId, Live>,
        journal: &'a Journal,
        clock: &'a Clock,
    ) -> Self {
        Known { tasks, journal, clock, unread: Cell::new(false) }
    }
}

impl Tasks for Known<'_> {
    fn conditions(&self, task: TaskId) -> Option<Conditions> {
        let live = self.tasks.get(&task)?;
        // One that the scheduler is about to let go of is looked at again when it has.
        let waits = !live.in_core && live.ending.is_none() && !live.record.phase.is_on_gpus();
        waits.then(|| conditions(&live.record, &live.spec, self.clock))
    }

    fn facts(&self, task: TaskId) -> Option<Facts> {
        match self.tasks.get(&task) {
            Some(live) => Some(facts(&live.record, self.clock)),
            None => ended(self.journal, task, self.clock).unwrap_or_else(|_| {
                self.unread.set(true);
                None
            }),
        }
    }

    fn was_unable(&self) -> bool {
        self.unread.take()
    }

    fn last_unended(&self, tasks: Range<TaskId>) -> Option<TaskId> {
        self.tasks.range(tasks).next_back().map(|(&task, _)| task)
    }
}

/// What a task waits for.
pub(crate) fn conditions(record: &Record, spec: &TaskSpec, clock: &Clock) -> Conditions {
    let retry = record.retry_at.map(|at| Retry { at: clock.time(at), failures: record.retried });
    Conditions {
        held: record.held,
        begin: spec.begin_ms.map(|begin| clock.time(Moment(begin))),
        retry,
        after: spec.after.iter().map(dependency).collect(),
        any: spec.after_any,
        singleton: spec.singleton.then(|| (user(record.owner), spec.name.clone())),
        array: member(record),
    }
}

/// How a task stands that has not ended.
pub(crate) fn facts(record: &Record, clock: &Clock) -> Facts {
    Facts {
        array: member(record),
        first_started: record.first_started.map(|at| clock.time(at)),
        end: None,
    }
}

/// How a task ended, of which nothing but the journal knows.
pub(crate) fn ended(
    journal: &Journal,
    task: TaskId,
    clock: &Clock,
) -> Result<Option<Facts>, JournalError> {
    let Some(record) = journal.task(task)? else { return Ok(None) };
    // What ended a moment ago may not be on the disk as ended yet.
    let at = clock.time(record.ended.unwrap_or_else(|| clock.world_now()));
    let end = Some(End { at, ok: record.phase == TaskState::Completed });
    Ok(Some(Facts { end, ..facts(&record, clock) }))
}

/// The user whose task it is; a singleton waits for its user's alone.
pub(crate) fn user(owner: Uid) -> UserId {
    UserId(owner.0)
}

fn member(record: &Record) -> Option<ArrayMember> {
    let place = record.array?;
    Some(ArrayMember { array: place.array, index: place.index, at_once: place.at_once })
}

fn dependency(dependency: &spec::Dependency) -> Dependency {
    let kind = match dependency.when {
        spec::DependencyKind::AfterOk => DependencyKind::AfterOk,
        spec::DependencyKind::AfterNotOk => DependencyKind::AfterNotOk,
        spec::DependencyKind::AfterAny => DependencyKind::AfterAny,
        spec::DependencyKind::After => DependencyKind::After(dependency.delay),
        spec::DependencyKind::AfterCorr => DependencyKind::AfterCorr,
    };
    Dependency { task: dependency.task, kind }
}

impl Owner {
    /// Tells the scheduler of tasks that are eligible now, for a while. Says whether all had their turn.
    pub(in crate::owner) fn submit_eligible(
        &mut self,
        now: Time,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let (world, began) = (self.clock.time(self.clock.world_now()), self.clock.instant());
        while !self.has_had_its_turn(began) {
            let Owner { tasks, journal, clock, eligibility, .. } = self;
            let Some((task, verdict)) = eligibility.next(world, &Known::of(tasks, journal, clock))
            else {
                break;
            };
            let why = match verdict {
                Ok(()) => {
                    self.enter(now, task, effects);
                    continue;
                }
                Err(why) => why,
            };
            self.is_ineligible(task, &why);
            if matches!(why, Ineligible::DependencyNeverSatisfied(_)) {
                self.over(task, TaskState::Cancelled);
            }
        }
        if let Some(at) = self.eligibility.next_time() {
            self.wake_at = self.wake_at.min(at);
        }
        !self.eligibility.has_more()
    }

    fn enter(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        let Some(core_task) = self.as_core_task(task) else { return };
        if let Some(live) = self.tasks.get_mut(&task) {
            live.in_core = true;
            live.ending = None;
            live.record.reason = None;
            if let Some(attempts) = attempts_of(&live.record) {
                self.scheduler.recall_attempts(task, attempts);
            }
        }
        self.waiting.forget(task);
        self.note_news(task);
        self.scheduler.note(now, Event::Submitted(core_task), effects);
    }

    /// Whether a task that is submitted so would wait for its own end.
    pub(in crate::owner) fn waits_for_itself(&self, task: TaskId, new: &TaskSpec) -> bool {
        let Some(live) = self.tasks.get(&task) else { return false };
        let Owner { tasks, journal, clock, eligibility, .. } = self;
        let (conditions, name) =
            (conditions(&live.record, new, clock), (user(live.record.owner), new.name.as_str()));
        eligibility.waits_for_itself(task, &conditions, name, &Known::of(tasks, journal, clock))
    }

    /// A task that has not ended is known from now on.
    pub(in crate::owner) fn keep(&mut self, live: Live) {
        let Live { record, spec, .. } = &live;
        let task = record.id;
        self.eligibility.named(task, user(record.owner), &spec.name);
        self.tasks.insert(task, live);
        self.note_news(task);
    }

    /// A task is known no more, and its submission is that of no task.
    pub(in crate::owner) fn drop_task(&mut self, task: TaskId) -> Option<Live> {
        let live = self.tasks.remove(&task)?;
        self.waiting.forget(task);
        let Live { record, spec, .. } = &live;
        let array = record.array.map(|place| place.array);
        self.eligibility.ended(task, array, user(record.owner), &spec.name);
        Some(live)
    }

    /// A task is over: it is written down for the last time and forgotten.
    pub(in crate::owner) fn over(&mut self, task: TaskId, phase: TaskState) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        // One that ends on its GPUs ended when its last attempt did, which may be while no daemon ran.
        let last = live.record.stopped.filter(|_| live.record.phase.is_on_gpus());
        live.record.phase = phase;
        live.record.ended = Some(last.unwrap_or_else(|| self.clock.world_now()));
        crate::past::remember(&mut self.history, &live.record, &live.spec);
        self.today.ended(self.clock.world_now(), &live.record, &live.spec);
        self.counters.ended(&live.record, &live.spec);
        self.changed(task, Some(phase.name().replace('_', " ")));
        self.notify_end(task, phase);
        self.note_last_news(task);
        self.attempt_peaks.remove(&task);
        if let Some(series) = self.series.finish(task) {
            let body = serde_json::to_string(&series).unwrap_or_default();
            self.pending.push(Entry::Series(task, self.clock.world_now(), body));
        }
        if let Some(Live { record, spec, .. }) = self.drop_task(task) {
            self.give_back(&record, &spec);
        }
    }
}

#[cfg(test)]
mod tests;
