//! What people can ask for, and whether they may.

use super::{
    Ending, Owner, Page, PageRequest, SignalRequest, Snapshot, StatusView, Submission, TaskDetail,
    TaskView, Teaching, WhyView,
};
use crate::record::{Phase, Uid};
use crate::settings::Settings;
use crate::spec::TaskUpdate;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// What the settings are.
    Settings,
    /// Have other settings.
    Reconfigure(Box<Settings>),
}

/// What can be done with a task.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Make it go away.
    Cancel,
    /// Let it wait.
    Hold,
    /// Let it go on.
    Release,
    /// Stop it and start it again.
    Requeue,
    /// Let it be different.
    Update(TaskUpdate),
    /// Tell its processes something.
    Signal(SignalRequest),
}

/// What is answered.
#[derive(Debug)]
pub enum Answer {
    /// The tasks are on the disk.
    Submitted {
        /// Their ids, in order.
        ids: Vec<TaskId>,
    },
    /// What became of each wish.
    Changed(Vec<(TaskId, Result<(), Refused>)>),
    /// Tasks.
    Tasks(Vec<TaskView>),
    /// A part of a list.
    Page(Page),
    /// A task, if it has not ended.
    Task(Option<Box<TaskDetail>>),
    /// Why a task waits.
    Why(Box<WhyView>),
    /// How everything stands.
    Snapshot(Box<Snapshot>),
    /// The GPUs.
    Gpus(Vec<super::GpuView>),
    /// How the daemon is.
    Status(StatusView),
    /// It is believed, and on the disk.
    Taught,
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
    /// It makes no sense for a task in that phase.
    #[error("task {task} is {phase}: {advice}")]
    WrongPhase {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: Phase,
        /// What to do instead.
        advice: &'static str,
    },
    /// Nobody holds it.
    #[error("task {task} is {phase}, and nobody holds it")]
    NotHeld {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: Phase,
    },
    /// It has no processes.
    #[error("task {task} is {phase}: only a task that runs hears signals")]
    NotRunning {
        /// The task.
        task: TaskId,
        /// Where it stands.
        phase: Phase,
    },
    /// The submission makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The disk is full.
    #[error("the disk with the journal is full: nothing new is taken until there is room")]
    DiskFull,
    /// The disk is full, and it was done all the same.
    #[error(
        "it is done, but the disk with the journal is full: a daemon that is started again before there is room knows nothing of it"
    )]
    NotKept,
    /// To look ahead would take too long.
    #[error("{tasks} tasks have not ended: nobody looks ahead with more than {most}")]
    TooManyToForesee {
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
            Refused::NoSuchTask(_) => "no_such_task",
            Refused::WrongPhase { .. } => "wrong_state",
            Refused::NotHeld { .. } => "not_held",
            Refused::NotRunning { .. } => "not_running",
            Refused::Invalid(_) => "invalid",
            Refused::DiskFull => "disk_full",
            Refused::NotKept => "not_kept",
            Refused::TooManyToForesee { .. } => "too_many",
            Refused::Draining => "draining",
        }
    }
}

impl Owner {
    pub(super) fn obey(
        &mut self,
        now: Time,
        caller: Caller,
        command: Command,
        wishes: &mut Vec<Effect>,
    ) -> Answer {
        match command {
            Command::Submit(submission) => match self.submit(caller, *submission) {
                Ok(ids) => Answer::Submitted { ids },
                Err(refused) => Answer::Refused(refused),
            },
            Command::Change(tasks, change) => {
                let each = tasks.into_iter();
                let done = each.map(|task| (task, self.change(now, caller, task, &change, wishes)));
                Answer::Changed(done.collect())
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
            Command::Teach(teaching) => self.teach(now, *teaching, wishes),
            Command::Gpus => Answer::Gpus(self.gpu_views()),
            Command::Status => Answer::Status(self.status()),
            Command::Drain(_) if !caller.admin => Answer::Refused(Refused::NotAdmin),
            Command::Drain(draining) => {
                self.draining = draining;
                Answer::Done
            }
            Command::Settings => Answer::Settings(Box::new(self.settings.clone())),
            Command::Reconfigure(_) if !caller.admin => Answer::Refused(Refused::NotAdmin),
            Command::Reconfigure(settings) => match self.reconfigure(now, *settings, wishes) {
                Ok(()) => Answer::Done,
                Err(refused) => Answer::Refused(refused),
            },
        }
    }

    fn change(
        &mut self,
        now: Time,
        caller: Caller,
        task: TaskId,
        change: &Change,
        wishes: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let live = self.tasks.get(&task).ok_or(Refused::NoSuchTask(task))?;
        if live.record.owner != caller.uid && !caller.admin {
            return Err(Refused::NotYours(task));
        }
        match change {
            Change::Cancel => self.cancel(now, task, wishes),
            Change::Hold => self.hold(now, task, wishes)?,
            Change::Release => self.release(task)?,
            Change::Requeue => self.requeue(now, task, wishes)?,
            Change::Signal(request) => self.signal(task, *request)?,
            Change::Update(update) => self.update(now, caller, task, update, wishes)?,
        }
        Ok(())
    }

    fn cancel(&mut self, now: Time, task: TaskId, wishes: &mut Vec<Effect>) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.cancelled = true;
        live.ending = Some(Ending::Over(Phase::Cancelled));
        let in_core = live.in_core;
        self.changed(task, Some("somebody wants it gone".to_owned()));
        if in_core {
            self.scheduler.note(now, Event::CancelRequested(task), wishes);
        } else {
            self.over(task, Phase::Cancelled);
        }
    }

    /// A task that waits can be held. It leaves the scheduler, and comes back at the end of the line.
    fn hold(&mut self, now: Time, task: TaskId, wishes: &mut Vec<Effect>) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        let phase = live.record.phase;
        if phase.is_on_gpus() {
            let advice = "only a task that waits can be held; requeue it to start it again later";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        live.record.held = true;
        self.leave_core(now, task, wishes);
        self.gates.knock(task);
        self.changed(task, Some("held".to_owned()));
        Ok(())
    }

    /// Takes a task that waits from the scheduler. It comes back through its gate.
    pub(super) fn leave_core(&mut self, now: Time, task: TaskId, wishes: &mut Vec<Effect>) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        if std::mem::take(&mut live.in_core) {
            live.ending = Some(Ending::Again);
            self.scheduler.note(now, Event::CancelRequested(task), wishes);
        }
    }

    fn release(&mut self, task: TaskId) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        if !std::mem::take(&mut live.record.held) {
            return Err(Refused::NotHeld { task, phase: live.record.phase });
        }
        self.gates.knock(task);
        self.changed(task, Some("released".to_owned()));
        Ok(())
    }

    /// Stops a task; it is submitted again once it is off its GPUs.
    fn requeue(
        &mut self,
        now: Time,
        task: TaskId,
        wishes: &mut Vec<Effect>,
    ) -> Result<(), Refused> {
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        let phase = live.record.phase;
        if !phase.is_on_gpus() {
            return Err(Refused::WrongPhase { task, phase, advice: "it waits already" });
        }
        if live.record.cancelled {
            let advice = "it was cancelled, and is about to go";
            return Err(Refused::WrongPhase { task, phase, advice });
        }
        live.ending = Some(Ending::Again);
        self.changed(task, Some("requeued".to_owned()));
        self.scheduler.note(now, Event::CancelRequested(task), wishes);
        Ok(())
    }
}
