//! Finding the shims of attempts, after a restart and when one was started.

use super::LocalExecutor;
use super::run::{Claim, RunError};
use crate::record::{Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_api::view::Process;
use coloc_gpu::process::{ProcessTable, TaskRoots};
use coloc_model::TaskState;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;

impl LocalExecutor {
    /// A shim that is there is watched. It waits for nothing: an attempt that has not started by now never will.
    pub(super) fn find_shim(&mut self, record: &Record, spec: &TaskSpec) -> Result<Shim, RunError> {
        match self.find_claimed(record, spec)? {
            // It was known to run: its files were removed, and its processes may be there.
            Shim::NeverStarted
                if record.phase != TaskState::Launching
                    && self.run_dir(record).has_lost_its_claim() =>
            {
                self.kill_unclaimed(record);
                Ok(Shim::Gone)
            }
            found => Ok(found),
        }
    }

    fn find_claimed(&mut self, record: &Record, spec: &TaskSpec) -> Result<Shim, RunError> {
        let dir = self.run_dir(record);
        let started = match dir.claimed() {
            Ok(Some(Claim::Started(started))) => started,
            Ok(Some(Claim::Revoked)) => return Ok(Shim::NeverStarted),
            // Without a directory nothing can ever have begun.
            Err(_) if !dir.path().exists() => return Ok(Shim::NeverStarted),
            Err(error) => return Err(error),
            Ok(None) if dir.revoke()? => return Ok(Shim::NeverStarted),
            // Its shim was quicker by a moment.
            Ok(None) => match dir.started()? {
                Some(started) => started,
                None => return Ok(Shim::NeverStarted),
            },
        };
        if started.is_of_an_earlier_boot() {
            return Ok(Shim::Gone);
        }
        let Some(pidfd) = alive(started.shim, record.owner) else { return Ok(Shim::Gone) };
        let watched = self.watch(record, spec, started.shim.pid, pidfd);
        watched.map_err(|source| RunError::Io { file: dir.path(), source })?;
        Ok(Shim::There)
    }

    /// Watches the shim of an attempt. It leads its task's session.
    pub(super) fn watch(
        &mut self,
        record: &Record,
        spec: &TaskSpec,
        shim: u32,
        pidfd: OwnedFd,
    ) -> io::Result<()> {
        let (task, leader) = (record.id, shim);
        let leader_started = ProcessTable::default().started(shim).unwrap_or(0);
        let cgroup = self.group(record).filter(|group| group.path().exists());
        let cgroup = cgroup.map(|group| group.name().to_owned());
        let roots = TaskRoots { task, cgroup, leader, leader_started };
        let remains = self.remains(record, spec, Some(roots.clone()));
        self.watcher.watch(pidfd, task, record.attempt, Box::new(|| remains.end()))?;
        self.known.insert(task, roots);
        Ok(())
    }
}

/// What is there of the shim of an attempt.
pub(super) enum Shim {
    There,
    Gone,
    /// There was none, and there will be none.
    NeverStarted,
}

/// A file descriptor for a process that is surely the one that was meant: a shim runs as the daemon does, and one of an earlier
/// version as its task's owner.
fn alive(process: Process, owner: Uid) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(process.pid as i32)?, PidfdFlags::empty()).ok()?;
    let same = ProcessTable::default().alive_since(process.pid) == Some(process.began);
    let user = user_of(process.pid)?;
    let own = user.0 == rustix::process::geteuid().as_raw();
    (same && (own || user == owner)).then_some(pidfd)
}

/// The user a process runs as. The owner of its directory in /proc is root for one that gave up root.
fn user_of(pid: u32) -> Option<Uid> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    users.split_whitespace().next()?.parse().ok().map(Uid)
}
