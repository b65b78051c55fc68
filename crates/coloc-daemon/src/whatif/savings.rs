//! What sharing saved: the past as the model plays it under the policy that ran, beside the same with whole GPUs for each task.

use super::policies::parse;
use super::{as_it_was, play};
use crate::past_trace::PastTrace;
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::past::{Past, PastTask};
use coloc_api::view::{OutcomeRow, SavedDay, SavedUser, SavingsAnswer, SavingsCost};
use std::collections::BTreeMap;

/// A task that took so many times as long as alone counts as slowed.
const SLOWED: f64 = 1.25;
/// The part of a shared GPU that a task had of which no SM activity was seen.
const UNSEEN_PART: f64 = 0.5;

/// Seconds in which GPUs had tasks, by day: where tasks overlap on a GPU, it is held once. Without names of GPUs, by what the
/// observed spans of tasks say: each GPU that a task had counts, less what neighbours shared.
fn by_day(past: &Past, scale: f64) -> Vec<SavedDay> {
    let mut days: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for task in &past.tasks {
        let (alone, shared) = gpu_hours(task, scale);
        let sums = days.entry(Moment((task.started_s * 1000.0) as u64).utc_day()).or_default();
        *sums = (sums.0 + alone, sums.1 + shared);
    }
    let row =
        |(day, (exclusive_gpu_h, shared_gpu_h))| SavedDay { day, exclusive_gpu_h, shared_gpu_h };
    days.into_iter().map(row).collect()
}

/// Hours of GPUs that a task would have held alone, and its part of those that were held: of a GPU that was shared, the part of its
/// SM activity, as far as is known.
fn gpu_hours(task: &PastTask, scale: f64) -> (f64, f64) {
    let gpus = f64::from(task.gpus);
    let ran = task.ran_s() * scale;
    let alone = ran / task.slowdown.max(1.0) * gpus / 3600.0;
    let held = ran * gpus / 3600.0;
    // A task that was not slowed had its GPUs to itself, as far as is believed.
    let part = match task.shared || task.slowdown > 1.0 {
        true => task.activity.map_or(UNSEEN_PART, |seen| seen.sm.get().clamp(0.05, 1.0)),
        false => 1.0,
    };
    (alone, held * part)
}

fn waits(row: &OutcomeRow) -> BTreeMap<u32, f64> {
    let wait = |task: &coloc_api::view::OutcomeTask| Some((task.id, task.start_s? - task.submit_s));
    row.tasks.iter().filter_map(wait).collect()
}

fn by_user(past: &Past, scale: f64, exclusive: &OutcomeRow) -> Vec<SavedUser> {
    let would = waits(exclusive);
    let mut users: BTreeMap<&str, SavedUser> = BTreeMap::new();
    for task in &past.tasks {
        let user = users
            .entry(&task.user)
            .or_insert_with(|| SavedUser { user: task.user.clone(), ..SavedUser::default() });
        user.tasks += 1;
        user.waited_s += (task.first_started_s - task.submitted_s) * scale;
        user.would_have_waited_s += would.get(&task.id).copied().unwrap_or(0.0);
        let (alone, shared) = gpu_hours(task, scale);
        user.exclusive_gpu_h += alone;
        user.shared_gpu_h += shared;
        user.energy_j = user.energy_j.into_iter().chain(task.energy_j).reduce(|a, b| a + b);
    }
    users.into_values().collect()
}

/// What sharing saved and cost.
pub(super) fn savings(
    past: &Past,
    since_s: f64,
    progress: impl Fn(u32, u32),
) -> Result<SavingsAnswer, String> {
    if past.tasks.is_empty() {
        return Err(
            "no task that was submitted since then has run and ended: go further back".to_owned()
        );
    }
    let (named, fleet) = as_it_was(past).ok_or("the journal does not say which GPUs there were")?;
    let told = PastTrace::new(past, false);
    let scale = past.setup.as_ref().map_or(1.0, |setup| setup.time_scale);
    progress(0, 2);
    let model = play(past, &told, &fleet, &named)?;
    progress(1, 2);
    let exclusive = play(past, &told, &fleet, &parse("exclusive")?)?;
    let by_day = by_day(past, scale);
    let saved: f64 = by_day.iter().map(|day| day.exclusive_gpu_h - day.shared_gpu_h).sum();
    let again = |task: &PastTask| (task.started_s - task.first_started_s).max(0.0) * scale;
    let repeated = past.tasks.iter().filter(|task| task.ooms > 0).map(again).sum();
    let known = || past.tasks.iter().filter(|task| !task.slowdown_guessed);
    let slowed = known().filter(|task| task.slowdown > SLOWED).count();
    let known_tasks = known().count();
    let mut assumptions = told.assumed(&fleet);
    assumptions.push("completion times and energy are the model's, for both policies".to_owned());
    if known_tasks < past.tasks.len() {
        assumptions.push(format!(
            "how much tasks were slowed is known of {known_tasks} of {} tasks: slowed tasks are counted among those",
            past.tasks.len()
        ));
    }
    let is_unseen =
        |task: &&PastTask| (task.shared || task.slowdown > 1.0) && task.activity.is_none();
    let unseen = match past.tasks.iter().filter(is_unseen).count() {
        0 => String::new(),
        unseen => format!(", and {UNSEEN_PART} for {unseen} tasks of which none was seen"),
    };
    assumptions
        .push(format!("of a shared GPU, a task's part of the hours is its SM activity{unseen}"));
    assumptions.push("energy of a user is what was laid to the tasks as they ran".to_owned());
    Ok(SavingsAnswer {
        schema: SCHEMA,
        since_s,
        tasks: past.tasks.len() as u32,
        gpu_hours_saved: saved,
        jct_saved_mean_s: exclusive.jct_mean_s - model.jct_mean_s,
        energy_saved_j: exclusive
            .energy_j
            .zip(model.energy_j)
            .map(|(alone, shared)| alone - shared),
        by_day,
        by_user: by_user(past, scale, &exclusive),
        cost: SavingsCost {
            oom_repeated_s: repeated,
            slowed_tasks: slowed as u32,
            slowed_beyond: SLOWED,
            known_tasks: known_tasks as u32,
        },
        assumptions,
    })
}
