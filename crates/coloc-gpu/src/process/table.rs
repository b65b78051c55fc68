//! What `/proc` says of a process.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Facts about a process. A PID alone does not name one: it is given again after the process ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessFacts {
    /// Its PID.
    pub pid: u32,
    /// Its parent.
    pub parent: u32,
    /// Its session.
    pub session: u32,
    /// When it began, in clock ticks since boot.
    pub started: u64,
    /// Its name.
    pub command: String,
    /// Its cgroup, such as `/coloc.slice/task-7`; empty when it cannot be told.
    pub cgroup: String,
    /// The user it runs as.
    pub uid: u32,
}

/// `/proc`, or a folder that looks like it.
#[derive(Clone, Debug)]
pub struct ProcessTable {
    root: PathBuf,
}

impl Default for ProcessTable {
    fn default() -> Self {
        ProcessTable::at("/proc")
    }
}

impl ProcessTable {
    /// A table in another place.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        ProcessTable { root: root.into() }
    }

    /// What is known of a process; `None` once it has ended.
    pub fn facts(&self, pid: u32) -> Option<ProcessFacts> {
        let folder = self.root.join(pid.to_string());
        let stat = read(&folder.join("stat"))?;
        let Stat { parent, session, started, command, .. } = parse_stat(&stat)?;
        let uid = fs::metadata(&folder).ok()?.uid();
        let uid = read(&folder.join("status")).and_then(|text| parse_uid(&text)).unwrap_or(uid);
        let cgroup = read(&folder.join("cgroup")).and_then(|text| parse_cgroup(&text));
        let cgroup = cgroup.unwrap_or_default();
        Some(ProcessFacts { pid, parent, session, started, command, cgroup, uid })
    }

    /// A variable of the environment that a process was started with; `None` also when it may not be read.
    pub fn variable(&self, pid: u32, name: &str) -> Option<String> {
        let text = read(&self.root.join(pid.to_string()).join("environ"))?;
        let mut variables = text.split('\0').filter_map(|variable| variable.split_once('='));
        variables.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned())
    }

    /// When a process began; cheaper than all its facts.
    pub fn started(&self, pid: u32) -> Option<u64> {
        let stat = read(&self.root.join(pid.to_string()).join("stat"))?;
        Some(parse_stat(&stat)?.started)
    }

    /// When a process began that has not ended. One that was not waited for yet has.
    pub fn alive_since(&self, pid: u32) -> Option<u64> {
        let stat = parse_stat(&read(&self.root.join(pid.to_string()).join("stat"))?)?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(stat.started)
    }
}

fn read(path: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&fs::read(path).ok()?).into_owned())
}

struct Stat {
    state: char,
    parent: u32,
    session: u32,
    started: u64,
    command: String,
}

/// `PID (COMMAND) STATE PPID PGRP SESSION … STARTTIME …`. The command may hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<Stat> {
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let command = text.get(open + 1..close)?.to_owned();
    let fields: Vec<&str> = text.get(close + 1..)?.split_whitespace().collect();
    Some(Stat {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        command,
    })
}

/// The effective user of `/proc/PID/status`.
fn parse_uid(text: &str) -> Option<u32> {
    let line = text.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The cgroup v2 path, or else the deepest v1 path.
fn parse_cgroup(text: &str) -> Option<String> {
    let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
    let unified = text.lines().find(|line| line.starts_with("0::")).and_then(path);
    let deepest = text.lines().filter_map(path).max_by_key(|path| path.matches('/').count());
    unified.filter(|path| path != "/").or(deepest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn this_process_is_found() {
        let facts = ProcessTable::default().facts(std::process::id()).expect("we are running");
        assert_eq!(facts.uid, rustix::process::geteuid().as_raw());
        assert_eq!(Some(facts.started), ProcessTable::default().started(facts.pid));
        assert_eq!(ProcessTable::default().facts(u32::MAX), None);
        assert_eq!(ProcessTable::default().alive_since(facts.pid), Some(facts.started));
        let path = ProcessTable::default().variable(facts.pid, "PATH");
        assert_eq!(path, std::env::var("PATH").ok());
        assert_eq!(ProcessTable::default().variable(facts.pid, "COLOC_NO_SUCH_VARIABLE"), None);
    }

    #[test]
    fn the_dead_are_not_alive_before_they_are_buried() {
        let mut child = std::process::Command::new("true").spawn().expect("true");
        let table = ProcessTable::default();
        let began = std::time::Instant::now();
        while table.alive_since(child.id()).is_some() && began.elapsed().as_secs() < 60 {
            std::thread::yield_now();
        }
        assert_eq!(table.alive_since(child.id()), None);
        assert!(table.started(child.id()).is_some(), "it is still there");
        child.wait().expect("it has ended");
    }

    #[test]
    fn commands_may_hold_anything() {
        let tail = "S 1 5 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99";
        let stat = parse_stat(&format!("12 (a) b (c) {tail}")).expect("a stat line");
        assert_eq!((stat.parent, stat.session, stat.started), (1, 77, 4242));
        assert_eq!(stat.command, "a) b (c");
    }

    #[test]
    fn the_unified_cgroup_wins() {
        let both = "3:memory:/user/x\n1:name=systemd:/a/b/c\n0::/coloc/task-3\n";
        assert_eq!(parse_cgroup(both).as_deref(), Some("/coloc/task-3"));
        let old = "3:memory:/user/x\n1:name=systemd:/a/b/c\n0::/\n";
        assert_eq!(parse_cgroup(old).as_deref(), Some("/a/b/c"));
        assert_eq!(parse_cgroup(""), None);
    }

    proptest! {
        #[test]
        fn hostile_files_are_survived(text in ".{0,80}") {
            let _ = parse_stat(&text);
            let _ = parse_uid(&text);
            let _ = parse_cgroup(&text);
        }
    }
}
