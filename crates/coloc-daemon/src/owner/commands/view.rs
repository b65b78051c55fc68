//! What people and programs see. The names of fields are a contract.

use crate::owner::{Live, Owner, running_attempt};
use crate::record::{Exit, Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_api::view::{GpuWhy, MemoryView, StoryLine, TaskDetail, TaskView, WAITING, WhyView};
use coloc_core::accounts::{OverQuota, Whose};
use coloc_core::eligibility::HELD;
use coloc_core::{Explanation, HostRefusal, Promised};
use coloc_model::{Placement, TaskId, TaskState, Time};
use std::borrow::Cow;
use std::path::PathBuf;

/// What a task is promised of its GPUs' memory, with the rule that it follows.
pub(crate) fn memory_view(promised: Option<&Promised>, memory_rule: Option<String>) -> MemoryView {
    MemoryView {
        memory_basis: promised.map(|promised| promised.basis.name().to_owned()),
        limit_bytes: promised.and_then(|promised| promised.limit).map(|limit| limit.0),
        settled: promised.is_some_and(|promised| promised.settled),
        memory_rule,
    }
}

/// A task as it is shown, and where its output is.
#[derive(Debug)]
pub struct Shown {
    /// What is shown.
    pub detail: TaskDetail,
    /// The user whose output it is.
    pub owner: Uid,
    /// Where it is.
    pub output: PathBuf,
}

impl Shown {
    /// Tells what happened to it. What was written down for a whole array is in the story of its first task: the others are told
    /// when they were submitted all the same.
    pub(crate) fn tell(&mut self, record: &Record, mut story: Vec<StoryLine>) {
        if let Some(place) = record.array.filter(|place| place.array != record.id) {
            let what = format!("submitted as number {} of array {}", place.index, place.array);
            story.insert(0, StoryLine { at: record.submitted, what });
        }
        self.detail.story = story;
    }

    /// A task by what is kept of it. What it was promised and what happened to it is for the caller to add.
    pub(crate) fn new(record: &Record, spec: &TaskSpec, output: PathBuf) -> Self {
        let detail = TaskDetail {
            task: whole_view(record, spec),
            command: spec.command.clone(),
            directory: spec.directory.clone(),
            gpu_kinds: spec.gpu_kinds.clone(),
            pools: spec.pools.clone(),
            log: output.display().to_string(),
            log_removed: false,
            estimate_bound_bytes: spec.estimate.map(|estimate| estimate.bound.0),
            estimator: spec.estimator.clone(),
            estimate_flags: spec.estimate_flags.clone(),
            memory: MemoryView::default(),
            ntasks: spec.layout.ntasks,
            cpus: spec.layout.cpus(),
            host_mem_bytes: spec.host_memory.map(|memory| memory.0),
            enforcement: record.enforcement.clone(),
            story: Vec::new(),
            attempts_list: Vec::new(),
            decisions: Vec::new(),
            neighbours: Vec::new(),
            energy_j: record.accounting.energy_j(),
            energy_kind: record.accounting.energy_kind().map(|kind| kind.name().to_owned()),
            smact_mean: record.accounting.smact_mean(),
        };
        Shown { detail, owner: record.owner, output }
    }
}

/// A task as a list shows it.
pub(crate) fn task_view<'a>(
    record: &'a Record,
    spec: &'a TaskSpec,
    user: &'a str,
    waiting: &'a str,
) -> TaskView<&'a str> {
    TaskView {
        id: record.id.0,
        name: &spec.name,
        user,
        state: record.phase,
        reason: record.reason.as_deref().or_else(|| usual_reason(record, waiting)),
        gpus: spec.gpus,
        gpu_ids: record.placement.iter().flat_map(Placement::gpus).map(|gpu| gpu.0).collect(),
        array_id: record.array.map(|place| place.array.0),
        array_index: record.array.map(|place| place.index),
        submitted_s: record.submitted.secs(),
        started_s: record.started.map(coloc_api::moment::Moment::secs),
        ended_s: record.ended.map(coloc_api::moment::Moment::secs),
        priority: spec.priority,
        time_limit_s: spec.time_limit.map(coloc_model::Millis::secs),
        gpu_mem_bytes: spec.gpu_memory.map(|memory| memory.0),
        estimate_bytes: spec.estimate.map(|estimate| estimate.peak.0),
        peak_bytes: record.peak.0,
        attempts: record.attempt,
        ooms: record.ooms,
        preemptions: record.preemptions,
        exit_code: record.exit.map(Exit::shell_code),
        bound_bytes: spec.estimate.map(|estimate| estimate.bound.0),
        promised_bytes: promised_to(record).map(|promised| promised.bytes.0),
        used_bytes: None,
        first_started_s: record.first_started.map(coloc_api::moment::Moment::secs),
        held_by: None,
        position: None,
        reason_code: None,
        progress: None,
        stopped_s: record.stopped.map(coloc_api::moment::Moment::secs),
    }
}

