//! Control groups (version 2): a group for each running task, where this daemon may make some.
//!
//! A group is what no process of a task can leave: it is killed as a whole, held to its host memory and number of
//! processes, and known by its name. Where there are none, a task is known by its session and killed process by
//! process.

mod cpus;
mod delegation;
mod group;

pub use delegation::{BASE_VARIABLE, NoGroups};
pub use group::{GroupFiles, GroupLimits, TaskGroup};

use coloc_api::view::Containment;
use coloc_model::{Bytes, TaskId};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A controller that limits are set by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Controller {
    /// Host memory.
    Memory,
    /// The number of processes and threads.
    Pids,
    /// Device memory.
    Dmem,
    /// CPUs.
    Cpuset,
}

impl Controller {
    const ALL: [Controller; 4] =
        [Controller::Memory, Controller::Pids, Controller::Dmem, Controller::Cpuset];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Pids => "pids",
            Controller::Dmem => "dmem",
            Controller::Cpuset => "cpuset",
        }
    }
}

/// A place below which a daemon makes groups for its tasks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Groups {
    /// Where the file system is mounted.
    root: PathBuf,
    /// The place, as seen from there.
    base: PathBuf,
    /// What the groups of this daemon begin with: others may use the same place.
    prefix: String,
    /// What the groups can be held to.
    controllers: Vec<Controller>,
}

impl Groups {
    /// Looks for a place. `state` tells this daemon from others.
    pub fn find(state: &Path) -> Result<Groups, NoGroups> {
        delegation::find(&prefix_of(state))
    }

    /// Whether groups can be held to something.
    pub fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    /// The file system's root, for a caller that sets limits by a group's name.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What groups are good for here.
    pub fn containment(&self) -> Containment {
        match self.controllers.is_empty() {
            true => Containment::Cgroup,
            false => Containment::CgroupWithLimits,
        }
    }

    /// The same in words.
    pub fn says(&self) -> String {
        let names: Vec<&str> =
            self.controllers.iter().map(|controller| controller.name()).collect();
        match names[..] {
            [] => "cgroup: killed as a whole; no controllers, so nothing limits host memory"
                .to_owned(),
            _ => format!("cgroup: killed as a whole, limits by {}", names.join(", ")),
        }
    }

    /// The group of an attempt, whether it is there or not.
    pub fn group(&self, task: TaskId, attempt: u32) -> TaskGroup {
        let name = self.base.join(format!("{}{task}.{attempt}", self.prefix));
        TaskGroup::at(self.root.join(&name), format!("/{}", name.display()))
    }

    /// Makes the group of an attempt, and says what it is held to.
    pub fn make(
        &self,
        task: TaskId,
        attempt: u32,
        memory: Option<Bytes>,
        cpus: Option<u32>,
    ) -> io::Result<(TaskGroup, GroupLimits)> {
        let group = self.group(task, attempt);
        let memory = memory.filter(|_| self.has(Controller::Memory));
        let cpus = cpus.filter(|_| self.has(Controller::Cpuset));
        let cpus = cpus.and_then(|count| cpus::free_below(&self.root.join(&self.base), count));
        let mut limits = group.make(memory, self.has(Controller::Pids))?;
        limits.cpus = cpus.and_then(|cpus| group.hold_to_cpus(&cpus::told(&cpus)));
        Ok((group, limits))
    }

    /// Takes away a place that was made for groups, once there are none. Only for when no task runs.
    pub fn leave(&self) {
        self.sweep(&[], &|_| true);
        if self.base == Path::new(delegation::TOP) {
            // Another daemon may have groups there.
            let _ = fs::remove_dir(self.root.join(&self.base));
        }
    }

