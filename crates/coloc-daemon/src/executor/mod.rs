//! Where tasks run, as the owner sees it.
//!
//! The owner asks an [`Executor`] and knows neither processes nor control groups, MPS, MIG or run directories. Ends, samples and
//! signs of training come back to it as [`Input`](crate::owner::Input). `local/` runs tasks on this machine; the owner's tests
//! have one that runs them in memory.

pub mod local;
pub mod outcome;
mod progress;
#[cfg(test)]
pub(crate) mod simulated;

pub use outcome::Verdict;
pub use progress::{Count, Counted};

use crate::administration::Hooks;
use crate::hardware::Gpus;
use crate::notices::Notice;
use crate::record::{Exit, Record};
use coloc_api::moment::Moment;
use coloc_api::request::SignalRequest;
use coloc_api::spec::TaskSpec;
use coloc_api::view::{Containment, EnforcementView};
use coloc_gpu::health::{Condition, Xid};
use coloc_model::{Bytes, GpuId, Millis, TaskId, Time};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Runs attempts of tasks. An attempt is named by the record of its task, as it is on the disk.
pub trait Executor {
    /// Starts an attempt. Its end comes as `Input::Ended`, also if it never began. `neighbours` are the attempts that have, or may
    /// have, processes, where GPUs are shared in a way that needs to know them.
    fn launch(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        memory: MemoryLimit,
        neighbours: &[&Record],
    ) -> Result<Launched, LaunchError>;

    /// Asks an attempt to end. One whose program has not started never starts.
    fn stop(&mut self, record: &Record, request: StopRequest);

    /// How long an attempt that was asked to end may take before it is to be killed.
    fn longest_stop(&self, spec: &TaskSpec, request: StopRequest) -> Duration;

    /// Whether the time limit of an attempt can be another while it runs.
    fn can_change_time_limit(&self, record: &Record) -> bool;

    /// Has an attempt stopped at the time limit that its submission has now. Says what was in the way; it is tried again then.
    fn set_time_limit(&mut self, record: &Record, spec: &TaskSpec) -> Result<(), String>;

    /// Kills an attempt, whatever it does.
    fn kill(&mut self, record: &Record);

    /// Whether an attempt has the processes that a signal is for.
    fn can_signal(&self, record: &Record, request: SignalRequest) -> bool;

    /// Sends a signal to an attempt that goes on.
    fn signal(&mut self, record: &Record, request: SignalRequest);

    /// Looks for an attempt of before a restart, and adopts it if it runs. One that has not started by now never will.
    fn find(&mut self, record: &Record, spec: &TaskSpec) -> Found;

    /// Clears away what is left of attempts other than these. What the journal does not know, because it was put back or lost
    /// its end, goes on.
    fn keep_only(&mut self, attempts: &[(TaskId, u32)], is_known: &dyn Fn(TaskId) -> bool);

    /// These tasks have, or may have, processes: what is seen on GPUs is told to be theirs.
    fn attribute_to(&mut self, tasks: &mut dyn Iterator<Item = TaskId>);

    /// What holds an attempt to what it was given, as far as that came true.
    fn enforcement(&self, record: &Record) -> Option<Box<EnforcementView>>;

    /// Where the output of an attempt goes, on the machine where it runs.
    fn output(&self, record: &Record, spec: &TaskSpec) -> PathBuf;

    /// Has the end of an attempt's output looked at. If it speaks of training or tells how far it is, `Input::Sign` comes.
    fn look_for_progress(&mut self, record: &Record, spec: &TaskSpec);

    /// The process that leads a task's session, for people and tools.
    fn leader(&self, task: TaskId) -> Option<u32>;

    /// What keeps the processes of tasks together, and the same for people.
    fn containment(&self) -> (Containment, String);

    /// Runs these programs before and after attempts from now on.
    fn set_hooks(&mut self, hooks: &Hooks);

    /// Why the epilog of an attempt that has ended failed, if it did.
    fn epilog_failure(&self, record: &Record) -> Option<String>;

    /// Attempts are killed this long after they were asked to end.
    fn set_grace(&mut self, grace: Millis);

