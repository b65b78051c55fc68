//! Starting, finding and stopping the shims of tasks.

mod clients;
mod devices;
mod environment;
mod holds;
mod outputs;

pub use clients::Beside;
use holds::promised;
use outputs::expand;
pub use outputs::{last_words_of, output_of};

use crate::cgroup::Groups;
use crate::record::{Holds, Record, Uid};
use crate::run::{Claim, GroupPlace, Order, Process, RunAs, RunDir, RunError, Started};
use crate::sharing::{PartitionError, Sharing, SharingError};
use crate::spec::{TaskSpec, Warning};
use crate::text::RawText;
use crate::watch::Watcher;
use coloc_gpu::device::Uuid;
use coloc_gpu::process::{ProcessTable, TaskRoots};
use coloc_model::{Bytes, Millis, TaskId};
use rustc_hash::FxHashMap;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A claimed attempt whose processes are not known yet is waited for this long.
const SLOW_SHIM: Duration = Duration::from_secs(5);
/// The log is turned over at this length.
const LOG_LIMIT: u64 = 64 << 20;

/// A task that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Its directory could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The shim could not be started.
    #[error("cannot start a shim: {0}")]
    Shim(#[from] io::Error),
    /// Its MIG instance could not be had.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// MPS is not ready for it.
    #[error(transparent)]
    Mps(SharingError),
    /// Its user is not known here.
    #[error("user {0} is not known on this machine")]
    NoSuchUser(u32),
}

impl LaunchError {
    /// It may work later, and the task is not to blame.
    pub fn may_pass(&self) -> bool {
        match self {
            LaunchError::Mps(_) => true,
            LaunchError::Partition(partition) if partition.may_pass() => true,
            _ => self.is_disk_full(),
        }
    }

    /// There was no room for its files: the task is not to blame.
    pub fn is_disk_full(&self) -> bool {
        let source = match self {
            LaunchError::Run(RunError::Io { source, .. })
            | LaunchError::Partition(PartitionError::Notes { source, .. })
            | LaunchError::Shim(source) => source,
            _ => return false,
        };
        matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// How a task is told to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// It is not coming back.
    AtOnce,
    /// It has the time that it wanted to save its work.
    AfterWarning,
}

impl Farewell {
    /// What its shim understands by that. One of an earlier version would die of a signal that it does not know.
    fn signal(self, shim: &Started) -> Signal {
        match self {
            Farewell::AfterWarning if shim.can_warn => Signal::USR1,
            Farewell::AfterWarning | Farewell::AtOnce => Signal::TERM,
        }
    }
}

/// What was found of an attempt after a restart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// Its shim is there.
    Running,
    /// It has ended.
    Ended,
    /// It never began, and never will.
    NeverStarted,
}

/// How a daemon starts tasks.
pub struct Launcher {
    /// Where attempts have their directories.
    pub runs: PathBuf,
    /// The program that has the verb `shim`.
    pub program: PathBuf,
    /// The GPUs by name, in the order of the fleet.
    pub uuids: Vec<Uuid>,
    /// Put before what a task has in these variables: libraries and tools of emulated GPUs.
    pub prefixes: Vec<(&'static str, OsString)>,
    /// Given to every task as it is.
    pub variables: Vec<(String, OsString)>,
    /// The socket, for tasks that talk to the daemon.
    pub socket: PathBuf,
    /// The world's seconds are this many of the tasks'.
    pub time_scale: f64,
    /// From a polite request to end to a kill.
    pub grace: Millis,
    /// Sets up what tasks that share a GPU need.
    pub sharing: Sharing,
    /// Where tasks have control groups, or why they have none.
    pub groups: Result<Groups, String>,
    /// The addresses of the GPUs on their bus, in the order of the fleet.
    pub addresses: Vec<String>,
    /// Their memory.
    pub capacities: Vec<Bytes>,
    /// Tells when a shim is gone.
    pub watcher: Watcher,
    /// What the processes of tasks that were launched or found can be known by.
    pub known: FxHashMap<TaskId, TaskRoots>,
}

impl Launcher {
    /// The directory of a task's last attempt.
    pub fn run_dir(&self, record: &Record) -> RunDir {
        RunDir::of(&self.runs, record.id, record.attempt)
    }

    /// Starts the shim of an attempt that is on the disk. Says what holds the task, and what it has to do without.
    pub fn launch(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        beside: &Beside,
    ) -> Result<(Holds, Option<String>), LaunchError> {
        let dir = self.run_dir(record);
        let devices = self.devices(record, &beside.instances)?;
        let memory = promised(record, spec, beside.booked);
        let (client, without) =
            self.admit_to_mps(record, spec, memory, &devices, &beside.clients)?;
        let mut limits = self.framework_cap(record, spec, memory);
        limits.extend(client.iter().flat_map(|client| client.variables.clone()));
        let environment = self.environment(record, spec, &devices, limits);
        let group = self.make_group(record, spec);
        let holds = self.holds(record, spec, &group, memory, client.as_ref());
        let group = group.ok().map(|(group, _)| GroupPlace {
            path: group.path().as_os_str().to_owned().into(),
            name: group.name().to_owned(),
        });
        let order = Order { group, ..self.order(record, spec, environment)? };
        dir.create(&order, spec.script.as_ref())?;
        let shim = Command::new(&self.program)
            .arg("shim")
            .arg(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .current_dir("/")
            .spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&shim), PidfdFlags::empty());
        let pidfd = pidfd.map_err(io::Error::from)?;
        self.watcher.watch(pidfd, record.id, record.attempt)?;
        self.know(record, shim.id());
        Ok((holds, without))
    }

