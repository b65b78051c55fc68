//! What people and programs see. The names of fields are a contract.

use super::{Live, Owner};
use crate::journal::StoryLine;
use crate::launch::output_of;
use crate::record::{Exit, Holds, Phase, Record};
use crate::spec::TaskSpec;
use coloc_core::Explanation;
use coloc_core::accounts::Whose;
use coloc_model::{Bytes, Placement, TaskId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task in a list. Its texts are its own, or borrowed where lists are long.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "TaskView")]
pub struct TaskView<T = String> {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: T,
    /// Whose it is.
    pub user: T,
    /// Where it stands.
    pub state: Phase,
    /// Why, for people.
    pub reason: Option<T>,
    /// GPUs that it wants.
    pub gpus: u32,
    /// GPUs that it has, or had last.
    #[serde(default)]
    pub gpu_ids: Vec<u32>,
    /// The array that it is part of.
    pub array_id: Option<u32>,
    /// Its number there.
    pub array_index: Option<u32>,
    /// When it was submitted, in seconds since 1970.
    pub submitted_s: f64,
    /// When its last attempt began.
    pub started_s: Option<f64>,
    /// When it ended.
    pub ended_s: Option<f64>,
    /// Higher goes first.
    #[serde(default)]
    pub priority: i32,
    /// The most it may run, in seconds.
    pub time_limit_s: Option<f64>,
    /// What it said that it needs on each GPU.
    pub gpu_mem_bytes: Option<u64>,
    /// What it is expected to need.
    pub estimate_bytes: Option<u64>,
    /// The most that was seen.
    #[serde(default)]
    pub peak_bytes: u64,
    /// Attempts so far.
    #[serde(default)]
    pub attempts: u32,
    /// Times it ran out of GPU memory.
    #[serde(default)]
    pub ooms: u32,
    /// Times it was preempted.
    #[serde(default)]
    pub preemptions: u32,
    /// How its process ended, as a shell has it.
    pub exit_code: Option<i32>,
}

impl<T: Into<String>> TaskView<T> {
    /// With texts of its own.
    pub fn owned(self) -> TaskView {
        TaskView {
            id: self.id,
            name: self.name.into(),
            user: self.user.into(),
            state: self.state,
            reason: self.reason.map(Into::into),
            gpus: self.gpus,
            gpu_ids: self.gpu_ids,
            array_id: self.array_id,
            array_index: self.array_index,
            submitted_s: self.submitted_s,
            started_s: self.started_s,
            ended_s: self.ended_s,
            priority: self.priority,
            time_limit_s: self.time_limit_s,
            gpu_mem_bytes: self.gpu_mem_bytes,
            estimate_bytes: self.estimate_bytes,
            peak_bytes: self.peak_bytes,
            attempts: self.attempts,
            ooms: self.ooms,
            preemptions: self.preemptions,
            exit_code: self.exit_code,
        }
    }
}

/// A task with everything that is known of it.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct TaskDetail {
    /// As in a list.
    #[serde(flatten)]
    pub task: TaskView,
    /// The command.
    pub command: Vec<crate::text::RawText>,
    /// Where it runs.
    pub directory: crate::text::RawText,
    /// Kinds of GPU that it may run on; without any, all.
    #[serde(default)]
    pub gpu_kinds: Vec<String>,
    /// Where its output is.
    pub log: String,
    /// What it left was removed, and with it that log.
    #[serde(default)]
    pub log_removed: bool,
    /// What its GPUs' memory is booked with before it is seen: it is expected to stay below.
    #[serde(default)]
    pub estimate_bound_bytes: Option<u64>,
    /// Which estimator said so.
    #[serde(default)]
    pub estimator: Option<String>,
    /// Why that is less certain.
    #[serde(default)]
    pub estimate_flags: Vec<crate::estimated::EstimateFlag>,
    /// Host memory that it asked to be held to.
    #[serde(default)]
    pub host_mem_bytes: Option<u64>,
    /// What holds its last attempt to what it was given.
    #[serde(default)]
    pub holds: Option<Box<Holds>>,
    /// What happened to it.
    pub story: Vec<StoryLine>,
}

