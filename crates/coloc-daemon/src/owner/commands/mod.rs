//! What people can ask for, and whether they may.

pub(in crate::owner) mod batch_budget;
pub(in crate::owner) mod bulk;
mod cancel;
pub(in crate::owner) mod gpus;
mod hold;
pub(in crate::owner) mod invalid;
pub(in crate::owner) mod list;
pub(in crate::owner) mod reconfigure;
mod requeue;
pub(in crate::owner) mod signal;
pub(in crate::owner) mod snapshot;
pub(in crate::owner) mod submit;
pub(in crate::owner) mod teach;
pub(in crate::owner) mod update;
pub(in crate::owner) mod view;

pub use invalid::Invalid;

use crate::journal::{Entry, Trouble};
use crate::owner::Shown;
use crate::owner::{Owner, Page, PageRequest, Snapshot};
use crate::record::Uid;
use crate::settings::Settings;
use coloc_api::answer::code;
use coloc_api::request::{Change, GpuService, Submission, Teaching};
use coloc_api::view::{GpuView, StatusView, TaskView, WhyView};
use coloc_core::Effect;
use coloc_model::{TaskId, TaskState, Time};

/// Who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The user, as the kernel says.
    pub uid: Uid,
    /// May touch everybody's tasks.
    pub admin: bool,
}

impl Caller {
    /// The daemon itself.
    pub(crate) const DAEMON: Caller = Caller { uid: Uid(0), admin: true };
}

/// What is asked for.
#[derive(Debug)]
pub enum Command {
    /// New tasks.
    Submit(Box<Submission>),
    /// Something is to be done with some tasks.
    Change(Vec<TaskId>, Change),
    /// Tasks that have not ended.
    List,
    /// Some of them, written out.
    Page(PageRequest),
    /// One of them.
    Show(TaskId),
    /// Why it waits.
    Why(TaskId),
    /// Everything that a look ahead needs.
    Snapshot,
    /// Believe what was measured.
    Teach(Box<Teaching>),
    /// The last look of the monitor.
    Gpus,
    /// How the daemon is.
    Status,
    /// Start nothing new (true), or go on.
    Drain(bool),
    /// Have GPUs take nothing new, or tasks again.
    ServeGpus(GpuService),
    /// What the settings are.
    Settings,
    /// Have other settings.
    Reconfigure(Box<Settings>),
}

/// What is answered.
#[derive(Debug)]
pub enum Answer {
    /// The tasks are on the disk.
    Submitted {
        /// Their ids, in order.
        ids: Vec<TaskId>,
        /// What they are promised of their GPUs' memory, for people.
        memory_rule: Option<String>,
    },
    /// What became of each wish.
    Changed {
        /// By task.
        each: Vec<(TaskId, Result<(), Refused>)>,
        /// Running tasks are told to go, and all that was wanted is noted with that.
        tells: bool,
    },
    /// Tasks.
    Tasks(Vec<TaskView>),
    /// A part of a list.
    Page(Page),
    /// A task, if it has not ended.
    Task(Option<Box<Shown>>),
    /// Why a task waits.
    Why(Box<WhyView>),
    /// How everything stands.
    Snapshot(Box<Snapshot>),
    /// The GPUs.
    Gpus(Vec<GpuView>),
    /// GPUs that take nothing new, or tasks again, and what is to be known of them.
    GpusServed(Vec<GpuView>, Vec<String>),
    /// How the daemon is.
    Status(StatusView),
    /// It is believed, and on the disk.
    Taught,
    /// Whether nothing new is taken and started; it is on the disk.
    Draining(bool),
    /// What is in force, with what somebody chose.
    Settings(Box<Settings>),
    /// Done.
    Done,
    /// No.
    Refused(Refused),
}

/// Why not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It is somebody else's.
    #[error("task {0} belongs to another user")]
    NotYours(TaskId),
    /// Only who runs the daemon, or root, may.
    #[error("only an administrator may do that")]
    NotAdmin,
    /// Only they may go before everybody else.
    #[error("only an administrator may give a priority above 0")]
    PriorityAboveZero,
    /// It has ended, or never was.
    #[error("there is no task {0} that has not ended")]
    NoSuchTask(TaskId),
    /// There is no such GPU.
    #[error("there is no GPU {0}: `coloc gpus` lists them")]
    NoSuchGpu(String),
    /// It makes no sense for a task in that phase.
    #[error("task {task} is {phase}: {advice}")]
    WrongPhase {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: TaskState,
        /// What to do instead.
        advice: &'static str,
    },
    /// Nobody holds it.
    #[error("task {task} is {phase}, and nobody holds it")]
    NotHeld {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: TaskState,
    },
    /// It has no processes.
    #[error("task {task} is {phase}: only a task that runs hears signals")]
    NotRunning {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: TaskState,
    },
    /// The submission makes no sense.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The user has as much as one may have.
    #[error("{0}")]
    OverLimit(String),
    /// The journal cannot be written.
    #[error("{0}")]
    Journal(Trouble),
    /// The journal cannot be written: what was wanted is not on the disk yet.
    #[error("it is not written down yet, and running tasks hear of it only when it is: {0}")]
    NotKept(Trouble),
    /// To look ahead would take too long.
    #[error("{tasks} tasks have not ended: nobody looks ahead with more than {most}")]
    TooManyToForecast {
        /// How many there are.
        tasks: usize,
        /// How many may be.
        most: usize,
    },
    /// The daemon is about to stop.
    #[error("the daemon is draining: nothing new is taken")]
    Draining,
}

