//! From a process on a GPU to the task that it belongs to.
//!
//! A task's processes are in its cgroup. Where there are no cgroups they are in its session, unless they left it,
//! and then they have one of its processes among their ancestors, unless that one has ended. The evidence is taken
//! in that order, and what none of it covers is foreign.

use super::table::{ProcessFacts, ProcessTable};
use super::users::Users;
use coloc_model::{Millis, TaskId, Time};
use serde::Serialize;
use std::collections::HashMap;

/// Ancestors that are looked at: chains are short, and a table that lies must not hold us.
const MOST_ANCESTORS: usize = 64;
/// Processes that are remembered; forgotten ones are looked up again.
const MOST_REMEMBERED: usize = 4096;

/// How a task was launched: what its processes can be known by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskRoots {
    /// The task.
    pub task: TaskId,
    /// Its cgroup, such as `/coloc/task-7`; its processes are in it or below.
    pub cgroup: Option<String>,
    /// The process that was launched, which leads the task's session.
    pub leader: u32,
    /// When the leader began, in clock ticks since boot.
    pub leader_started: u64,
}

/// What told that a process is a task's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Its cgroup.
    Cgroup,
    /// Its session.
    Session,
    /// An ancestor.
    Ancestry,
}

/// What a process belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// A task of ours.
    Task {
        /// The task.
        task: TaskId,
        /// The evidence.
        by: By,
    },
    /// A process that coloc did not start.
    Foreign,
}

/// A process and what it belongs to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Attributed {
    /// Its PID.
    pub pid: u32,
    /// The user's name; `None` once it has ended.
    pub user: Option<String>,
    /// Its name; `None` once it has ended.
    pub command: Option<String>,
    /// What it belongs to.
    pub owner: Owner,
}

/// Attributes processes, and remembers what it found while the process lives.
#[derive(Debug)]
pub struct Attribution {
    table: ProcessTable,
    users: Users,
    tasks: Vec<TaskRoots>,
    remembered: HashMap<u32, Remembered>,
}

#[derive(Debug)]
struct Remembered {
    started: u64,
    checked: Time,
    attributed: Attributed,
}

/// A PID is not given again within this time, so that a process need not be looked at more often.
const TRUST: Millis = Millis::from_secs(1);

impl Attribution {
    /// Looks processes up in a table.
    pub fn new(table: ProcessTable, users: Users) -> Self {
        Attribution { table, users, tasks: Vec::new(), remembered: HashMap::new() }
    }

    /// The tasks that are running now.
    pub fn set_tasks(&mut self, tasks: Vec<TaskRoots>) {
        if tasks != self.tasks {
            self.tasks = tasks;
            self.remembered.clear();
        }
    }

    /// What a process belongs to.
    pub fn of(&mut self, pid: u32, now: Time) -> Attributed {
        if let Some(known) = self.remembered.get_mut(&pid) {
            if now.since(known.checked) < TRUST {
                return known.attributed.clone();
            }
            // Only the same beginning is the same process.
            if self.table.started(pid) == Some(known.started) {
                known.checked = now;
                return known.attributed.clone();
            }
        }
        let Some(facts) = self.table.facts(pid) else {
            self.remembered.remove(&pid);
            return Attributed { pid, user: None, command: None, owner: Owner::Foreign };
        };
        let attributed = Attributed {
            pid,
            user: Some(self.users.name(facts.uid)),
            command: Some(facts.command.clone()),
            owner: self.owner(&facts),
        };
        if self.remembered.len() >= MOST_REMEMBERED {
            self.remembered.clear();
        }
        let (started, attributed_now) = (facts.started, attributed.clone());
        let remembered = Remembered { started, checked: now, attributed: attributed_now };
        self.remembered.insert(pid, remembered);
        attributed
    }

    fn owner(&self, facts: &ProcessFacts) -> Owner {
        let found = |task: &TaskRoots, by| Owner::Task { task: task.task, by };
        if let Some(task) = self.tasks.iter().find(|task| is_within(&facts.cgroup, task)) {
            return found(task, By::Cgroup);
        }
        // A session of the same number that began before the task's leader is another one.
        let session = self
            .tasks
            .iter()
            .find(|task| facts.session == task.leader && facts.started >= task.leader_started);
        if let Some(task) = session {
            return found(task, By::Session);
        }
        self.by_ancestry(facts).map_or(Owner::Foreign, |task| found(task, By::Ancestry))
    }