/// Why a task waits.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct WhyView {
    /// The task.
    pub task: TaskView,
    /// In a sentence.
    pub summary: String,
    /// Tasks that are asked before it.
    pub ahead: usize,
    /// What each GPU says.
    pub gpus: Vec<GpuWhy>,
}

/// What one GPU says to a task.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct GpuWhy {
    /// The GPU.
    pub gpu: u32,
    /// The rules that say no, each with the amount that was short.
    pub refusals: Vec<String>,
}

/// A GPU as the daemon sees it.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct GpuView {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub uuid: String,
    /// Its kind.
    pub model: String,
    /// Its memory.
    pub memory_total_bytes: u64,
    /// In use by anybody.
    pub memory_used_bytes: u64,
    /// Promised to tasks.
    pub memory_promised_bytes: u64,
    /// SM activity.
    pub smact: f64,
    /// Tasks on it.
    pub tasks: Vec<u32>,
    /// The same, with what is known of each.
    #[serde(default)]
    pub residents: Vec<ResidentView>,
    /// It cannot be used: it fell off the bus, or its driver is gone.
    #[serde(default)]
    pub lost: bool,
}

/// A task on a GPU.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ResidentView {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub user: String,
    /// Memory of this GPU that it was promised.
    pub promised_bytes: u64,
    /// The process that leads its session, once it has one.
    pub leader_pid: Option<u32>,
}

/// How the daemon is.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct StatusView {
    /// Its version.
    pub version: String,
    /// Tasks that have not ended.
    pub tasks: usize,
    /// Kinds of tasks of which it was taught what was measured.
    #[serde(default)]
    pub lessons: usize,
    /// The disk is full.
    pub disk_full: bool,
    /// It starts nothing new.
    pub draining: bool,
    /// The daemon's process.
    pub pid: u32,
    /// How the processes of tasks are kept together, killed and limited.
    #[serde(default)]
    pub processes: String,
}

/// What is said of a task that waits and of which nothing else is said.
pub(super) const WAITING: &str = "waiting for a GPU";

/// A task as a list shows it.
pub(crate) fn task_view<'a>(
    record: &'a Record,
    spec: &'a TaskSpec,
    user: &'a str,
) -> TaskView<&'a str> {
    TaskView {
        id: record.id.0,
        name: &spec.name,
        user,
        state: record.phase,
        reason: record.reason.as_deref().or((record.phase == Phase::Pending).then_some(WAITING)),
        gpus: spec.gpus,
        gpu_ids: record.placement.iter().flat_map(Placement::gpus).map(|gpu| gpu.0).collect(),
        array_id: record.array.map(|place| place.array.0),
        array_index: record.array.map(|place| place.index),
        submitted_s: record.submitted.secs(),
        started_s: record.started.map(crate::record::Moment::secs),
        ended_s: record.ended.map(crate::record::Moment::secs),
        priority: spec.priority,
        time_limit_s: spec.time_limit.map(coloc_model::Millis::secs),
        gpu_mem_bytes: spec.gpu_memory.map(|memory| memory.0),
        estimate_bytes: spec.estimate.map(|estimate| estimate.peak.0),
        peak_bytes: record.peak.0,
        attempts: record.attempt,
        ooms: record.ooms,
        preemptions: record.preemptions,
        exit_code: record.exit.map(Exit::shell_code),
    }
}

impl Owner {
    pub(super) fn view(&self, live: &Live) -> TaskView {
        task_view(&live.record, &live.spec, &crate::users::name(live.record.owner)).owned()
    }