    fn order(
        &self,
        record: &Record,
        spec: &TaskSpec,
        environment: Vec<(RawText, RawText)>,
    ) -> Result<Order, LaunchError> {
        let world = |span: Millis| Millis((span.0 as f64 / self.time_scale) as u64);
        let pattern = |path: &RawText| expand(path, record, &spec.name);
        Ok(Order {
            command: spec.runs(&self.run_dir(record).script()),
            directory: spec.directory.clone(),
            environment,
            user: run_as(record.owner)?,
            output: spec.output.as_ref().map(pattern),
            errors: spec.errors.as_ref().map(pattern),
            log_limit: LOG_LIMIT,
            time_limit: spec.time_limit.map(world),
            warning: spec.warning.map(|w| Warning { before: world(w.before), ..w }),
            grace: self.grace,
            truncate: spec.truncate && record.attempt == 1,
            group: None,
        })
    }

    /// Asks a task to end: its shim sends SIGTERM, after the signal that the task wants to hear where there is time for
    /// one, and then kills.
    pub fn stop(&self, record: &Record, farewell: Farewell) {
        match self.run_dir(record).started() {
            Ok(Some(started)) => {
                self.watcher.signal(record.id, record.attempt, farewell.signal(&started));
            }
            // The shim is not there yet. It will look for its claim and find it, or find itself asked.
            _ => self.stop_unborn(record, farewell),
        }
    }

    /// Stops an attempt whose shim has not said yet that it is there.
    fn stop_unborn(&self, record: &Record, farewell: Farewell) {
        let (dir, watcher, began) = (self.run_dir(record), self.watcher.clone(), Instant::now());
        let (task, attempt) = (record.id, record.attempt);
        let stop = move || {
            while began.elapsed() < SLOW_SHIM {
                if let Ok(Some(started)) = dir.started() {
                    return watcher.signal(task, attempt, farewell.signal(&started));
                }
                if matches!(dir.ended(), Ok(Some(_))) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let _ = std::thread::Builder::new().name("stop".to_owned()).spawn(stop);
    }

    /// Looks for an attempt of before a restart, and watches it if it is there.
    pub fn find(&mut self, record: &Record) -> Found {
        let dir = self.run_dir(record);
        match dir.claim() {
            Ok(Claim::Ours) => return Found::NeverStarted,
            Ok(Claim::Taken) => {}
            // Without a directory nobody can ever have begun.
            Err(_) if !dir.path().exists() => return Found::NeverStarted,
            Err(_) => return Found::Ended,
        }
        let patience = Instant::now() + SLOW_SHIM;
        loop {
            if matches!(dir.ended(), Ok(Some(_))) {
                return Found::Ended;
            }
            if let Ok(Some(started)) = dir.started() {
                let pidfd = alive(started.shim, record.owner);
                if pidfd.is_some() {
                    self.know(record, started.shim.pid);
                }
                let watch = |pidfd| self.watcher.watch(pidfd, record.id, record.attempt).is_ok();
                return if pidfd.is_some_and(watch) { Found::Running } else { Found::Ended };
            }
            // Claimed a moment ago, or by a shim that died right away.
            if Instant::now() > patience {
                return Found::Ended;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A shim leads its task's session.
    fn know(&mut self, record: &Record, shim: u32) {
        let (task, leader) = (record.id, shim);
        let leader_started = ProcessTable::default().started(shim).unwrap_or(0);
        let group = self.groups.as_ref().ok().map(|groups| groups.group(task, record.attempt));
        let cgroup = group.filter(|group| group.path().exists());
        let cgroup = cgroup.map(|group| group.name().to_owned());
        self.known.insert(task, TaskRoots { task, cgroup, leader, leader_started });
    }
}

/// A file descriptor for a process that is surely the one that was meant. Its user could have written another's number
/// down, so it must be theirs.
fn alive(process: Process, owner: Uid) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(process.pid as i32)?, PidfdFlags::empty()).ok()?;
    let same = ProcessTable::default().started(process.pid) == Some(process.began);
    (same && user_of(process.pid) == Some(owner)).then_some(pidfd)
}

/// Who a process runs as. The owner of its directory in /proc is root for one that gave up root.
fn user_of(pid: u32) -> Option<Uid> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().next()?.parse().ok().map(Uid)
}

/// Whom a task runs as. A daemon that is not root can only be itself, and takes only its own user's tasks.
fn run_as(owner: Uid) -> Result<Option<RunAs>, LaunchError> {
    if !rustix::process::geteuid().is_root() || owner.0 == 0 {
        return Ok(None);
    }
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::from_raw(owner.0));
    let user = user.map_err(io::Error::from)?.ok_or(LaunchError::NoSuchUser(owner.0))?;
    Ok(Some(RunAs { uid: user.uid.as_raw(), gid: user.gid.as_raw(), name: user.name }))
}

/// Where a daemon's attempts are.
pub fn runs_below(state: &Path) -> PathBuf {
    state.join("runs")
}
