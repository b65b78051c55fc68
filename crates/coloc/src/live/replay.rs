//! A trace played on a live daemon: each task is submitted when its time has come, as an emulated training.

use crate::error::CliError;
use coloc_api::client::Client;
use coloc_api::moment::Moment;
use coloc_api::request::Submission;
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_api::view::TaskView;
use coloc_model::TaskState;
use coloc_physics::catalogue;
use coloc_sim::Trace;
use coloc_sim::trace::TraceTask;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a replay amounts to, in seconds of the tasks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Replayed {
    /// Tasks submitted.
    pub(crate) tasks: usize,
    /// Tasks that completed.
    pub(crate) completed: usize,
    /// From the first submission to the last end.
    pub(crate) makespan_s: f64,
    /// Mean time from submission to end.
    pub(crate) jct_mean_s: f64,
    /// Mean time from submission to the first start of the last attempt.
    pub(crate) wait_mean_s: f64,
    /// Out-of-memory deaths.
    pub(crate) oom_count: u32,
}

/// Submits the tasks of a trace, and waits for them.
pub(crate) struct Replay<'a> {
    pub(crate) trace: &'a Trace,
    /// Seconds of tasks in one of ours; the daemon's must be the same.
    pub(crate) time_scale: f64,
    began: Instant,
    ids: Vec<u32>,
    first: Option<Moment>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(trace: &'a Trace, time_scale: f64) -> Self {
        Replay { trace, time_scale, began: Instant::now(), ids: Vec::new(), first: None }
    }

    /// When the next task is due; `None` once all are submitted.
    fn next(&self) -> Option<(Instant, &'a TraceTask)> {
        let task = self.trace.tasks().get(self.ids.len())?;
        let after = Duration::from_secs_f64(task.submit.secs() / self.time_scale);
        Some((self.began + after, task))
    }

    /// Submits what is due; says how long until the next.
    pub(crate) fn step(&mut self, client: &mut Client) -> Result<Option<Duration>, CliError> {
        while let Some((at, task)) = self.next() {
            let now = Instant::now();
            if at > now {
                return Ok(Some(at - now));
            }
            let submission = Submission::of(training(self.trace, task)?);
            self.first.get_or_insert_with(Moment::now);
            self.ids.extend(client.submit(&submission)?.ids);
        }
        Ok(None)
    }

    /// What the daemon calls the tasks, in the order of the trace.
    pub(crate) fn ids(&self) -> &[u32] {
        &self.ids
    }

    /// A moment of the daemon's in seconds of the tasks since the first submission.
    pub(crate) fn since_first(&self, moment_s: f64) -> f64 {
        (moment_s - self.first.map_or(0.0, Moment::secs)) * self.time_scale
    }

    /// The tasks of this replay, ended or not.
    pub(crate) fn tasks(&self, client: &mut Client) -> Result<Vec<TaskView>, CliError> {
        let mut tasks = client.list(true, 0.0)?.tasks;
        tasks.retain(|task| self.ids.contains(&task.id));
        Ok(tasks)
    }

    /// Plays the trace to its end.
    pub(crate) fn play(&mut self, client: &mut Client) -> Result<Replayed, CliError> {
        while let Some(wait) = self.step(client)? {
            std::thread::sleep(wait);
        }
        for &id in &self.ids {
            client.wait(id)?;
        }
        let tasks = self.tasks(client)?;
        Ok(self.sum_up(&tasks))
    }

    /// What it amounts to.
    pub(crate) fn sum_up(&self, tasks: &[TaskView]) -> Replayed {
        let first = self.first.map_or(0.0, Moment::secs);
        let ended = tasks.iter().filter_map(|task| task.ended_s);
        let mean = |of: &dyn Fn(&TaskView) -> Option<f64>| {
            let all: Vec<f64> = tasks.iter().filter_map(of).collect();
            all.iter().sum::<f64>() / all.len().max(1) as f64 * self.time_scale
        };
        Replayed {
            tasks: self.ids.len(),
            completed: tasks.iter().filter(|task| task.state == TaskState::Completed).count(),
            makespan_s: (ended.fold(first, f64::max) - first) * self.time_scale,
            jct_mean_s: mean(&|task| Some(task.ended_s? - task.submitted_s)),
            wait_mean_s: mean(&|task| Some(task.started_s? - task.submitted_s)),
            oom_count: tasks.iter().map(|task| task.ooms).sum(),
        }
    }
}

/// The emulated training that stands for a task of a trace.
fn training(trace: &Trace, task: &TraceTask) -> Result<TaskSpec, CliError> {
    let program = std::env::current_exe()
        .map_err(|source| CliError::Write { file: PathBuf::from("/proc/self/exe"), source })?;
    let name = trace.name(task);
    let mut command: Vec<RawText> = vec![program.into_os_string().into()];
    command.extend(["emu", "train"].map(RawText::from));
    match catalogue::find(name) {
        Some(_) => command.extend(["--profile", name].map(RawText::from)),
        None => {
            let activity = task.profile.activity;
            let numbers = [
                ("--memory", format!("{}B", task.profile.memory.0)),
                ("--seconds", format!("{}", task.duration.secs())),
                ("--gpu-active", format!("{}", activity.gpu.get())),
                ("--sm", format!("{}", activity.sm.get())),
                ("--occupancy", format!("{}", activity.occupancy.get())),
                ("--dram", format!("{}", activity.dram.get())),
                ("--gpus", task.gpus.to_string()),
            ];
            for (flag, number) in numbers {
                command.extend([RawText::from(flag), RawText::from(number)]);
            }
        }
    }
    let path =
        |variable: &str| std::env::var_os(variable).map(|value| (variable.into(), value.into()));
    Ok(TaskSpec {
        environment: ["PATH", "LD_LIBRARY_PATH"].into_iter().filter_map(path).collect(),
        gpus: task.gpus,
        gpu_memory: Some(task.profile.memory),
        exclusive: task.exclusive,
        ..TaskSpec::new(name.to_owned(), command, "/".into())
    })
}
