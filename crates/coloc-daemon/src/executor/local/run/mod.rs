//! An attempt to run a task: a directory that daemon and shim share, and outlives both.
//!
//! It belongs to the daemon's user, and so does what is in it: nothing that a task's user can write is read by the daemon or
//! by a privileged shim. The order itself is no file: the shim inherits it.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `script` | the daemon | the copy of the task's script: the user's to read, and never read by us |
//! | `claim` | the shim or the daemon, whichever is first | the processes of the attempt; empty: it never starts |
//! | `stop.json` | the shim | why it is about to end the program |
//! | `limit.json` | the daemon | the time limit, once it is another than that of the order |
//! | `epilog` | the shim or the daemon, whichever is first | that the epilog is being run |
//! | `exit.json` | the shim | how it ended |
//! | `fault` | the shim | what of the machine kept it from its work |
//! | `log` | the shim | output, with one older file `log.1` beside it |
//! | `log.start` | the shim | how many bytes came before those in the log |
//! | `visits` | the shim | a socket on which the daemon passes clients on |

mod files;
mod output;
mod own_dir;
mod readers;
mod visits;

pub use files::{Claim, RunDir, RunError};
pub(crate) use files::{LOG, OLDER_LOG};
pub(crate) use output::{LOG_START, Output, Part, tail};
pub(crate) use own_dir::OwnDir;
pub(crate) use readers::{NotRead, READERS, Reads};
pub(crate) use visits::{Attaching, Visit};

use crate::executor::outcome::HostMemory;
use crate::record::Exit;
use coloc_api::moment::Moment;
use coloc_api::resource_limits::ResourceLimit;
use coloc_api::spec::{TerminalSize, Warning};
use coloc_api::text::RawText;
use coloc_api::view::Process;
use coloc_gpu::process::ProcessTable;
use coloc_model::Millis;
use serde::{Deserialize, Serialize};

/// What a shim is to run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Order {
    /// The program and its arguments.
    pub command: Vec<RawText>,
    /// Where.
    pub directory: RawText,
    /// The whole environment.
    pub environment: Vec<(RawText, RawText)>,
    /// The user to become, where the daemon is root.
    pub user: Option<RunAs>,
    /// Where output goes instead of the log.
    pub output: Option<RawText>,
    /// Where errors go instead of with the output.
    pub errors: Option<RawText>,
    /// The log is turned over when it is this long.
    pub log_limit: u64,
    /// It is stopped after this long, by the world's clock.
    pub time_limit: Option<Millis>,
    /// A signal before that.
    pub warning: Option<Warning>,
    /// From a polite request to end to a kill.
    pub grace: Millis,
    /// The user's files are begun anew.
    pub truncate: bool,
    /// The control group that the program is to be in.
    pub group: Option<GroupPlace>,
    /// The pipe directory of the daemon's MPS control daemon that the program is a client of.
    pub mps: Option<RawText>,
    /// The mask of the program's new files.
    pub umask: Option<u32>,
    /// The program gets a terminal of this size.
    #[serde(default)]
    pub terminal: Option<TerminalSize>,
    /// A client sends what the program reads from standard input.
    #[serde(default)]
    pub input: bool,
    /// What the administrator wants run before and after it.
    #[serde(default)]
    pub hooks: HookOrder,
    /// What the submitter's shell was held to.
    pub limits: std::sync::Arc<[ResourceLimit]>,
}

/// Programs of the administrator's around an attempt, with what they are told of it.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct HookOrder {
    /// Before the program.
    pub prolog: Option<RawText>,
    /// After everything of it is gone.
    pub epilog: Option<RawText>,
    /// Each is killed after this long, by the world's clock.
    pub timeout: Millis,
    /// Their whole environment, but for where programs are.
    pub environment: Vec<(RawText, RawText)>,
}

/// A control group, by its folder and by the name that `/proc` shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GroupPlace {
    /// Its folder.
    pub path: RawText,
    /// Its name.
    pub name: String,
}

/// A user to become.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunAs {
    /// The user.
    pub uid: u32,
    /// Their main group.
    pub gid: u32,
    /// Their name, for their other groups.
    pub name: String,
}

/// The processes of an attempt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Started {
    /// The shim.
    pub shim: Process,
    /// The program, if there is a process that becomes it.
    #[serde(default)]
    pub main: Option<Process>,
    /// When.
    pub at: Moment,
    /// The program is in its control group.
    #[serde(default)]
    pub in_group: bool,
    /// The shim takes SIGUSR1 as the request to warn the program before it ends it.
    #[serde(default)]
    pub can_warn: bool,
    /// The shim takes SIGUSR2 as the news that `limit.json` has another time limit.
    #[serde(default)]
    pub can_change_limit: bool,
    /// Which start of the machine this was: after another one, none of these processes is there.
    #[serde(default)]
    pub boot: String,
}

impl Started {
    /// It was before the machine was started the last time.
    pub fn is_of_an_earlier_boot(&self) -> bool {
        !self.boot.is_empty() && self.boot != boot_id()
    }
}

/// The name of this start of the machine; empty where the kernel does not tell.
pub(crate) fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

/// A process has not ended.
pub(crate) fn is_there(process: Process) -> bool {
    ProcessTable::default().alive_since(process.pid) == Some(process.began)
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ended {
    /// How the program ended.
    pub exit: Exit,
    /// When.
    pub at: Moment,
    /// Why the shim ended it, if it did.
    pub stopped: Option<Stopped>,
    /// What the kernel says of its host memory, where it was in a control group.
    #[serde(default)]
    pub host_memory: Option<HostMemory>,
    /// Why it was never started, if it was not.
    #[serde(default)]
    pub unstarted: Option<String>,
    /// Why the prolog failed, so that the program never began.
    #[serde(default)]
    pub prolog: Option<String>,
    /// Why the epilog failed.
    #[serde(default)]
    pub epilog: Option<String>,
}

/// Why a shim ended its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// It was asked to.
    Asked,
    /// The time was over.
    TimeLimit,
}
