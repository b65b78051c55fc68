//! What people can ask for, and whether they may.

pub(in crate::owner) mod batch_budget;
pub(in crate::owner) mod bulk;
mod cancel;
pub(in crate::owner) mod form;
pub(in crate::owner) mod gpus;
mod hold;
mod host;
pub(in crate::owner) mod invalid;
pub(in crate::owner) mod list;
pub(in crate::owner) mod metrics;
mod pools;
pub(in crate::owner) mod reconfigure;
mod requeue;
pub(in crate::owner) mod rules;
pub(in crate::owner) mod signal;
pub(in crate::owner) mod snapshot;
pub(in crate::owner) mod status;
pub(in crate::owner) mod submit;
pub(in crate::owner) mod teach;
mod time_limit;
pub(in crate::owner) mod update;
pub(in crate::owner) mod view;
pub(in crate::owner) mod visit;

pub use invalid::Invalid;
pub use visit::Visit;

use crate::journal::{Entry, Trouble};
use crate::owner::Shown;
use crate::owner::commands::metrics::Metrics;
use crate::owner::reply::{PendingAnswer, Reply};
use crate::owner::{Owner, Page, PageRequest, Snapshot};
use crate::record::{Record, Uid};
use crate::report::LiveUsage;
use crate::settings::Settings;
use coloc_api::answer::code;
use coloc_api::request::{Change, GpuReservation, GpuService, Submission, Teaching};
use coloc_api::view::{GpuView, HostView, StatusView, TaskView, WhyView};
use coloc_core::Effect;
use coloc_model::{Millis, TaskId, TaskState, Time};

/// The user who asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The user, as the kernel says.
    pub uid: Uid,
    /// May touch every user's tasks.
    pub admin: bool,
}

impl Caller {
    /// The daemon itself.
    pub(crate) const DAEMON: Caller = Caller { uid: Uid(0), admin: true };
}

/// What is asked for, and where the answer goes.
#[derive(Debug)]
pub enum Command {
    /// New tasks.
    Submit(Box<Submission>, Reply<Submitted>),
    /// Something is to be done with some tasks.
    Change(Vec<TaskId>, Change, Reply<Vec<Changed>>),
    /// Tasks that have not ended.
    List(Reply<Vec<TaskView>>),
    /// Some of them, written out.
    Page(PageRequest, Reply<Page>),
    /// One of them, if it has not ended.
    Show(TaskId, Reply<Option<Box<Shown>>>),
    /// A client wants to come to it; the answer is the attempt that runs.
    Visit(TaskId, Visit, Reply<u32>),
    /// Why it waits.
    Why(TaskId, Reply<Box<WhyView>>),
    /// Everything that a forecast needs.
    Snapshot(Reply<Box<Snapshot>>),
    /// Believe what was measured.
    Teach(Box<Teaching>, Reply<()>),
    /// The last look of the monitor.
    Gpus(Reply<(Vec<GpuView>, HostView)>),
    /// How the daemon is.
    Status(Reply<StatusView>),
    /// Tasks that have ended, while the journal cannot be written.
    Unwritten(Reply<Vec<Record>>),
    /// What tasks used that have not ended.
    Usage(Reply<Box<LiveUsage>>),
    /// Everything that is counted and measured.
    Metrics(Reply<Box<Metrics>>),
    /// Start nothing new (true), or go on.
    Drain(bool, Reply<()>),
    /// Have GPUs take nothing new, or tasks again.
    ServeGpus(GpuService, Reply<GpusServed>),
    /// Have GPUs take only the tasks of some users, or of all again.
    ReserveGpus(GpuReservation, Reply<GpusServed>),
    /// What the settings are.
    Settings(Reply<Box<Settings>>),
    /// Have other settings.
    Reconfigure(Box<Settings>, Reply<()>),
}

/// Tasks that are on the disk.
#[derive(Debug)]
pub struct Submitted {
    /// Their ids, in order.
    pub ids: Vec<TaskId>,
    /// What they are promised of their GPUs' memory, for people.
    pub memory_rule: Option<String>,
}

/// What became of a change of one task.
pub type Changed = (TaskId, Result<(), Refused>);

