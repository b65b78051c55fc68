//! The group of one attempt to run a task.

use crate::executor::outcome::HostMemory;
use coloc_model::Bytes;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Processes and threads that a task may have: far beyond any training, and short of what hurts a machine.
const MOST_PROCESSES: u32 = 32_768;
/// Killed processes are gone within this many looks.
const LOOKS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A task's group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskGroup {
    path: PathBuf,
    name: String,
}

/// What a group is held to, as it reads back.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct GroupLimits {
    /// Host memory.
    pub memory: Option<Bytes>,
    /// Processes and threads.
    pub processes: Option<u32>,
    /// CPUs, such as `0-3`.
    pub cpus: Option<String>,
}

impl TaskGroup {
    /// A group at a place, as `/proc/PID/cgroup` names it.
    pub fn at(path: PathBuf, name: String) -> Self {
        TaskGroup { path, name }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it. A limit counts once it reads back.
    pub(super) fn make(&self, memory: Option<Bytes>, pids: bool) -> io::Result<GroupLimits> {
        match fs::create_dir(&self.path) {
            // An attempt whose shim never came left it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made?,
        }
        let mut limits = GroupLimits::default();
        if let Some(memory) = memory {
            fs::write(self.path.join("memory.max"), memory.0.to_string())?;
            // A training that lost one of its processes hangs: it goes as a whole. Older kernels have no such file.
            let _ = fs::write(self.path.join("memory.oom.group"), "1");
            limits.memory = self.number("memory.max").map(Bytes);
        }
        if pids {
            fs::write(self.path.join("pids.max"), MOST_PROCESSES.to_string())?;
            limits.processes = self.number("pids.max").and_then(|number| number.try_into().ok());
        }
        Ok(limits)
    }

    /// Holds it to CPUs; says what reads back, and nothing if the kernel does not.
    pub(super) fn hold_to_cpus(&self, cpus: &str) -> Option<String> {
        let file = self.path.join("cpuset.cpus");
        fs::write(&file, cpus).ok()?;
        let read = fs::read_to_string(&file).ok()?;
        Some(read.trim().to_owned()).filter(|read| !read.is_empty())
    }

    /// Opens what a shim needs of it. To be done as root: afterwards the shim is another user.
    pub fn open(&self) -> io::Result<GroupFiles> {
        let open = |file: &str| OpenOptions::new().write(true).open(self.path.join(file));
        Ok(GroupFiles {
            folder: File::open(&self.path)?,
            enter: open("cgroup.procs")?,
            kill: open("cgroup.kill").ok(),
        })
    }

    /// A process is in it.
    pub fn has(&self, pid: u32) -> bool {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("0::") == Some(&self.name))
    }

    /// What the kernel says of its host memory; `None` without the controller.
    pub fn host_memory(&self) -> Option<HostMemory> {
        let events = fs::read_to_string(self.path.join("memory.events")).ok()?;
        Some(HostMemory {
            kills: field(&events, "oom_kill")?,
            peak: self.number("memory.peak").map(Bytes),
            limit: self.number("memory.max").map(Bytes),
        })
    }

    /// Kills every process that is left in it and removes it; what cannot be removed yet is swept later.
    pub fn end(&self) {
        for _ in 0..LOOKS {
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                _ => return,
            }
            self.kill_all();
            std::thread::sleep(PAUSE);
        }
    }

    /// Kills every process in it.
    pub fn kill_all(&self) {
        if fs::write(self.path.join("cgroup.kill"), "1").is_ok() {
            return;
        }
        // Before Linux 5.14 one by one.
        let text = fs::read_to_string(self.path.join("cgroup.procs")).unwrap_or_default();
        for pid in text.lines().filter_map(|line| line.parse().ok()).filter(|&pid| pid > 0) {
            let _ = nix::sys::signal::kill(
                nix::unistd::Pid::from_raw(pid),
                nix::sys::signal::Signal::SIGKILL,
            );
        }
    }

    fn number(&self, file: &str) -> Option<u64> {
        fs::read_to_string(self.path.join(file)).ok()?.trim().parse().ok()
    }
}

/// A value in lines of `NAME VALUE`.
fn field(text: &str, name: &str) -> Option<u64> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.into_iter().find(|(known, _)| *known == name)?.1.trim().parse().ok()
}

/// Files of a group, opened with more rights than their user has later.
#[derive(Debug)]
pub struct GroupFiles {
    /// A process can be born in it.
    pub folder: File,
    /// A process that writes `0` here is in the group.
    pub enter: File,
    kill: Option<File>,
}

impl GroupFiles {
    /// Kills every process in the group; says whether the kernel can do that.
    pub fn kill(&self) -> bool {
        self.kill.as_ref().is_some_and(|mut kill| kill.write_all(b"1").is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_folder_cannot_be_entered() {
        let dir = tempfile::tempdir().expect("a folder");
        let group = TaskGroup::at(dir.path().to_owned(), "/x".to_owned());
        assert!(group.open().is_err() && !group.has(std::process::id()));
    }

    #[test]
    fn the_kernels_words_are_read() {
        let dir = tempfile::tempdir().expect("a folder");
        let group = TaskGroup::at(dir.path().to_owned(), "/x".to_owned());
        assert_eq!(group.host_memory(), None, "there is no controller");
        let events = "low 0\nhigh 0\nmax 812\noom 3\noom_kill 2\noom_group_kill 1\n";
        fs::write(dir.path().join("memory.events"), events).expect("written");
        fs::write(dir.path().join("memory.max"), "max\n").expect("written");
        fs::write(dir.path().join("memory.peak"), "4096\n").expect("written");
        let expected = HostMemory { kills: 2, peak: Some(Bytes(4096)), limit: None };
        assert_eq!(group.host_memory(), Some(expected));
        assert!(!group.has(std::process::id()));
    }

    proptest! {
        #[test]
        fn hostile_words_are_survived(text in "[a-z_ 0-9\\n-]{0,80}") {
            let _ = field(&text, "oom_kill");
        }
    }
}
