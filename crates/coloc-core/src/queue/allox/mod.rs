//! AlloX: the matching of waiting tasks to devices with the least mean completion time, computed anew at every
//! arrival and end, and every quantum if there is one. Running tasks stay; an idle device gets its first matched task.
//!
//! Fairness: a user's score is what its running tasks make progress with, `Σ 1/devices of the best kind x
//! P_best/P_actual`; only tasks of the `ceil(α·U)` users with the lowest scores take part. `α = 1` is the
//! best mean completion time.

pub mod matching;

use crate::place::Search;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, GpuModel, Millis, TaskId, Time, UserId};
use matching::{Costs, Group, Position, matching};
use std::collections::{BTreeMap, BTreeSet};

/// At least so many of the oldest waiting tasks are matched; more where there are more devices.
const LEAST_MATCHED: usize = 256;

/// Devices of one kind that become free at one time.
type Kind = (GpuModel, Time);

/// What each waiting task costs on each kind of device.
struct Table {
    /// One row a task, one column a group.
    times: Vec<Vec<Option<Millis>>>,
    delays: Vec<Vec<Millis>>,
}

impl Costs for Table {
    fn time(&self, job: usize, group: usize) -> Option<Millis> {
        self.times[job][group]
    }

    fn delay(&self, job: usize, group: usize) -> Millis {
        self.delays[job][group]
    }
}

pub(crate) fn run(scheduler: &mut SchedulerState, pass: &mut Pass) {
    let now = pass.now;
    let tasks = admitted(scheduler);
    // A task that overran, or was faster than expected, is a reason to match anew.
    let again = scheduler.policy.service.quantum.filter(|_| !tasks.is_empty());
    scheduler.ranked.look_at = again.map(|quantum| now + quantum);
    // Higher priorities have their choice of devices before lower ones are looked at.
    let class = |task: &TaskId| crate::queue::class(scheduler.tasks.live(*task).task.priority);
    let classes: Vec<Vec<TaskId>> =
        tasks.chunk_by(|a, b| class(a) == class(b)).map(<[TaskId]>::to_vec).collect();
    for tasks in classes {
        match_class(scheduler, pass, &tasks);
    }
}

/// Matches tasks of one priority to devices, and starts the first task of each idle one.
fn match_class(scheduler: &mut SchedulerState, pass: &mut Pass, tasks: &[TaskId]) {
    let now = pass.now;
    let kinds = kinds(scheduler, now);
    let groups: Vec<Group> = kinds.values().map(|gpus| Group { devices: gpus.len() }).collect();
    let table = table(scheduler, tasks, &kinds);
    let places = matching(tasks.len(), &groups, &table);
    for (index, (&(_, free_at), gpus)) in kinds.iter().enumerate() {
        let heads = if free_at <= now { heads(index, &places, gpus.len()) } else { Vec::new() };
        for (&gpu, job) in gpus.iter().zip(heads) {
            if pass.is_over() {
                return;
            }
            // Another of its user's tasks may just have used up the quota.
            if !scheduler.is_barred(tasks[job]) {
                scheduler.try_start(pass, tasks[job], Search::Only(&[gpu]));
            }
        }
    }
    if !scheduler.policy.needs_idle() {
        join_others(scheduler, pass, tasks);
    }
}

/// A task that got no device of its own may still fit beside others.
fn join_others(scheduler: &mut SchedulerState, pass: &mut Pass, tasks: &[TaskId]) {
    for &task in tasks {
        if pass.is_over() {
            return;
        }
        if scheduler.tasks.live(task).run.is_none() && !scheduler.is_barred(task) {
            scheduler.try_start(pass, task, Search::Everywhere);
        }
    }
}

/// The first task on each device of a group: the i-th device has the i-th task of every position.
fn heads(group: usize, places: &[Option<Position>], devices: usize) -> Vec<usize> {
    let mut first: Vec<Option<(usize, usize)>> = vec![None; devices];
    let mut filled: BTreeMap<usize, usize> = BTreeMap::new();
    for (job, place) in places.iter().enumerate() {
        let Some(place) = place.filter(|place| place.group == group) else { continue };
        let device = filled.entry(place.from_end).or_default();
        let head = &mut first[*device];
        if head.is_none_or(|(from_end, _)| place.from_end > from_end) {
            *head = Some((place.from_end, job));
        }
        *device += 1;
    }
    first.into_iter().flatten().map(|(_, job)| job).collect()
}

