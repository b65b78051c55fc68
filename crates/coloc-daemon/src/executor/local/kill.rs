//! Killing what does not go by itself: from outside, whatever its shim does.

use super::LocalExecutor;
use super::shim::{descendants, end_clients};
use crate::record::{Record, Uid};
use coloc_gpu::process::{ProcessTable, TaskRoots};
use coloc_model::TaskId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::path::PathBuf;

/// A tree that forks faster than it is killed is given up after this many rounds.
const MOST_ROUNDS: usize = 50;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(5);

/// The variable that the processes of an attempt are known by.
pub(super) const ATTEMPT: &str = "COLOC_ATTEMPT";

/// Its value: attempts of other daemons have other sockets.
pub(super) fn attempt_name(task: TaskId, attempt: u32) -> String {
    format!("{task}.{attempt}")
}

/// What the processes of an attempt are known by.
pub(super) struct Marks {
    roots: TaskRoots,
    owner: Uid,
    attempt: String,
    socket: String,
}

impl LocalExecutor {
    /// Kills an attempt with its shim, on a thread of its own: control group, session, and everything that descends from
    /// the shim or carries the attempt's name. Clients of MPS are let go by their server first.
    pub(super) fn kill_from_outside(&self, record: &Record) {
        let (watcher, task, attempt) = (self.watcher.clone(), record.id, record.attempt);
        let marks = self.known.get(&task).map(|roots| self.marks(record, roots.clone()));
        let group = self.group(record);
        let mps = self.mps_pipe(record);
        let kill = move || {
            let shim = marks.as_ref().map(|marks| marks.roots.leader);
            // Before its shim dies: afterwards nothing descends from it.
            let tree = shim.map(descendants).unwrap_or_default();
            if let Some(pipe) = mps {
                let _ = end_clients(pipe, &tree);
            }
            if let Some(group) = group.filter(|group| group.path().exists()) {
                group.kill_all();
            }
            watcher.signal(task, attempt, Signal::KILL);
            for pid in tree {
                kill_process(pid, |_| true);
            }
            if let Some(marks) = marks {
                marks.sweep();
            }
        };
        // Without a thread it is tried again at the next deadline.
        let _ = std::thread::Builder::new().name("kill".to_owned()).spawn(kill);
    }

    /// Kills the shim of an attempt whose files are gone, with all that descends from it. It is known by its command line, which
    /// names the directory, and by its user.
    pub(super) fn kill_unclaimed(&self, record: &Record) {
        let (dir, own) = (self.run_dir(record).path(), rustix::process::geteuid().as_raw());
        let is_shim = |pid: u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = words.split(|&byte| byte == 0).collect();
            matches!(words[..], [_, b"shim", place, ..] if place == dir.as_os_str().as_encoded_bytes())
                && ProcessTable::default().facts(pid).is_some_and(|facts| facts.uid == own)
        };
        for shim in processes().filter(|&pid| is_shim(pid)) {
            let tree = descendants(shim);
            kill_process(shim, is_shim);
            tree.into_iter().for_each(|pid| kill_process(pid, |_| true));
        }
    }

    /// What the processes of an attempt with these roots are known by.
    pub(super) fn marks(&self, record: &Record, roots: TaskRoots) -> Marks {
        Marks {
            roots,
            owner: record.owner,
            attempt: attempt_name(record.id, record.attempt),
            socket: self.socket.display().to_string(),
        }
    }

    /// The pipe directory of the MPS control daemon that an attempt is a client of.
    fn mps_pipe(&self, record: &Record) -> Option<PathBuf> {
        record.enforcement.as_ref()?.mps?;
        let gpus = record.placement.iter().flat_map(coloc_model::Placement::gpus);
        let gpus: Vec<_> = gpus.filter_map(|gpu| self.uuids.get(gpu.index()).cloned()).collect();
        self.sharing.mps.pipe(record.owner, &gpus)
    }
}

impl Marks {
    /// Kills what an attempt left whose shim was killed: nothing else does. In a control group nothing is left.
    pub(super) fn sweep_beside(self) {
        let _ = std::thread::Builder::new().name("sweep".to_owned()).spawn(move || self.sweep());
    }

    /// Kills until none is left.
    fn sweep(&self) {
        for _ in 0..MOST_ROUNDS {
            let left: Vec<u32> = processes().filter(|&pid| self.is_one(pid)).collect();
            if left.is_empty() {
                return;
            }
            for pid in left {
                kill_process(pid, |pid| self.is_one(pid));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a process is of the attempt: in its session, or with its name in the environment.
    fn is_one(&self, pid: u32) -> bool {
        let table = ProcessTable::default();
        let Some(facts) = table.facts(pid).filter(|facts| facts.uid == self.owner.0) else {
            return false;
        };
        if facts.started < self.roots.leader_started || table.alive_since(pid).is_none() {
            return false;
        }
        let has =
            |name: &str, value: &str| table.variable(pid, name).is_some_and(|found| found == value);
        facts.session == self.roots.leader
            || (has(ATTEMPT, &self.attempt) && has("COLOC_SOCKET", &self.socket))
    }
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Kills a process that is still the one that was meant.
fn kill_process(pid: u32, is_meant: impl Fn(u32) -> bool) {
    let held = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    if let Some(held) = held.filter(|_| is_meant(pid)) {
        let _ = pidfd_send_signal(&held, Signal::KILL);
    }
}