impl Refused {
    /// A word for programs; docs/api.md lists them.
    pub fn code(&self) -> &'static str {
        match self {
            Refused::NotYours(_) => "not_yours",
            Refused::NotAdmin | Refused::PriorityAboveZero => "not_admin",
            Refused::NoSuchTask(_) => code::NO_SUCH_TASK,
            Refused::NoSuchGpu(_) => "no_such_gpu",
            Refused::WrongPhase { .. } => "wrong_state",
            Refused::NotHeld { .. } => code::NOT_HELD,
            Refused::NotRunning { .. } => code::NOT_RUNNING,
            Refused::Invalid(_) => "invalid",
            Refused::OverLimit(_) => "over_limit",
            Refused::Journal(trouble) => trouble.code(),
            Refused::NotKept(_) => "not_kept",
            Refused::TooManyToForecast { .. } => "too_many",
            Refused::Draining => "draining",
        }
    }
}

impl Owner {
    pub(in crate::owner) fn obey(
        &mut self,
        now: Time,
        caller: Caller,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Answer {
        match command {
            Command::Submit(submission) => match self.submit(caller, *submission) {
                Ok((ids, memory_rule)) => Answer::Submitted { ids, memory_rule },
                Err(refused) => Answer::Refused(refused),
            },
            Command::Change(tasks, change) if tasks.len() > bulk::CHANGES => {
                let (each, tells) = (Vec::with_capacity(tasks.len()), change.tells());
                self.begin_changes(caller, tasks, change);
                Answer::Changed { each, tells }
            }
            Command::Change(tasks, change) => {
                let each = tasks.into_iter();
                let each =
                    each.map(|task| (task, self.change(now, caller, task, &change, effects)));
                Answer::Changed { each: each.collect(), tells: change.tells() }
            }
            Command::List => {
                Answer::Tasks(self.tasks.values().map(|live| self.view(live)).collect())
            }
            Command::Page(request) => Answer::Page(self.page(&request)),
            Command::Show(task) => Answer::Task(self.detail(task).map(Box::new)),
            Command::Why(task) => match self.why(now, task) {
                Some(why) => Answer::Why(Box::new(why)),
                None => Answer::Refused(Refused::NoSuchTask(task)),
            },
            Command::Snapshot => match self.snapshot(now) {
                Ok(snapshot) => Answer::Snapshot(Box::new(snapshot)),
                Err(refused) => Answer::Refused(refused),
            },
            Command::Teach(_) if !caller.admin => Answer::Refused(Refused::NotAdmin),
            Command::Teach(teaching) => self.teach(now, *teaching, effects),
            Command::Gpus => Answer::Gpus(self.gpu_views()),
            Command::Status => Answer::Status(self.status()),
            Command::Drain(_) if !caller.admin => Answer::Refused(Refused::NotAdmin),
            Command::Drain(draining) => {
                self.draining = draining;
                self.pending.push(Entry::Draining(draining));
                Answer::Draining(draining)
            }
            Command::ServeGpus(request) => {
                let served = self.serve_gpus(now, caller, &request, effects);
                served.unwrap_or_else(Answer::Refused)
            }
            Command::Settings => Answer::Settings(Box::new(self.settings.clone())),
            Command::Reconfigure(_) if !caller.admin => Answer::Refused(Refused::NotAdmin),
            Command::Reconfigure(settings) => match self.reconfigure(now, *settings, effects) {
                Ok(()) => Answer::Done,
                Err(refused) => Answer::Refused(refused),
            },
        }
    }

    pub(in crate::owner) fn change(
        &mut self,
        now: Time,
        caller: Caller,
        task: TaskId,
        change: &Change,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let live = self.tasks.get(&task).ok_or(Refused::NoSuchTask(task))?;
        if live.record.owner != caller.uid && !caller.admin {
            return Err(Refused::NotYours(task));
        }
        // Whatever else is wanted of a cancelled task would keep it from going.
        if live.record.cancelled && !matches!(change, Change::Cancel | Change::Signal(_)) {
            let (phase, advice) = (live.record.phase, "it was cancelled, and is about to go");
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        self.asked_by = Some(caller.uid);
        let done = match change {
            Change::Cancel => {
                self.cancel(now, task, effects);
                Ok(())
            }
            Change::Hold => self.hold(now, task, effects),
            Change::Release => self.release(task),
            Change::Requeue => self.requeue(now, task, effects),
            Change::Signal(request) => self.signal(task, *request),
            Change::Update(update) => self.update(now, caller, task, update, effects),
        };
        self.asked_by = None;
        done
    }
}
