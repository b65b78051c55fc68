//! When tasks are expected to start and to end: the scheduler itself, played on by the simulator from where it stands.

mod assumptions;
mod memory;
mod run_times;

pub use run_times::{Basis, RunTimes};

use crate::journal::Journal;
use crate::owner::{Snapshot, TaskSnapshot, ended, user};
use coloc_api::view::Expected;
use coloc_core::eligibility::{Conditions, Dependency, DependencyKind, Facts};
use coloc_model::{TaskId, Time};
use coloc_sim::forecast::{Expectation, Forecast, Foreseen};
use memory::ExpectedMemory;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// No forecast takes longer.
const LONGEST: Duration = Duration::from_secs(5);
/// Or has more steps: enough for every task of the longest queue to start and end.
const MOST_STEPS: usize = 200_000;

/// Forecasts from a snapshot: for one task, or for all. The journal knows of tasks that have ended.
pub fn forecast(
    snapshot: Snapshot,
    times: &RunTimes,
    journal: &Journal,
    target: Option<TaskId>,
) -> Vec<Expected> {
    let Snapshot { scheduler, clock, now, wake_at, stands_still, tasks } = snapshot;
    let past = RefCell::new(FxHashMap::default());
    let past = |task: TaskId| -> Option<Facts> {
        *past
            .borrow_mut()
            .entry(task)
            .or_insert_with(|| ended(journal, task, &clock).ok().flatten())
    };
    let ids = tasks.iter().map(|standing| standing.task.id);
    let awaited: FxHashMap<TaskId, TaskId> =
        ids.filter_map(|id| Some((id, scheduler.awaits(id)?))).collect();
    let memory = ExpectedMemory::new(&scheduler, &tasks);
    let mut forecast = Forecast::new(scheduler, now, wake_at, &past);
    let bases: FxHashMap<TaskId, Basis> = tasks
        .iter()
        .map(|standing| (standing.task.id, expect(&mut forecast, standing, &memory, times, now)))
        .collect();
    let began = Instant::now();
    let go_on = |steps: usize| steps < MOST_STEPS && began.elapsed() < LONGEST;
    let foreseen = match stands_still {
        // Nothing starts, but what runs will end.
        Some(_) => Foreseen { ends: ends(&tasks, times, now), ..Default::default() },
        None => forecast.play(target, go_on),
    };
    let starts = tasks.iter().map(|standing| {
        let id = standing.task.id;
        (id, standing.facts.first_started.or(foreseen.starts.get(&id).copied()))
    });
    let live: Live = starts.collect();
    let moment = |time: Time| clock.moment(time).secs();
    let wanted = tasks.iter().filter(|s| target.is_none_or(|target| target == s.task.id));
    let view = |standing: &TaskSnapshot| {
        let id = standing.task.id;
        let start = standing.started.or_else(|| foreseen.starts.get(&id).copied());
        let end = foreseen.ends.get(&id).copied();
        let why_not = || never(standing, &live).or_else(|| stands_still.map(str::to_owned));
        let expected_basis = match start.is_none().then(why_not).flatten() {
            Some(why) => format!("unknown: {why}"),
            None => {
                let basis = assumptions::basis(id, start, end, foreseen.cut_short, &bases);
                assumptions::with_the_first(
                    basis,
                    awaited.get(&id).copied().filter(|_| start.is_some()),
                )
            }
        };
        Expected {
            id: id.0,
            expected_start_s: start.map(moment),
            expected_end_s: end.map(moment),
            expected_gpus: foreseen
                .places
                .get(&id)
                .into_iter()
                .flatten()
                .map(|gpu| gpu.0)
                .collect(),
            expected_basis,
        }
    };
    wanted.map(view).collect()
}

/// Tells a forecast of a task; says what its run time rests on.
fn expect(
    forecast: &mut Forecast<'_>,
    standing: &TaskSnapshot,
    memory: &ExpectedMemory,
    times: &RunTimes,
    now: Time,
) -> Basis {
    let TaskSnapshot { task, spec, conditions, facts, .. } = standing;
    let first_started = facts.first_started.or(standing.started);
    let facts = Facts { first_started, ..*facts };
    forecast.stands(task.id, facts, user(standing.owner), &spec.name);
    let (run, basis) = times.of_new(spec);
    let expected = Expectation::new(run, memory.sm_demand(task), memory.of(standing));
    let expected = Expectation { warm_up: memory.warm_up(standing, now), ..expected };
    match (&standing.placement, standing.started) {
        (Some(placement), Some(started)) => {
            let (end, basis) = times.end_of(spec, started, now, standing.left);
            forecast.runs(task.id, placement.clone(), end, expected);
            return basis;
        }
        _ if standing.in_core => forecast.waits(task.id, expected),
        _ => forecast.comes(task.clone(), conditions.clone(), expected),
    }
    basis
}

/// When running tasks end.
fn ends(tasks: &[TaskSnapshot], times: &RunTimes, now: Time) -> FxHashMap<TaskId, Time> {
    let end = |standing: &TaskSnapshot| {
        let (end, _) = times.end_of(&standing.spec, standing.started?, now, standing.left);
        Some((standing.task.id, end?))
    };
    tasks.iter().filter_map(end).collect()
}

/// Tasks that had not ended, with their starts as far as they are forecast.
type Live = FxHashMap<TaskId, Option<Time>>;

/// Why a task will not be eligible, as far as that is forecast.
fn never(standing: &TaskSnapshot, live: &Live) -> Option<String> {
    let Conditions { held, after, any, .. } = &standing.conditions;
    if standing.in_core {
        return None;
    }
    if *held {
        return Some("it is held".to_owned());
    }
    if *any {
        return never_any(after, live);
    }
    let why = |Dependency { task, kind }: &Dependency| match (kind, live.get(task)?) {
        (DependencyKind::AfterNotOk, _) => {
            Some(format!("it starts only if task {task} does not end well"))
        }
        (DependencyKind::After(_), None) => Some(format!("it waits for the start of task {task}")),
        _ => None,
    };
    after.iter().find_map(why)
}

/// The same of a task for which one of several others is enough.
fn never_any(after: &[Dependency], live: &Live) -> Option<String> {
    if after.iter().any(|other| matches!(other.kind, DependencyKind::After(_))) {
        return Some("it starts after the start of one of several tasks".to_owned());
    }
    // Every task is taken to end well.
    let is_hopeful = |other: &Dependency| {
        other.kind != DependencyKind::AfterNotOk && live.contains_key(&other.task)
    };
    let hopeless = !after.is_empty() && !after.iter().any(is_hopeful);
    hopeless.then(|| "it starts only if one of several tasks does not end well".to_owned())
}
