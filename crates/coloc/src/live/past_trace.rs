//! A daemon's past as a trace.

use coloc_daemon::past::{Past, PastTask};
use coloc_daemon::record::Phase;
use coloc_model::{Bytes, Millis, SignatureId, Time, UserId};
use coloc_physics::Profile;
use coloc_sim::trace::TraceTask;
use coloc_sim::{Names, Trace};
use serde::Serialize;

/// SM activity of a task that nobody saw, where nobody saw any.
const GUESS: f64 = 0.5;

/// A past that can be played again.
#[derive(Debug)]
pub(crate) struct PastTrace {
    pub(crate) trace: Trace,
    pub(crate) observed: Observed,
    /// What was assumed, for people.
    pub(crate) assumed: Vec<String>,
}

/// How it went, in seconds of the tasks.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub(crate) struct Observed {
    /// Tasks that ran.
    pub(crate) tasks: usize,
    /// Tasks that completed.
    pub(crate) completed: usize,
    /// From the first submission to the last end.
    pub(crate) makespan_s: f64,
    /// Mean time from submission to end.
    pub(crate) jct_mean_s: f64,
    /// The first value of it that has 95 % before it.
    pub(crate) jct_p95_s: f64,
    /// Mean time from submission to the first start.
    pub(crate) wait_mean_s: f64,
    /// Mean of how many times as long tasks took as alone, as the scheduler believed.
    pub(crate) run_slowdown_mean: f64,
    /// Out-of-memory deaths.
    pub(crate) oom_count: u32,
    /// Preemptions.
    pub(crate) preemptions: u32,
}

impl PastTrace {
    /// The trace of a past; run times are those alone, as far as is believed, or as they were observed.
    pub(crate) fn new(past: &Past, as_observed: bool) -> Self {
        let scale = past.setup.as_ref().map_or(1.0, |setup| setup.time_scale);
        let known: Vec<f64> =
            past.tasks.iter().filter_map(|task| Some(task.activity?.sm.get())).collect();
        let usual =
            if known.is_empty() { GUESS } else { known.iter().sum::<f64>() / known.len() as f64 };
        let first = past.tasks.iter().map(|task| task.submitted_s).fold(f64::INFINITY, f64::min);
        let (mut names, mut users) = (Names::default(), Names::default());
        let traced = |task: &PastTask| {
            let slowdown = if as_observed { 1.0 } else { task.slowdown };
            let ran = (task.ended_s - task.started_s) * scale / slowdown;
            TraceTask {
                submit: Time::from_secs_f64((task.submitted_s - first) * scale),
                signature: SignatureId(names.number(&task.kind)),
                user: UserId(users.number(&task.user)),
                gpus: task.gpus,
                duration: Millis::from_secs_f64(ran).max(Millis(1)),
                profile: profile(task, usual),
                exclusive: task.exclusive,
                priority: task.priority,
            }
        };
        let tasks = past.tasks.iter().map(traced).collect();
        PastTrace {
            trace: Trace::new(tasks, names, users),
            observed: observed(&past.tasks, first, scale),
            assumed: assumed(past, as_observed, usual),
        }
    }
}

fn profile(task: &PastTask, usual: f64) -> Profile {
    let memory = Bytes(task.memory_bytes.unwrap_or(0));
    match task.activity {
        Some(seen) => Profile::new(
            seen.gpu.get(),
            seen.sm.get(),
            seen.occupancy.get(),
            seen.dram.get(),
            memory,
        ),
        None => Profile::new(usual, usual, usual / 2.0, usual / 2.0, memory),
    }
}

fn observed(tasks: &[PastTask], first: f64, scale: f64) -> Observed {
    let count = tasks.len().max(1) as f64;
    let mean = |of: fn(&PastTask) -> f64| tasks.iter().map(of).sum::<f64>() / count;
    let mut jcts: Vec<f64> = tasks.iter().map(|task| task.ended_s - task.submitted_s).collect();
    jcts.sort_unstable_by(f64::total_cmp);
    let last = tasks.iter().map(|task| task.ended_s).fold(first, f64::max);
    Observed {
        tasks: tasks.len(),
        completed: tasks.iter().filter(|task| task.state == Phase::Completed).count(),
        makespan_s: if tasks.is_empty() { 0.0 } else { (last - first) * scale },
        jct_mean_s: mean(|task| task.ended_s - task.submitted_s) * scale,
        jct_p95_s: jcts.get(jcts.len() * 95 / 100).copied().unwrap_or(0.0) * scale,
        wait_mean_s: mean(|task| task.first_started_s - task.submitted_s) * scale,
        run_slowdown_mean: mean(|task| task.slowdown),
        oom_count: tasks.iter().map(|task| task.ooms).sum(),
        preemptions: tasks.iter().map(|task| task.preemptions).sum(),
    }
}