    pub(super) fn detail(&self, task: TaskId) -> Option<TaskDetail> {
        let live = self.tasks.get(&task)?;
        Some(TaskDetail {
            task: self.view(live),
            command: live.spec.command.clone(),
            directory: live.spec.directory.clone(),
            gpu_kinds: live.spec.gpu_kinds.clone(),
            log: output_of(&self.launcher.run_dir(&live.record), &live.record, &live.spec)
                .display()
                .to_string(),
            log_removed: false,
            estimate_bound_bytes: live.spec.estimate.map(|estimate| estimate.bound.0),
            estimator: live.spec.estimator.clone(),
            estimate_flags: live.spec.estimate_flags.clone(),
            host_mem_bytes: live.spec.host_memory.map(|memory| memory.0),
            holds: self.launcher.true_holds(&live.record),
            story: self.journal.story(task).unwrap_or_default(),
        })
    }

    pub(super) fn why(&self, now: Time, task: TaskId) -> Option<WhyView> {
        let live = self.tasks.get(&task)?;
        let view = self.view(live);
        let explained = self.scheduler.explain(now, task);
        let gpus = explained.iter().flat_map(|explained| &explained.verdicts);
        let gpus = gpus.map(|verdict| GpuWhy {
            gpu: verdict.gpu.0,
            refusals: verdict.refusals.iter().map(ToString::to_string).collect(),
        });
        Some(WhyView {
            summary: self.summary(&view, explained.as_ref()),
            ahead: explained.as_ref().map_or(0, |explained| explained.ahead),
            gpus: gpus.collect(),
            task: view,
        })
    }

    fn summary(&self, view: &TaskView, explained: Option<&Explanation>) -> String {
        let Some(over) = explained.and_then(|explained| explained.over_quota) else {
            return summary(view, explained);
        };
        let whose = match over.whose {
            Whose::User(_) => format!("user {}", view.user),
            Whose::Group(group) => format!("group {}", self.book.group_name(group)),
        };
        over.told(&whose)
    }

    pub(super) fn gpu_views(&self) -> Vec<GpuView> {
        let gpus = self.scheduler.gpus().iter();
        let views = gpus.map(|(gpu, state)| GpuView {
            index: gpu.0,
            uuid: self.launcher.uuids.get(gpu.index()).map_or("", |uuid| uuid.as_str()).to_owned(),
            model: state.model.to_string(),
            memory_total_bytes: state.capacity.0,
            memory_used_bytes: state.signal().used.0,
            memory_promised_bytes: state.booked().0,
            smact: state.signal().activity.sm.get(),
            tasks: state.residents().iter().map(|booking| booking.task.0).collect(),
            residents: state
                .residents()
                .iter()
                .filter_map(|booking| self.resident(booking.task, booking.bytes))
                .collect(),
            lost: self.away.contains_key(&gpu),
        });
        views.collect()
    }

    fn resident(&self, task: TaskId, promised: Bytes) -> Option<ResidentView> {
        let live = self.tasks.get(&task)?;
        Some(ResidentView {
            id: task.0,
            name: live.spec.name.clone(),
            user: crate::users::name(live.record.owner),
            promised_bytes: promised.0,
            leader_pid: self.launcher.known.get(&task).map(|roots| roots.leader),
        })
    }

    pub(super) fn status(&self) -> StatusView {
        StatusView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tasks: self.tasks.len(),
            lessons: self.scheduler.beliefs().lessons(),
            disk_full: self.disk_full,
            draining: self.draining,
            pid: std::process::id(),
            processes: match &self.launcher.groups {
                Ok(groups) => groups.says(),
                Err(why) => format!("session: {why}"),
            },
        }
    }
}

fn summary(view: &TaskView, explained: Option<&Explanation>) -> String {
    if let Some(reason) = &view.reason
        && explained.is_none()
    {
        return reason.clone();
    }
    let Some(explained) = explained else {
        return format!("it is {}", view.state);
    };
    if explained.stopped_by_recovery {
        return "a task that ran out of memory goes first, and all others wait for it".to_owned();
    }
    let willing = explained.verdicts.iter().filter(|verdict| verdict.refusals.is_empty()).count();
    match (willing, explained.gpus as usize) {
        (willing, wanted) if willing >= wanted => {
            format!("{} tasks are asked before it", explained.ahead)
        }
        (0, _) => "no GPU would take it now".to_owned(),
        (willing, wanted) => format!("{willing} GPUs would take it now, it wants {wanted} at once"),
    }
}