    fn by_ancestry(&self, facts: &ProcessFacts) -> Option<&TaskRoots> {
        let mut current = facts.clone();
        for _ in 0..MOST_ANCESTORS {
            let task = self.tasks.iter().find(|task| {
                (task.leader, task.leader_started) == (current.pid, current.started)
                    || is_within(&current.cgroup, task)
            });
            if task.is_some() {
                return task;
            }
            if current.parent <= 1 {
                return None;
            }
            current = self.table.facts(current.parent)?;
        }
        None
    }
}

/// Whether a cgroup is the task's or below it.
fn is_within(cgroup: &str, task: &TaskRoots) -> bool {
    let Some(root) = task.cgroup.as_deref().filter(|root| !root.trim_matches('/').is_empty())
    else {
        return false;
    };
    cgroup.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// A process in a made-up `/proc`.
    fn put(root: &Path, pid: u32, parent: u32, session: u32, started: u64, cgroup: &str) {
        let folder = root.join(pid.to_string());
        fs::create_dir_all(&folder).expect("a folder");
        let stat = format!(
            "{pid} (python) S {parent} {pid} {session} 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0\n"
        );
        fs::write(folder.join("stat"), stat).expect("stat");
        fs::write(folder.join("status"), "Name:\tpython\nUid:\t1000\t1000\t1000\t1000\n")
            .expect("status");
        fs::write(folder.join("cgroup"), format!("0::{cgroup}\n")).expect("cgroup");
    }

    fn attribution(root: &Path) -> Attribution {
        let mut attribution = Attribution::new(ProcessTable::at(root), Users::default());
        let task = |task: u32, cgroup: Option<&str>, leader, leader_started| TaskRoots {
            task: TaskId(task),
            cgroup: cgroup.map(str::to_owned),
            leader,
            leader_started,
        };
        attribution.set_tasks(vec![
            task(1, Some("/coloc/task-1"), 100, 50),
            task(12, Some("/coloc/task-12"), 200, 60),
            task(3, None, 300, 70),
        ]);
        attribution
    }

    #[test]
    fn the_evidence_is_taken_in_order() {
        let proc = tempfile::tempdir().expect("a folder");
        let root = proc.path();
        put(root, 300, 1, 300, 70, "/");
        put(root, 101, 100, 100, 55, "/coloc/task-1/worker");
        put(root, 201, 1, 999, 65, "/coloc/task-12");
        put(root, 301, 300, 300, 75, "/user");
        put(root, 302, 301, 302, 76, "/user"); // left the session by setsid
        put(root, 303, 302, 302, 77, "/user");
        put(root, 400, 1, 400, 10, "/user.slice");
        put(root, 401, 1, 300, 20, "/"); // a session of that number from before the task
        let mut attribution = attribution(root);
        let mut owner = |pid| attribution.of(pid, Time(0)).owner;
        let task = |task, by| Owner::Task { task: TaskId(task), by };
        assert_eq!(owner(101), task(1, By::Cgroup));
        assert_eq!(owner(201), task(12, By::Cgroup), "and not task 1, whose name is a prefix");
        assert_eq!(owner(301), task(3, By::Session));
        assert_eq!(owner(303), task(3, By::Ancestry));
        assert_eq!(owner(400), Owner::Foreign);
        assert_eq!(owner(401), Owner::Foreign);
    }

    #[test]
    fn foreign_processes_have_a_user_and_dead_ones_do_not() {
        let proc = tempfile::tempdir().expect("a folder");
        put(proc.path(), 400, 1, 400, 10, "/user.slice");
        let mut attribution = attribution(proc.path());
        let alive = attribution.of(400, Time(0));
        assert_eq!(
            (alive.user.as_deref(), alive.command.as_deref()),
            (Some("1000"), Some("python"))
        );
        assert_eq!(attribution.of(401, Time(0)).user, None);
    }

    #[test]
    fn a_pid_that_was_given_again_is_looked_at_anew() {
        let proc = tempfile::tempdir().expect("a folder");
        put(proc.path(), 101, 1, 1, 55, "/coloc/task-1");
        let mut attribution = attribution(proc.path());
        assert!(matches!(attribution.of(101, Time(0)).owner, Owner::Task { .. }));
        put(proc.path(), 101, 1, 1, 99, "/user");
        assert_eq!(attribution.of(101, Time(1000)).owner, Owner::Foreign);
    }

    #[test]
    fn a_circle_of_ancestors_ends() {
        let proc = tempfile::tempdir().expect("a folder");
        put(proc.path(), 10, 11, 1, 5, "/");
        put(proc.path(), 11, 10, 1, 5, "/");
        assert_eq!(attribution(proc.path()).of(10, Time(0)).owner, Owner::Foreign);
    }
}