/// The devices by kind and by when they become free.
fn kinds(scheduler: &SchedulerState, now: Time) -> BTreeMap<Kind, Vec<GpuId>> {
    let mut kinds: BTreeMap<Kind, Vec<GpuId>> = BTreeMap::new();
    for (gpu, state) in scheduler.gpus.iter() {
        let ends =
            state.residents().iter().map(|booking| scheduler.ends_on(booking.task, gpu, now));
        let free_at = ends.max().unwrap_or(now);
        kinds.entry((state.model, free_at)).or_default().push(gpu);
    }
    kinds
}

fn table(
    scheduler: &SchedulerState,
    tasks: &[TaskId],
    kinds: &BTreeMap<Kind, Vec<GpuId>>,
) -> Table {
    let row = |&task: &TaskId| {
        kinds.keys().map(|&(model, _)| scheduler.time_on(task, model)).collect::<Vec<_>>()
    };
    let delays = |&task: &TaskId| {
        let arrived = scheduler.tasks.live(task).ticket.submitted;
        kinds.keys().map(|&(_, free_at)| free_at.since(arrived)).collect::<Vec<_>>()
    };
    Table { times: tasks.iter().map(row).collect(), delays: tasks.iter().map(delays).collect() }
}

/// The oldest tasks of the users who were served least.
fn admitted(scheduler: &SchedulerState) -> Vec<TaskId> {
    let most = scheduler.gpus.len().max(LEAST_MATCHED);
    let user = |task: TaskId| scheduler.tasks.live(task).task.user;
    let may_start = |task: &TaskId| !scheduler.is_barred(*task);
    let mut known = BTreeSet::new();
    let scores = scores(scheduler);
    let score = |user: &UserId| scores.get(user).copied().unwrap_or(0.0);
    // Of equals, the user whose task is first in the queue.
    let mut users: Vec<UserId> =
        scheduler.waiting.iter().map(user).filter(|&user| known.insert(user)).collect();
    users.sort_by(|a, b| score(a).total_cmp(&score(b)));
    let share = (scheduler.policy.alpha * users.len() as f64).ceil() as usize;
    users.truncate(share.max(1));
    let chosen: BTreeSet<UserId> = users.into_iter().collect();
    let matched = scheduler.waiting.iter().filter(|&task| chosen.contains(&user(task)));
    matched.filter(may_start).take(most).collect()
}

/// Progress of each user's running tasks, whatever they run on.
fn scores(scheduler: &SchedulerState) -> BTreeMap<UserId, f64> {
    let mut devices: BTreeMap<GpuModel, u32> = BTreeMap::new();
    for (_, state) in scheduler.gpus.iter() {
        *devices.entry(state.model).or_default() += 1;
    }
    let mut scores: BTreeMap<UserId, f64> = BTreeMap::new();
    for (_, state) in scheduler.gpus.iter() {
        for booking in state.residents() {
            let best = devices
                .iter()
                .filter_map(|(&model, &count)| {
                    Some((scheduler.time_on(booking.task, model)?, count))
                })
                .min();
            let (Some((best, count)), Some(here)) =
                (best, scheduler.time_on(booking.task, state.model))
            else {
                continue;
            };
            let rate = best.0 as f64 / here.0.max(1) as f64;
            *scores.entry(booking.user).or_default() += rate / f64::from(count);
        }
    }
    scores
}

impl SchedulerState {
    /// How long a task takes on a kind of device; `None` if it does not fit or does not run there. Tasks
    /// that did not say how long they take count as an hour.
    fn time_on(&self, task: TaskId, model: GpuModel) -> Option<Millis> {
        let task = &self.tasks.live(task).task;
        let fits = task.memory.bound().is_none_or(|bound| bound <= model.memory())
            && task.models.is_none_or(|models| models.contains(model));
        let span = task.duration.unwrap_or(Millis::from_secs(3600));
        if self.policy.learn_speeds {
            let speed = self.speeds_seen.speed(task.signature, model);
            return fits.then(|| Millis((span.0 as f64 / speed).ceil() as u64));
        }
        fits.then(|| self.speeds.time(task.signature, model, span)).flatten()
    }

    /// When a running task is expected to leave a GPU; one that overran may end any moment.
    fn ends_on(&self, task: TaskId, gpu: GpuId, now: Time) -> Time {
        let started = self.tasks.live(task).run.as_ref().map_or(now, |run| run.started);
        let span = self.time_on(task, self.gpus.get(gpu).model).unwrap_or_default();
        (started + span).max(now + Millis(1))
    }
}