    /// There are more GPUs, at the end of the fleet.
    fn set_gpus(&mut self, gpus: &Gpus);

    /// The driver says that a GPU cannot be used.
    fn is_gone(&self, gpu: GpuId) -> bool;

    /// How the memory of a GPU is; `None` if the driver does not tell.
    fn condition(&self, gpu: GpuId) -> Option<Condition>;

    /// Critical errors of GPUs since the last question. `Input::GpuError` says that there are some.
    fn gpu_errors(&mut self) -> Vec<GpuError>;

    /// Why critical errors of GPUs are not heard, if so.
    fn deaf_to_gpu_errors(&self) -> Option<String>;

    /// How the server is by which an attempt shares its GPUs.
    fn sharing_server(&self, record: &Record) -> SharingServer;

    /// Gives back what was set up for sharing GPUs and no attempt has wanted for a while.
    fn sweep_sharing(&mut self, now: Time, attempts: &mut dyn Iterator<Item = &Record>);

    /// Tells a hook of a notice, by this program where it is by mail. `Input::Delivered` says what became of it.
    fn deliver(&mut self, notice: &Notice, sendmail: &Path);

    /// Leaves the machine as it was found. Only for when no task runs.
    fn tear_down(&mut self);
}

/// GPU memory that an attempt is held to, or why it is held to none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum MemoryLimit {
    /// So much on each of its GPUs.
    Bytes(Bytes),
    /// Its GPUs are its own.
    Alone,
    /// It ran out of memory, and its limit was lifted.
    Lifted,
    /// Nothing is known of what it needs.
    #[default]
    Unsaid,
}

impl MemoryLimit {
    /// The limit, if there is one.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            MemoryLimit::Bytes(bytes) => Some(bytes),
            MemoryLimit::Alone | MemoryLimit::Lifted | MemoryLimit::Unsaid => None,
        }
    }
}

/// An attempt that was started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launched {
    /// Its enforcement.
    pub enforcement: EnforcementView,
    /// What it has to do without, for its story.
    pub without: Option<String>,
    /// What holds its neighbours from now on, where that has changed.
    pub neighbours: Vec<(TaskId, EnforcementView)>,
}

/// A launch that did not happen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{why}")]
pub struct LaunchError {
    /// What it is a matter of.
    pub blame: Blame,
    /// Why, for people.
    pub why: String,
}

/// What a launch that failed is a matter of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// The machine: whatever else is launched would fail too.
    Machine,
    /// The moment: this launch may work later.
    Moment,
    /// What it needs is being set up: `Input::SharingReady` comes when that is done.
    Setup,
    /// The attempt's number: it was used before.
    Number,
    /// The account that the task belongs to.
    Account,
    /// What the task asks for cannot be had.
    Task,
}

/// How an attempt is asked to end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopRequest {
    /// With the grace of the daemon alone: it is not coming back.
    AtOnce,
    /// After the warning that it wanted to have: it saves its work, and goes on from that.
    AfterWarning,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Debug)]
pub enum End {
    /// In this way; and when, where its shim tells.
    Ended(Verdict, Option<Exit>, Option<Moment>),
    /// Its program never began, and this is what was wrong with the machine.
    NeverBegan(Option<String>),
    /// Its program never began, because the administrator's prolog failed, for this reason.
    PrologFailed(String),
    /// It is gone, and how it ended is not known.
    Vanished,
    /// The machine cannot tell just now, for this reason.
    Unclear(String),
}

/// What was found of an attempt after a restart.
#[derive(Clone, PartialEq, Debug)]
pub enum Found {
    /// It runs.
    Running,
    /// It has ended.
    Ended(End),
    /// It never began, and never will.
    NeverStarted,
    /// The machine cannot tell just now, for this reason.
    Unknown(String),
}

/// How the server is by which an attempt shares its GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SharingServer {
    /// It has none.
    None,
    /// It is there.
    There,
    /// It has ended, or its control daemon has.
    Ended,
}

/// A critical error of a GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuError {
    /// The GPU.
    pub gpu: GpuId,
    /// The error.
    pub xid: Xid,
    /// When it was heard.
    pub at: Instant,
}