    /// Kills what is left in groups of ours that no attempt needs, and removes them. Processes of tasks that are not known
    /// stay.
    pub fn sweep(&self, needed: &[TaskGroup], is_known: &dyn Fn(TaskId) -> bool) {
        let Ok(entries) = fs::read_dir(self.root.join(&self.base)) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(attempt) = name.to_str().and_then(|name| name.strip_prefix(&self.prefix))
            else {
                continue;
            };
            let needed = || needed.iter().any(|group| group.path() == entry.path());
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) || needed() {
                continue;
            }
            let task = attempt.split('.').next().and_then(|task| task.parse().ok()).map(TaskId);
            let shown = format!("/{}", self.base.join(&name).display());
            match task.filter(|&task| !is_known(task)) {
                // A group that has processes cannot be removed.
                Some(task) if fs::remove_dir(entry.path()).is_err() => tracing::warn!(
                    task = task.0,
                    "the journal does not know this task: its processes in {shown} go on unwatched"
                ),
                Some(_) => {}
                None => TaskGroup::at(entry.path(), shown).end(),
            }
        }
    }
}

/// Short, the same for the same state, and different for others.
fn prefix_of(state: &Path) -> String {
    let path = state.canonicalize().unwrap_or_else(|_| state.to_owned());
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
    format!("coloc-{:08x}-", hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that looks like a delegated group.
    fn groups(root: &Path, controllers: &[Controller]) -> Groups {
        Groups {
            root: root.to_owned(),
            base: PathBuf::from("coloc"),
            prefix: prefix_of(Path::new("/state")),
            controllers: controllers.to_vec(),
        }
    }

    #[test]
    fn a_group_is_made_with_its_limits_and_only_with_those_that_there_are() {
        let root = tempfile::tempdir().expect("a folder");
        let memory = Some(Bytes::from_mib(512));
        let all = groups(root.path(), &[Controller::Memory, Controller::Pids]);
        fs::create_dir(root.path().join("coloc")).expect("a folder");
        let (group, limits) = all.make(TaskId(7), 2, memory, None).expect("it is made");
        assert_eq!(limits.memory, memory);
        let read = |file: &str| fs::read_to_string(group.path().join(file)).ok();
        assert_eq!(read("memory.max").as_deref(), Some("536870912"));
        assert_eq!(read("memory.oom.group").as_deref(), Some("1"));
        assert!(read("pids.max").is_some());
        assert!(group.name().starts_with("/coloc/coloc-") && group.name().ends_with("-7.2"));
        let bare = groups(root.path(), &[]);
        let (group, limits) = bare.make(TaskId(8), 1, memory, None).expect("it is made");
        assert_eq!(limits.memory, None, "what is not enforced is not claimed");
        assert!(!group.path().join("memory.max").exists());
        assert!(bare.says().contains("nothing limits host memory"));
    }

    #[test]
    fn tasks_that_ask_for_cpus_have_them_to_themselves() {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join("coloc")).expect("a folder");
        fs::write(root.path().join("coloc/cpuset.cpus.effective"), "0-3\n").expect("written");
        let with = groups(root.path(), &[Controller::Cpuset]);
        let cpus = |groups: &Groups, id, count| {
            groups.make(TaskId(id), 1, None, count).expect("it is made").1.cpus
        };
        assert_eq!(cpus(&with, 1, Some(2)).as_deref(), Some("0-1"));
        assert_eq!(cpus(&with, 2, None), None, "it asked for none");
        assert_eq!(cpus(&with, 3, Some(2)).as_deref(), Some("2-3"));
        assert_eq!(cpus(&with, 4, Some(1)), None, "there are no more: it is held to none");
        assert_eq!(cpus(&groups(root.path(), &[]), 5, Some(1)), None, "the kernel cannot");
    }

    #[test]
    fn what_is_left_of_ours_goes_and_nothing_else() {
        let root = tempfile::tempdir().expect("a folder");
        let base = root.path().join("coloc");
        fs::create_dir(&base).expect("a folder");
        let groups = groups(root.path(), &[]);
        let (kept, _) = groups.make(TaskId(1), 1, None, None).expect("it is made");
        let (left, _) = groups.make(TaskId(2), 1, None, None).expect("it is made");
        for other in ["coloc-00000000-1.1", "daemon"] {
            fs::create_dir(base.join(other)).expect("a folder");
        }
        groups.sweep(std::slice::from_ref(&kept), &|_| true);
        assert!(kept.path().exists() && base.join("daemon").exists());
        assert!(base.join("coloc-00000000-1.1").exists(), "another daemon's");
        assert!(!left.path().exists());
    }
}