fn assumed(past: &Past, as_observed: bool, usual: f64) -> Vec<String> {
    let tasks = &past.tasks;
    let count = |of: fn(&PastTask) -> bool| tasks.iter().filter(|task| of(task)).count();
    let shared = count(|task| task.slowdown > 1.0);
    let mut said = vec!["memory is what was seen at most, and the scheduler is told it".to_owned()];
    said.push(match (as_observed, shared) {
        (true, 0) | (false, 0) => "run times are as observed; nobody shared a GPU".to_owned(),
        (true, shared) => {
            format!("run times are as observed, although {shared} tasks shared GPUs")
        }
        (false, shared) => format!(
            "run times are those alone: {shared} tasks that shared GPUs are shortened by what the scheduler believed of sharing"
        ),
    });
    let unseen = count(|task| task.activity.is_none());
    if unseen > 0 {
        said.push(format!(
            "{unseen} tasks were never seen at work and are taken for SM {usual:.2}"
        ));
    }
    let unknown = count(|task| task.memory_bytes.is_none());
    if unknown > 0 {
        said.push(format!(
            "{unknown} tasks were never seen with GPU memory and are taken for none"
        ));
    }
    let again = count(|task| task.preemptions > 0 || task.ooms > 0);
    if again > 0 {
        said.push(format!("of {again} tasks that ran more than once, the last run counts"));
    }
    let choosy = count(|task| !task.gpu_kinds.is_empty());
    if choosy > 0 {
        said.push(format!("{choosy} tasks named kinds of GPU and run on any here"));
    }
    if past.never_ran > 0 {
        said.push(format!("{} tasks ended without having run, and are left out", past.never_ran));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::{Activity, Fraction};

    fn task(id: u32, submitted_s: f64, slowdown: f64) -> PastTask {
        PastTask {
            id,
            kind: format!("kind{id}"),
            user: "ann".to_owned(),
            state: Phase::Completed,
            gpus: 1,
            gpu_kinds: Vec::new(),
            exclusive: false,
            priority: 0,
            submitted_s,
            first_started_s: submitted_s + 1.0,
            started_s: submitted_s + 1.0,
            ended_s: submitted_s + 11.0,
            ooms: 0,
            preemptions: 0,
            memory_bytes: Some(1 << 30),
            activity: Some(Activity { sm: Fraction::new(0.4), ..Activity::default() }),
            slowdown,
        }
    }

    #[test]
    fn sharing_is_taken_out_of_run_times_unless_it_is_wanted() {
        let unseen = PastTask { activity: None, memory_bytes: None, ..task(2, 150.0, 1.0) };
        let choosy = PastTask { gpu_kinds: vec!["a100".to_owned()], ..task(1, 100.0, 2.0) };
        let tasks = vec![choosy, unseen];
        let past = Past { schema: 1, setup: None, tasks, never_ran: 1 };
        let durations = |as_observed| -> Vec<f64> {
            let trace = PastTrace::new(&past, as_observed).trace;
            trace.tasks().iter().map(|task| task.duration.secs()).collect()
        };
        assert_eq!(durations(false), [5.0, 10.0]);
        assert_eq!(durations(true), [10.0, 10.0]);
        let PastTrace { trace, observed, assumed } = PastTrace::new(&past, false);
        assert_eq!(trace.tasks()[1].submit, Time::from_secs_f64(50.0));
        assert_eq!(trace.tasks()[1].profile.activity.sm.get(), 0.4, "like the others");
        assert_eq!((observed.makespan_s, observed.wait_mean_s), (61.0, 1.0));
        assert_eq!(assumed.len(), 6, "{assumed:?}");
    }
}