/// What its attempt that runs, or ran last, was promised.
fn promised_to(record: &Record) -> Option<Promised> {
    record.memory.as_ref()?.promised
}

/// Why a task is where it is, if its record does not say. `waiting` is what all wait for that wait for nothing of their own.
fn usual_reason<'a>(record: &Record, waiting: &'a str) -> Option<&'a str> {
    match (record.phase, record.intent) {
        (TaskState::Pending, _) if record.held => Some(HELD),
        (TaskState::Pending, _) => Some(waiting),
        (phase, Some(intent)) if phase.is_on_gpus() => Some(intent.tells()),
        _ => None,
    }
}

/// The same with texts of its own.
pub(crate) fn whole_view(record: &Record, spec: &TaskSpec) -> TaskView {
    task_view(record, spec, &crate::users::name(record.owner), WAITING).owned()
}

impl Owner {
    pub(in crate::owner) fn view(&self, live: &Live) -> TaskView {
        let Live { record, spec, .. } = live;
        let holder = record.held_by.map(crate::users::name);
        let user = crate::users::name(record.owner);
        let awaited = self.awaited_by(live, &user).map_or_else(|| self.awaited(), Cow::Owned);
        let view = task_view(record, spec, &user, &awaited);
        self.with_what_is_seen(record, TaskView { held_by: holder.as_deref(), ..view }).owned()
    }

