//! A daemon's past as a trace.

mod assumed;

use crate::kinds::is_of_kind;
use coloc_api::past::{Past, PastTask};
use coloc_model::{
    Bytes, Fleet, GpuId, GpuModel, Millis, Node, SignatureId, TaskState, Time, UserId,
};
use coloc_sim::trace::{Recorded, TraceTask};
use coloc_sim::{Names, Profile, Simulation, Trace};
use serde::Serialize;
use std::collections::BTreeSet;

/// SM activity of a task that the monitor did not see, where it saw none.
const GUESS: f64 = 0.5;

/// A past that can be played again.
#[derive(Debug)]
pub struct PastTrace {
    /// The trace.
    pub trace: Trace,
    /// How it went.
    pub observed: Observed,
    /// What was assumed, for people.
    assumed: Vec<String>,
    choosy: Vec<Choosy>,
}

/// Tasks that named the kinds of GPU that they may have.
#[derive(Debug)]
struct Choosy {
    signature: SignatureId,
    kinds: Vec<String>,
    /// The most GPUs that one of them has at once, and the most memory on one GPU.
    gpus: u32,
    memory: Bytes,
    tasks: usize,
}

impl Choosy {
    fn may_have(&self, model: GpuModel) -> bool {
        self.kinds.iter().any(|kind| is_of_kind(model.name(), kind))
    }

    /// Some node has GPUs of these kinds for each of them.
    fn is_at_home(&self, fleet: &Fleet) -> bool {
        let takes_it = |gpu: &GpuId| {
            let model = fleet.gpu(*gpu).model;
            self.may_have(model) && self.memory <= model.memory()
        };
        let theirs = |node: &Node| node.gpus().filter(takes_it).count();
        fleet.nodes().iter().any(|node| theirs(node) >= self.gpus as usize)
    }
}

/// How it went, in seconds of the tasks.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Observed {
    /// Tasks that ran.
    pub tasks: usize,
    /// Tasks that completed.
    pub completed: usize,
    /// From the first submission to the last end.
    pub makespan_s: f64,
    /// Mean time from submission to end.
    pub jct_mean_s: f64,
    /// The first value of it that has 95 % before it.
    pub jct_p95_s: f64,
    /// Mean time from submission to the first start.
    pub wait_mean_s: f64,
    /// Mean of how many times as long tasks took as alone, as the scheduler believed.
    pub run_slowdown_mean: f64,
    /// Out-of-memory deaths.
    pub oom_count: u32,
    /// Preemptions.
    pub preemptions: u32,
}

impl PastTrace {
    /// The trace of a past; run times are those alone, as far as is believed, or as they were observed.
    pub fn new(past: &Past, as_observed: bool) -> Self {
        let scale = past.setup.as_ref().map_or(1.0, |setup| setup.time_scale);
        let known: Vec<f64> =
            past.tasks.iter().filter_map(|task| Some(task.activity?.sm.get())).collect();
        let usual =
            if known.is_empty() { GUESS } else { known.iter().sum::<f64>() / known.len() as f64 };
        let first = past.tasks.iter().map(|task| task.submitted_s).fold(f64::INFINITY, f64::min);
        let (mut names, mut users) = (Names::default(), Names::default());
        let mut choosy: Vec<Choosy> = Vec::new();
        let mut traced = |task: &PastTask| {
            let signature = SignatureId(names.number(&known_by(task)));
            if !task.gpu_kinds.is_empty() {
                note_choosy(&mut choosy, signature, task);
            }
            let slowdown = if as_observed { 1.0 } else { task.slowdown };
            let ran = task.ran_s() * scale / slowdown;
            TraceTask {
                submit: Time::from_secs_f64((task.submitted_s - first) * scale),
                signature,
                user: UserId(users.number(&task.user)),
                gpus: task.gpus,
                duration: Millis::from_secs_f64(ran).max(Millis(1)),
                profile: profile(task, usual),
                exclusive: task.exclusive,
                priority: task.priority,
                phases: coloc_sim::Phases::NONE,
                declared: task.declared_bytes.map(Bytes),
                recorded: recorded(task),
                checkpoint: None,
            }
        };
        let tasks = past.tasks.iter().map(&mut traced).collect();
        PastTrace {
            trace: Trace::new(tasks, names, users),
            observed: observed(&past.tasks, first, scale),
            assumed: assumed::assumed(past, as_observed, usual),
            choosy,
        }
    }

    /// Keeps tasks off GPUs of kinds that they did not name, where they could have others.
    pub fn keep_kinds(&self, simulation: &mut Simulation) {
        let models: BTreeSet<GpuModel> =
            simulation.fleet.gpus().iter().map(|gpu| gpu.model).collect();
        for choosy in self.choosy.iter().filter(|each| each.is_at_home(&simulation.fleet)) {
            for &model in models.iter().filter(|&&model| !choosy.may_have(model)) {
                simulation.speeds.insert(choosy.signature, model, 0.0);
            }
        }
    }

