//! Everything that a shim has started, directly or not.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::{HashMap, HashSet};
use std::fs;

/// A tree that forks faster than it is killed is given up after this many rounds.
const MOST_ROUNDS: usize = 100;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// Kills all descendants. Orphans are ours too: a shim adopts them. Those who were `killed` as a group a moment ago may
/// still be there.
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
        // The dead are left to whoever adopts them: the shim ends soon.
        std::thread::sleep(PAUSE);
    }
}

/// Living descendants, by what `/proc` says of parents.
pub(super) fn descendants(ancestor: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in pids {
        if let Some(parent) = living_parent(pid) {
            children.entry(parent).or_default().push(pid);
        }
    }
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

/// The parent of a process that is not a zombie.
fn living_parent(pid: u32) -> Option<u32> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let mut fields = stat.get(stat.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    (state != "Z" && state != "X").then_some(parent)
}