    /// The same with what the monitor and the scheduler know of the task just now.
    pub(in crate::owner) fn with_what_is_seen<'a>(
        &self,
        record: &Record,
        view: TaskView<&'a str>,
    ) -> TaskView<&'a str> {
        let waits = view.state == TaskState::Pending || view.state == TaskState::Recovering;
        let task = record.id;
        TaskView {
            progress: self.progress(record),
            used_bytes: if waits { None } else { self.used_by(task) },
            position: if waits { self.waiting.place(task) } else { None },
            reason_code: if waits { self.reason_code(task) } else { None },
            ..view
        }
    }

    /// What a task was last seen with, on the GPU where it holds most.
    fn used_by(&self, task: TaskId) -> Option<u64> {
        let seen = &self.last_seen.tasks;
        let found = seen.binary_search_by_key(&task, |seen| seen.task).ok()?;
        Some(seen[found].used.0)
    }

    /// What tasks wait for that could start.
    pub(in crate::owner) fn awaited(&self) -> Cow<'static, str> {
        self.why_nothing_starts().map_or(Cow::Borrowed(WAITING), Cow::Owned)
    }

    /// What a task waits for by itself that the scheduler has: its user or group holds as much as it may.
    pub(in crate::owner) fn awaited_by(&self, live: &Live, user: &str) -> Option<String> {
        let waits = live.in_core && live.record.phase == TaskState::Pending;
        let over = waits.then(|| self.scheduler.over_quota(live.record.id))??;
        self.why_nothing_starts().is_none().then(|| self.told_quota(&over, user))
    }

    fn told_quota(&self, over: &OverQuota, user: &str) -> String {
        over.told(&match over.whose {
            Whose::User(_) => format!("user {user}"),
            Whose::Group(group) => format!("group {}", self.account_table.group_name(group)),
        })
    }

    fn why_nothing_starts(&self) -> Option<String> {
        let draining = "the daemon is draining: nothing new is launched; `coloc resume` goes on";
        self.draining.then(|| draining.to_owned()).or_else(|| self.machine_trouble())
    }

    pub(in crate::owner) fn detail(&mut self, task: TaskId) -> Option<Shown> {
        let (promised_bytes, memory) = self.memory_view(task);
        let live = self.tasks.get(&task)?;
        let output = self.executor.output(&live.record, &live.spec);
        let mut shown = Shown::new(&live.record, &live.spec, output);
        shown.detail.task = self.view(live);
        if let Some(pools) = self.pools_of(live.record.owner, &live.spec) {
            let names = pools.iter().map(|pool| self.pool_table.name(pool).to_owned());
            shown.detail.pools = names.collect();
        }
        shown.detail.task.promised_bytes = promised_bytes;
        shown.detail.memory = memory;
        shown.detail.enforcement = self.executor.enforcement(&live.record);
        shown.tell(&live.record, self.journal.story(task).unwrap_or_default());
        shown.detail.attempts_list = self.journal.attempts(task).unwrap_or_default();
        if live.record.phase.is_on_gpus() {
            shown.detail.attempts_list.push(running_attempt(&live.record));
        }
        shown.detail.decisions = self.journal.decisions(task).unwrap_or_default();
        shown.detail.neighbours = self.neighbours(task);
        Some(shown)
    }

    pub(in crate::owner) fn why(&mut self, now: Time, task: TaskId) -> Option<WhyView> {
        let (promised_bytes, memory) = self.memory_view(task);
        let live = self.tasks.get(&task)?;
        let view = self.view(live);
        let explained = self.scheduler.explain(now, task);
        let gpus = explained.iter().flat_map(|explained| &explained.verdicts);
        let gpus = gpus.map(|verdict| {
            let rules = self.rules(verdict);
            let refusals = rules.iter().map(|rule| rule.text.clone()).collect();
            GpuWhy { gpu: verdict.gpu.0, refusals, rules }
        });
        Some(WhyView {
            summary: self.summary(&view, explained.as_ref()),
            promised_bytes,
            memory,
            awaits: explained.as_ref().and_then(|explained| explained.awaits).map(|task| task.0),
            host: explained.as_ref().and_then(|e| e.host).map(|no| host_told(&no)),
            ahead: explained.as_ref().map_or(0, |explained| explained.ahead),
            gpus: gpus.collect(),
            task: view,
        })
    }

    fn summary(&self, view: &TaskView, explained: Option<&Explanation>) -> String {
        if let (TaskState::Pending, Some(_), Some(trouble)) =
            (view.state, explained, self.why_nothing_starts())
        {
            return trouble;
        }
        let Some(explained) = explained else { return summary(view, None) };
        match (explained.over_quota, &explained.host) {
            (Some(over), _) => self.told_quota(&over, &view.user),
            (None, Some(host)) => host_told(host),
            (None, None) => summary(view, Some(explained)),
        }
    }
}

/// Why the machine's CPUs or memory cannot take a task now.
fn host_told(refusal: &HostRefusal) -> String {
    match refusal {
        HostRefusal::HostReserved { .. } => refusal.to_string(),
        HostRefusal::HostCpus { .. } | HostRefusal::HostMemory { .. } => format!("it {refusal}"),
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
        (willing, wanted) if willing >= wanted => match explained.ahead {
            1 => "1 task is asked before it".to_owned(),
            ahead => format!("{ahead} tasks are asked before it"),
        },
        (0, _) => match explained.awaits {
            Some(first) => format!(
                "nothing is known of its memory, so it needs an empty GPU; task {first} is the first of its kind, and once \
                 that one is seen to train this one can share"
            ),
            None => "no GPU would take it now".to_owned(),
        },
        (1, wanted) => format!("1 GPU would take it now, it wants {wanted} at once"),
        (willing, wanted) => format!("{willing} GPUs would take it now, it wants {wanted} at once"),
    }
}