    /// What was assumed of the past to play it on these GPUs.
    pub fn assumed(&self, fleet: &Fleet) -> Vec<String> {
        let strangers = self.choosy.iter().filter(|each| !each.is_at_home(fleet));
        let mut assumed = self.assumed.clone();
        match strangers.map(|each| each.tasks).sum() {
            0usize => {}
            tasks => assumed.push(format!(
                "{tasks} tasks named kinds of GPU of which no node here has enough, and run on any"
            )),
        }
        assumed
    }
}

/// What a task is called: one that may run elsewhere than others that run the same is told apart from them.
fn known_by(task: &PastTask) -> String {
    match task.gpu_kinds.as_slice() {
        [] => task.kind.clone(),
        kinds => format!("{} on {}", task.kind, kinds.join(" or ")),
    }
}

fn note_choosy(choosy: &mut Vec<Choosy>, signature: SignatureId, task: &PastTask) {
    let memory = Bytes(task.memory_bytes.unwrap_or(0));
    match choosy.iter_mut().find(|each| each.signature == signature) {
        Some(each) => {
            each.gpus = each.gpus.max(task.gpus);
            each.memory = each.memory.max(memory);
            each.tasks += 1;
        }
        None => {
            let (kinds, gpus) = (task.gpu_kinds.clone(), task.gpus);
            choosy.push(Choosy { signature, kinds, gpus, memory, tasks: 1 });
        }
    }
}

