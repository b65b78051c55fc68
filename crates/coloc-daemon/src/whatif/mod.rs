//! What would have been: the daemon's own past, played under other policies or on other GPUs. Predicted, never measured.

mod policies;
mod savings;
mod worker;

pub use worker::Worker;
pub(crate) use worker::{Outcome, Question, Standing};

use crate::past_trace::PastTrace;
use coloc_api::SCHEMA;
use coloc_api::past::{Past, PastTask};
use coloc_api::view::{OutcomeRow, OutcomeTask, WhatifAnswer};
use coloc_core::Policy;
use coloc_model::{Fleet, Time};
use coloc_sim::{Estimator, Silent, Simulation, Summary, TaskResult};
use policies::{NamedPolicy, parse};

/// What most people want to see their own past beside.
const USUAL: [&str; 3] = ["exclusive", "carma-v2:oracle", "coloc"];
/// Policies of one question.
const MOST_POLICIES: usize = 8;
/// Tasks of which each is told; of more, the sums alone.
const MOST_TASKS: usize = 5000;

/// The policies that a question names.
pub(crate) fn policies(names: &[String]) -> Result<Vec<NamedPolicy>, String> {
    if names.len() > MOST_POLICIES {
        return Err(format!("at most {MOST_POLICIES} policies are played at once"));
    }
    match names {
        [] => USUAL.iter().map(|name| parse(name)).collect(),
        names => names.iter().map(|name| parse(name)).collect(),
    }
}

/// Plays a past on some GPUs.
fn play(
    past: &Past,
    told: &PastTrace,
    fleet: &Fleet,
    named: &NamedPolicy,
) -> Result<OutcomeRow, String> {
    let mut simulation = Simulation::new(fleet.clone(), named.policy, named.estimator);
    told.keep_kinds(&mut simulation);
    let (summary, results) =
        simulation.run(&told.trace, &mut Silent).map_err(|error| error.to_string())?;
    Ok(predicted(named.name.clone(), past, told, &summary, &results))
}

fn predicted(
    policy: String,
    past: &Past,
    told: &PastTrace,
    summary: &Summary,
    results: &[TaskResult],
) -> OutcomeRow {
    let few = past.tasks.len() <= MOST_TASKS;
    let each = past.tasks.iter().zip(told.trace.tasks()).zip(results).filter(|_| few);
    let tasks = each.map(|((task, traced), result)| OutcomeTask {
        id: task.id,
        submit_s: traced.submit.secs(),
        start_s: result.start.map(Time::secs),
        end_s: result.end.map(Time::secs),
    });
    OutcomeRow {
        policy,
        makespan_s: summary.makespan_s,
        jct_mean_s: summary.jct_mean_s,
        jct_p50_s: summary.jct_p50_s,
        jct_p95_s: summary.jct_p95_s,
        wait_mean_s: summary.wait_mean_s,
        oom_count: summary.oom_count,
        smact_mean: Some(summary.smact_mean),
        energy_j: Some(summary.energy_j),
        tasks: tasks.collect(),
    }
}

/// How it went.
fn observed(past: &Past, told: &PastTrace) -> OutcomeRow {
    let scale = past.setup.as_ref().map_or(1.0, |setup| setup.time_scale);
    let first = past.tasks.iter().map(|task| task.submitted_s).fold(f64::INFINITY, f64::min);
    let seen = &told.observed;
    let few = past.tasks.len() <= MOST_TASKS;
    let since = |at: f64| (at - first) * scale;
    let each = |task: &PastTask| OutcomeTask {
        id: task.id,
        submit_s: since(task.submitted_s),
        start_s: Some(since(task.first_started_s)),
        end_s: Some(since(task.ended_s)),
    };
    let mut jcts: Vec<f64> =
        past.tasks.iter().map(|task| (task.ended_s - task.submitted_s) * scale).collect();
    jcts.sort_unstable_by(f64::total_cmp);
    OutcomeRow {
        policy: "as it was".to_owned(),
        makespan_s: seen.makespan_s,
        jct_mean_s: seen.jct_mean_s,
        jct_p50_s: jcts.get(jcts.len() / 2).copied().unwrap_or(0.0),
        jct_p95_s: seen.jct_p95_s,
        wait_mean_s: seen.wait_mean_s,
        oom_count: seen.oom_count,
        smact_mean: None,
        energy_j: None,
        tasks: past.tasks.iter().filter(|_| few).map(each).collect(),
    }
}

/// The policy that was in force and the GPUs that there were, if the journal says them.
fn as_it_was(past: &Past) -> Option<(NamedPolicy, Fleet)> {
    let setup = past.setup.as_ref()?;
    let policy: Policy = serde_json::from_value(setup.policy.clone()).ok()?;
    let fleet = Fleet::server(&setup.gpus).ok()?;
    let (name, estimator) = ("as it ran".to_owned(), Estimator::Recorded);
    Some((NamedPolicy { name, policy, estimator }, fleet))
}

/// Plays a past under policies; `progress` hears how many of how many runs are done.
fn whatif(
    past: &Past,
    since_s: f64,
    fleet: Option<&Fleet>,
    named: &[NamedPolicy],
    progress: impl Fn(u32, u32),
) -> Result<WhatifAnswer, String> {
    if past.tasks.is_empty() {
        return Err(
            "no task that was submitted since then has run and ended: go further back".to_owned()
        );
    }
    let told = PastTrace::new(past, false);
    let was = as_it_was(past);
    let there = was.as_ref().map(|(_, fleet)| fleet);
    let fleet =
        fleet.or(there).ok_or("the journal does not say which GPUs there were: name some")?;
    let runs = named.len() as u32 + u32::from(was.is_some());
    progress(0, runs);
    let model = was.as_ref().map(|(named, there)| play(past, &told, there, named)).transpose()?;
    let mut rows = Vec::new();
    for named in named {
        progress(rows.len() as u32 + u32::from(model.is_some()), runs);
        rows.push(play(past, &told, fleet, named)?);
    }
    let observed = observed(past, &told);
    let agreement = model.as_ref().filter(|_| observed.jct_mean_s > 0.0);
    let agreement = agreement.map(|model| model.jct_mean_s / observed.jct_mean_s);
    let assumptions = told.assumed(fleet);
    let fleet = fleet.to_string();
    let schema = SCHEMA;
    Ok(WhatifAnswer { schema, since_s, fleet, observed, model, agreement, rows, assumptions })
}