/// GPUs that take nothing new, or tasks again.
#[derive(Debug)]
pub struct GpusServed {
    /// How they are now.
    pub gpus: Vec<GpuView>,
    /// What is to be known of them.
    pub notes: Vec<String>,
}

/// Why not.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refused {
    /// It is another user's.
    #[error("task {0} belongs to another user")]
    NotYours(TaskId),
    /// Only the user that runs the daemon, or root, may.
    #[error("only an administrator may do that")]
    NotAdmin,
    /// To have another user's token is to be that user.
    #[error(
        "only root and the daemon's user make tokens for others: have {} do it, or let each user make their own",
        crate::users::name(crate::record::Uid(rustix::process::geteuid().as_raw()))
    )]
    TokenForOthers,
    /// Only they may go before all other users.
    #[error("only an administrator may give a priority above 0")]
    PriorityAboveZero,
    /// It never was, or is forgotten.
    #[error("there is no task {0}")]
    NoSuchTask(TaskId),
    /// It has ended.
    #[error("task {task} has ended: it is {phase}")]
    Ended {
        /// The task.
        task: TaskId,
        /// How it ended.
        phase: TaskState,
    },
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
    /// It is not held.
    #[error("task {task} is {phase}, and not held")]
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
    /// It has no terminal.
    #[error(
        "task {0} has no terminal: `coloc logs -f {0}` shows its output, `coloc exec --pty {0} -- bash` opens a shell beside it"
    )]
    NoTerminal(TaskId),
    /// It was submitted without input.
    #[error("task {0} was submitted without standard input")]
    NoInput(TaskId),
    /// The submission makes no sense.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The user has as much as one may have.
    #[error("{0}")]
    OverLimit(String),
    /// No task may run for so long.
    #[error(
        "no task may run longer than {largest}: ask for a time limit of {largest} or less (--time)"
    )]
    LongTimeLimit {
        /// The most.
        largest: Millis,
    },
    /// A pool that is for other users.
    #[error("pool {0} is not for you: `coloc gpus` shows the pools, and --pool names another")]
    PoolDenied(String),
    /// Others count on when a running task ends.
    #[error("task {0} runs: its owner may make its time limit shorter, an administrator longer")]
    LongerWhileRunning(TaskId),
    /// The journal cannot be written.
    #[error("{0}")]
    Journal(Trouble),
    /// The journal cannot be written: what was wanted is not on the disk yet.
    #[error("it is not written down yet, and running tasks hear of it only when it is: {0}")]
    NotKept(Trouble),
    /// A forecast would take too long.
    #[error("expected times are worked out with at most {most} tasks, and {tasks} have not ended")]
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
            Refused::NotAdmin
            | Refused::TokenForOthers
            | Refused::PriorityAboveZero
            | Refused::LongerWhileRunning(_) => "not_admin",
            Refused::NoSuchTask(_) | Refused::Ended { .. } => code::NO_SUCH_TASK,
            Refused::NoSuchGpu(_) => "no_such_gpu",
            Refused::WrongPhase { .. } => "wrong_state",
            Refused::NotHeld { .. } => code::NOT_HELD,
            Refused::NotRunning { .. } => code::NOT_RUNNING,
            Refused::NoTerminal(_) => "no_terminal",
            Refused::NoInput(_) => "no_input",
            Refused::Invalid(_) => "invalid",
            Refused::OverLimit(_) => "over_limit",
            Refused::LongTimeLimit { .. } => "time_limit",
            Refused::PoolDenied(_) => "pool_denied",
            Refused::Journal(trouble) => trouble.code(),
            Refused::NotKept(_) => "not_kept",
            Refused::TooManyToForecast { .. } => "too_many",
            Refused::Draining => "draining",
        }
    }
}

/// Says what became of changes, if that is on the disk: in the journal, or for running tasks that are told to go (`tells`) in the
/// intent file.
pub(in crate::owner) fn changed(
    reply: Reply<Vec<Changed>>,
    each: Vec<Changed>,
    tells: bool,
) -> PendingAnswer {
    reply.unless(Ok(each), move |each, flushed| {
        let is_kept = |task: TaskId| tells && (flushed.is_noted)(task);
        let is_lost = |(task, done): &Changed| done.is_ok() && !is_kept(*task);
        flushed.unwritten.filter(|_| each.iter().any(is_lost)).map(Refused::NotKept)
    })
}

