//! An attempt to run a task: a directory that daemon and shim share, and outlives both.
//!
//! | file | written by | says |
//! |---|---|---|
//! | `order.json` | the daemon | what to run |
//! | `script` | the daemon | the task's script, if it has one |
//! | `claim` | whoever is first | the shim: I run it; the daemon: nobody ever will |
//! | `shim.json` | the shim | which processes are there |
//! | `exit.json` | the shim | how it ended |
//! | `log` | the shim | output, with one older file beside it |
//! | `log.start` | the shim | how many bytes came before those in the log |

mod files;
mod output;

pub(crate) use files::tail;
pub use files::{Claim, RunDir, RunError};
pub(crate) use output::of_file;

use crate::cgroup::HostMemory;
use crate::record::{Exit, Moment};
use crate::spec::Warning;
use crate::text::RawText;
use coloc_gpu::process::ProcessTable;
use coloc_model::Millis;
use schemars::JsonSchema;
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
    /// Who to become, where the daemon is root.
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
    /// Those files are begun anew.
    #[serde(default)]
    pub truncate: bool,
    /// The control group that the program is to be in.
    #[serde(default)]
    pub group: Option<GroupPlace>,
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
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Started {
    /// The shim.
    pub shim: Process,
    /// The program.
    pub main: Process,
    /// When.
    pub at: Moment,
    /// The program is in its control group.
    #[serde(default)]
    pub in_group: bool,
    /// The shim knows SIGUSR1 as the wish to warn the program before it ends it.
    #[serde(default)]
    pub can_warn: bool,
}

/// A process. A PID alone names nobody: it is given again after the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub began: u64,
}

impl Process {
    /// It has not ended.
    pub fn is_there(self) -> bool {
        ProcessTable::default().alive_since(self.pid) == Some(self.began)
    }
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