/// What was estimated of a task when it was submitted. Older daemons do not say whether anything was: then what the
/// task held is told, as they are used to.
fn recorded(task: &PastTask) -> Option<Recorded> {
    if task.basis.is_none() && task.declared_bytes.is_none() {
        let held = Bytes(task.memory_bytes.unwrap_or(0));
        return Some(Recorded { peak: held, bound: held });
    }
    let peak = Bytes(task.estimate_bytes?);
    Some(Recorded { peak, bound: task.bound_bytes.map_or(peak, |bound| peak.max(Bytes(bound))) })
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
        completed: tasks.iter().filter(|task| task.state == TaskState::Completed).count(),
        makespan_s: if tasks.is_empty() { 0.0 } else { (last - first) * scale },
        jct_mean_s: mean(|task| task.ended_s - task.submitted_s) * scale,
        jct_p95_s: jcts.get(jcts.len() * 95 / 100).copied().unwrap_or(0.0) * scale,
        wait_mean_s: mean(|task| task.first_started_s - task.submitted_s) * scale,
        run_slowdown_mean: mean(|task| task.slowdown),
        oom_count: tasks.iter().map(|task| task.ooms).sum(),
        preemptions: tasks.iter().map(|task| task.preemptions).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_core::policy::{Contract, Place, Queue};
    use coloc_core::{Policy, Preset};
    use coloc_model::{Activity, Basis, Fraction, Share};
    use coloc_sim::{Estimator, Silent};

    pub(super) fn task(id: u32, submitted_s: f64, slowdown: f64) -> PastTask {
        PastTask {
            id,
            kind: format!("kind{id}"),
            user: "ann".to_owned(),
            state: TaskState::Completed,
            gpus: 1,
            gpu_kinds: Vec::new(),
            exclusive: false,
            priority: 0,
            submitted_s,
            first_started_s: submitted_s + 1.0,
            started_s: submitted_s + 1.0,
            stopped_s: None,
            ended_s: submitted_s + 11.0,
            ooms: 0,
            preemptions: 0,
            memory_bytes: Some(1 << 30),
            declared_bytes: None,
            estimate_bytes: None,
            bound_bytes: None,
            basis: None,
            activity: Some(Activity { sm: Fraction::new(0.4), ..Activity::default() }),
            slowdown,
            energy_j: None,
            shared: slowdown > 1.0,
            slowdown_guessed: false,
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
        let told = PastTrace::new(&past, false);
        let PastTrace { trace, observed, .. } = &told;
        assert_eq!(trace.tasks()[1].submit, Time::from_secs_f64(50.0));
        assert_eq!(trace.tasks()[1].profile.activity.sm.get(), 0.4, "like the others");
        assert_eq!((observed.makespan_s, observed.wait_mean_s), (61.0, 1.0));
        let assumed = |fleet: &str| told.assumed(&fleet.parse().expect("a fleet"));
        assert_eq!(assumed("1xA100-40GB,1xV100-16GB").len(), 6);
        let elsewhere = assumed("2xV100-16GB");
        assert_eq!(elsewhere.len(), 7, "{elsewhere:?}");
        assert!(elsewhere[6].starts_with("1 tasks named kinds"), "{elsewhere:?}");
    }

    /// Two tasks that hold 10 GiB each on a GPU of 40, under the contract: when each started.
    fn starts(known: impl Fn(&mut PastTask)) -> [f64; 2] {
        let both = [1, 2].map(|id| {
            let memory_bytes = Some(10 << 30);
            let mut task = PastTask { memory_bytes, ended_s: 2001.0, ..task(id, 0.0, 1.0) };
            known(&mut task);
            task
        });
        let past = Past { schema: 1, setup: None, tasks: both.to_vec(), never_ran: 0 };
        let told = PastTrace::new(&past, false);
        let policy = Preset::Coloc.policy(Estimator::Recorded.knowledge());
        let policy = Policy { contract: Some(Contract::default()), ..policy };
        let fleet = "1xA100-40GB".parse().expect("a fleet");
        let simulation = Simulation::new(fleet, policy, Estimator::Recorded);
        let (_, results) = simulation.run(&told.trace, &mut Silent).expect("it fits");
        [0, 1].map(|task| results[task].start.expect("it started").secs())
    }

    #[test]
    fn what_users_declared_and_estimators_said_is_not_forgotten() {
        let declared = starts(|task| {
            (task.basis, task.declared_bytes) = (Some(Basis::Declared), Some(30 << 30));
        });
        assert_eq!(declared, [0.0, 2000.0], "60 GiB of 40 are never promised");
        let estimate = |bound: u64| {
            starts(|task| {
                (task.basis, task.estimate_bytes) = (Some(Basis::Estimated), Some(10 << 30));
                task.bound_bytes = Some(bound << 30);
            })
        };
        assert_eq!(estimate(12), [0.0, 0.0]);
        // Until the first one was seen to train below its bound.
        let [first, second] = estimate(25);
        assert!(first == 0.0 && second > 300.0 && second < 2000.0, "{second}");
        let unknown = starts(|task| task.basis = Some(Basis::Unknown));
        assert_eq!(unknown, [0.0, 2000.0], "each needs an empty GPU");
        // Older daemons do not say what was known.
        assert_eq!(starts(|_| {}), [0.0, 0.0]);
    }

    #[test]
    fn tasks_stay_on_the_kinds_that_they_named() {
        let choosy = |id| PastTask { gpu_kinds: vec!["a100".to_owned()], ..task(id, 0.0, 1.0) };
        let tasks = vec![choosy(1), choosy(2), task(3, 0.0, 1.0)];
        let told = PastTrace::new(&Past { schema: 1, setup: None, tasks, never_ran: 0 }, false);
        let makespan = |fleet: &str| {
            let fleet = fleet.parse().expect("a fleet");
            let place = Policy::plain(Queue::BestEffort, Place::FirstFit, Share::Exclusive);
            let mut simulation = Simulation::new(fleet, place, Estimator::Oracle);
            told.keep_kinds(&mut simulation);
            simulation.run(&told.trace, &mut Silent).expect("it fits").0.makespan_s
        };
        assert_eq!(makespan("2xV100-16GB,1xA100-40GB"), 20.0, "one after the other");
        assert_eq!(makespan("1xV100-16GB,2xA100-40GB"), 10.0);
        assert_eq!(makespan("3xV100-16GB"), 10.0, "there are none of the kind");
    }

    #[test]
    fn kinds_that_are_too_small_or_too_far_apart_bar_nobody_from_others() {
        let gpu_kinds = vec!["a100".to_owned()];
        let large = PastTask { memory_bytes: Some(60 << 30), gpu_kinds, ..task(1, 0.0, 1.0) };
        let wide = PastTask { memory_bytes: Some(1 << 30), gpus: 2, id: 2, ..large.clone() };
        for (task, fleet) in [
            (large, "1xA100-40GB,1xH100-80GB"),
            (wide, "1x1xA100-40GB,1x1xA100-40GB,1x2xH100-80GB"),
        ] {
            let past = Past { schema: 1, setup: None, tasks: vec![task], never_ran: 0 };
            let told = PastTrace::new(&past, false);
            let plain = Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive);
            let fleet: Fleet = fleet.parse().expect("a fleet");
            let mut simulation = Simulation::new(fleet.clone(), plain, Estimator::Oracle);
            told.keep_kinds(&mut simulation);
            let (summary, _) = simulation.run(&told.trace, &mut Silent).expect("it runs");
            assert_eq!(summary.completed, 1, "{fleet}");
            assert!(told.assumed(&fleet).iter().any(|said| said.contains("no node here")));
        }
    }
}