impl Owner {
    /// Does what is asked for. The answer is given at the end of the batch; `None` where it comes with a later one.
    pub(in crate::owner) fn obey(
        &mut self,
        now: Time,
        caller: Caller,
        command: Command,
        effects: &mut Vec<Effect>,
    ) -> Option<PendingAnswer> {
        let only_admin = |allowed: Result<(), Refused>| match caller.admin {
            true => allowed,
            false => Err(Refused::NotAdmin),
        };
        Some(match command {
            Command::Submit(submission, reply) => return self.submit(caller, *submission, reply),
            Command::Change(tasks, change, reply) if tasks.len() > bulk::CHANGES => {
                self.begin_changes(caller, tasks, change, reply);
                return None;
            }
            Command::Change(tasks, change, reply) => {
                let each = tasks.into_iter();
                let each =
                    each.map(|task| (task, self.change(now, caller, task, &change, effects)));
                changed(reply, each.collect(), change.tells())
            }
            Command::List(reply) => reply.anyway(Ok(self.fresh_list(now))),
            Command::Page(request, reply) => reply.anyway(Ok(self.fresh_page(now, &request))),
            Command::Show(task, reply) => reply.anyway(Ok(self.shown(now, task).map(Box::new))),
            Command::Visit(task, visit, reply) => {
                reply.once_written(self.visit(caller, task, &visit), Refused::NotKept)
            }
            Command::Why(task, reply) => {
                let why = self.why(now, task).ok_or(Refused::NoSuchTask(task));
                reply.anyway(why.map(Box::new))
            }
            Command::Snapshot(reply) => reply.anyway(self.snapshot(now).map(Box::new)),
            Command::Teach(teaching, reply) => {
                let taught = only_admin(Ok(())).and_then(|()| self.teach(now, *teaching, effects));
                reply.once_written(taught, Refused::Journal)
            }
            Command::Gpus(reply) => reply.anyway(Ok((self.gpu_views(now), self.host_view()))),
            Command::Status(reply) => reply.anyway(Ok(self.status(caller))),
            Command::Unwritten(reply) => reply.anyway(Ok(self.unwritten_ends())),
            Command::Usage(reply) => reply.anyway(Ok(Box::new(self.live_usage()))),
            Command::Metrics(reply) => reply.anyway(Ok(Box::new(self.metrics()))),
            Command::Drain(draining, reply) => {
                let drained = only_admin(Ok(())).map(|()| self.drain(caller, draining));
                reply.once_written(drained, Refused::NotKept)
            }
            Command::ServeGpus(request, reply) => {
                let served = self.serve_gpus(now, caller, &request, effects);
                reply.once_written(served, Refused::NotKept)
            }
            Command::ReserveGpus(request, reply) => {
                let served = self.reserve_gpus(now, caller, &request, effects);
                reply.once_written(served, Refused::NotKept)
            }
            Command::Settings(reply) => reply.anyway(Ok(Box::new(self.settings.clone()))),
            Command::Reconfigure(settings, reply) => {
                let done =
                    only_admin(Ok(())).and_then(|()| self.reconfigure(now, *settings, effects));
                reply.anyway(done)
            }
        })
    }

    /// Starts nothing new, or goes on.
    fn drain(&mut self, caller: Caller, draining: bool) {
        let by = crate::users::name(caller.uid);
        match draining {
            true => tracing::info!("draining: {by} wants it so"),
            false => tracing::info!("tasks are taken and started again: {by} wants it so"),
        }
        self.draining = draining;
        self.pending.push(Entry::Draining(draining));
    }

    /// Why nothing can be done with a task that is not live.
    pub(in crate::owner) fn is_not_there(&self, task: TaskId) -> Refused {
        match self.journal.task(task) {
            Ok(Some(record)) => Refused::Ended { task, phase: record.phase },
            Ok(None) | Err(_) => Refused::NoSuchTask(task),
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
        let live = self.tasks.get(&task).ok_or_else(|| self.is_not_there(task))?;
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
