//! Everything that a shim has started, directly or not.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::{Duration, Instant};

/// A tree that forks faster than it is killed is given up after this many rounds.
const MOST_ROUNDS: usize = 100;
const PAUSE: Duration = Duration::from_millis(2);
/// Children are killed so often before everything is looked at again.
const QUICK_ROUNDS: usize = 100;
/// A process that the kernel does not let go, or that forks faster than this machine kills, is given up after this long.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Kills all descendants. Orphans are ours too: a shim adopts them. Processes that were `killed` as a group a moment
/// ago may still be there.
pub(super) fn kill_all(killed: bool) {
    if killed {
        std::thread::sleep(PAUSE);
    }
    for _ in 0..MOST_ROUNDS {
        let left = descendants(std::process::id());
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        // Dead processes are left to the process that adopts them: the shim ends soon.
        std::thread::sleep(PAUSE);
    }
}

/// Kills and buries until the kernel says that no child is left. A shim adopts every orphan among its descendants, so as long as
/// one of them lives the shim has a child: a process that forks and ends faster than all of /proc can be read is
/// found among these. The program itself must have been waited for.
pub(super) fn end_all() {
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        for _ in 0..QUICK_ROUNDS {
            if !has_children() {
                return;
            }
            for pid in children() {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        for pid in descendants(std::process::id()) {
            let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Buries the dead; says whether there is a child that lives.
fn has_children() -> bool {
    use rustix::process::{WaitOptions, wait};
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The children of this process, without a look at the others.
fn children() -> Vec<i32> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

/// Living descendants, by what `/proc` says of parents.
pub(crate) fn descendants(ancestor: u32) -> Vec<u32> {
    let children = children_of_all();
    let mut found = Vec::new();
    let mut seen = HashSet::from([ancestor]);
    let mut next = vec![ancestor];
    while let Some(parent) = next.pop() {
        for &child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// The living children of every process, by what `/proc` says of parents.
pub(super) fn children_of_all() -> HashMap<u32, Vec<u32>> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in pids {
        if let Some(parent) = living_parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent of a process that is not a zombie.
fn living_parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}
