//! When tasks are expected to start and to end: the scheduler itself, played on by the simulator from where it stands.

mod run_times;
mod words;

pub use run_times::{Basis, RunTimes};

use crate::owner::{Snapshot, Standing};
use crate::spec::{Dependency, DependencyKind};
use coloc_model::{Bytes, TaskId, Time};
use coloc_sim::forecast::{Expectation, Forecast, Gate};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// No look ahead takes longer.
const LONGEST: Duration = Duration::from_secs(5);
/// Or has more steps: enough for every task of the longest queue to start and end.
const MOST_STEPS: usize = 200_000;

/// When a task is expected to start and to end.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Expected {
    /// The task.
    pub id: u32,
    /// When it will start, in seconds since 1970; its start, if it runs.
    pub expected_start_s: Option<f64>,
    /// When it will end.
    pub expected_end_s: Option<f64>,
    /// What was assumed, or why nobody can tell.
    pub expected_basis: String,
}

/// Tasks that have not ended, with their starts.
type Live = FxHashMap<TaskId, Option<Time>>;

/// Looks ahead from a snapshot: at one task, or at all.
pub fn foresee(snapshot: Snapshot, times: &RunTimes, target: Option<TaskId>) -> Vec<Expected> {
    let Snapshot { scheduler, clock, now, wake_at, stands_still, tasks } = snapshot;
    let live: Live = tasks.iter().map(|standing| (standing.task.id, standing.started)).collect();
    let mut bases = FxHashMap::default();
    let beliefs = scheduler.beliefs().clone();
    let mut forecast = Forecast::new(scheduler, now, wake_at);
    let mut names = FxHashMap::default();
    for standing in &tasks {
        let Standing { task, spec, .. } = standing;
        // The last before it of its user and name, outside of its array.
        let own = standing.array.map_or(task.id, |place| place.array);
        let [last, earlier] = names.entry((task.user, spec.name.as_str())).or_insert([None; 2]);
        let before: Option<TaskId> = match *last {
            Some((array, _)) if array == own => earlier.map(|(_, id)| id),
            other => other.map(|(_, id)| id),
        };
        if last.is_none_or(|(array, _)| array != own) {
            *earlier = last.take();
        }
        *last = Some((own, task.id));
        let sm = beliefs.sm_demand(task.signature, task.estimate.and_then(|e| e.sm));
        let said = task.estimate.map(|estimate| estimate.peak);
        let seen = beliefs.peak(task.signature).map(|peak| peak.exact);
        let memory = standing.peak.max(seen.or(said).unwrap_or(Bytes::ZERO));
        let (run, new_basis) = times.of_new(spec);
        let expected = Expectation::new(run, sm, memory);
        let mut basis = new_basis;
        match (&standing.placement, standing.started) {
            (Some(placement), Some(started)) => {
                let (end, end_basis) = times.end_of(spec, started, now);
                basis = end_basis;
                forecast.runs(task.id, placement.clone(), end, expected);
            }
            _ if standing.in_core => forecast.waits(task.id, expected),
            _ => {
                if never(standing, &live).is_none() {
                    let begin = spec.begin_ms.map(|at| clock.time(crate::record::Moment(at)));
                    forecast.comes(task.clone(), gate(standing, begin, &live, before), expected);
                }
            }
        }
        if let Some(place) = standing.array.filter(|_| standing.in_core) {
            forecast.at_work(task.id, place.array);
        }
        bases.insert(task.id, basis);
    }
    let began = Instant::now();
    let go_on = |steps: usize| steps < MOST_STEPS && began.elapsed() < LONGEST;
    let foreseen = match stands_still {
        // Nothing starts, but what runs will end.
        Some(_) => {
            coloc_sim::forecast::Foreseen { ends: ends(&tasks, times, now), ..Default::default() }
        }
        None => forecast.play(target, go_on),
    };
    let moment = |time: Time| clock.moment(time).secs();
    let wanted = tasks.iter().filter(|s| target.is_none_or(|target| target == s.task.id));
    let view = |standing: &Standing| {
        let id = standing.task.id;
        let start = standing.started.or_else(|| foreseen.starts.get(&id).copied());
        let end = foreseen.ends.get(&id).copied();
        let never = never(standing, &live)
            .or_else(|| stands_still.filter(|_| start.is_none()).map(str::to_owned));
        let expected_basis = match never {
            Some(why) => format!("unknown: {why}"),
            None => words::basis(id, start, end, foreseen.cut_short, &bases),
        };
        Expected {
            id: id.0,
            expected_start_s: start.map(moment),
            expected_end_s: end.map(moment),
            expected_basis,
        }
    };
    wanted.map(view).collect()
}

/// When those end that run.
fn ends(tasks: &[Standing], times: &RunTimes, now: Time) -> FxHashMap<TaskId, Time> {
    let end = |standing: &Standing| {
        let (end, _) = times.end_of(&standing.spec, standing.started?, now);
        Some((standing.task.id, end?))
    };
    tasks.iter().filter_map(end).collect()
}

/// Why nobody can tell when a task will be let in.
fn never(standing: &Standing, live: &Live) -> Option<String> {
    if standing.in_core {
        return None;
    }
    if standing.held {
        return Some("it is held".to_owned());
    }
    if standing.spec.after_any {
        return never_any(standing, live);
    }
    let why = |Dependency { task, when, .. }: &Dependency| match (when, live.get(task)?) {
        (DependencyKind::AfterNotOk, _) => {
            Some(format!("it starts only if task {task} does not end well"))
        }
        (DependencyKind::After, None) => Some(format!("it waits for the start of task {task}")),
        _ => None,
    };
    standing.spec.after.iter().find_map(why)
}

/// The same of a task for which one of several others is enough.
fn never_any(standing: &Standing, live: &Live) -> Option<String> {
    let after = &standing.spec.after;
    if after.iter().any(|other| other.when == DependencyKind::After) {
        return Some("it starts after the start of one of several tasks".to_owned());
    }
    let hopeless = !after.iter().any(|other| is_awaited(other, live));
    hopeless.then(|| "it starts only if one of several tasks does not end well".to_owned())
}

/// A task that has not ended, of which nothing but its end is wanted, or that it ends well.
fn is_awaited(other: &Dependency, live: &Live) -> bool {
    let well = !matches!(other.when, DependencyKind::After | DependencyKind::AfterNotOk);
    well && live.contains_key(&other.task)
}

fn gate(
    standing: &Standing,
    begin: Option<Time>,
    live: &Live,
    of_its_name: Option<TaskId>,
) -> Gate {
    let array = standing.array.map(|place| (place.array, place.at_once));
    let of_its_name = of_its_name.filter(|_| standing.spec.singleton);
    if standing.spec.after_any {
        let awaited = standing.spec.after.iter().filter(|other| is_awaited(other, live));
        let after_any = awaited.map(|other| other.task).collect();
        return Gate { begin, after: of_its_name.into_iter().collect(), after_any, array };
    }
    let (starts, ends): (Vec<&Dependency>, Vec<&Dependency>) =
        standing.spec.after.iter().partition(|other| other.when == DependencyKind::After);
    let since = |other: &&Dependency| Some((*live.get(&other.task)?)? + other.delay);
    let after = ends.into_iter().map(|other| other.task).filter(|task| live.contains_key(task));
    Gate {
        begin: starts.iter().filter_map(since).chain(begin).max(),
        after: after.chain(of_its_name).collect(),
        after_any: Vec::new(),
        array,
    }
}
