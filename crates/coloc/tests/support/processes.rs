//! Processes that have to do with a directory.

use std::path::{Path, PathBuf};

/// Processes that have to do with a directory: by their command, environment, working directory or open files.
pub(crate) fn processes(home: &Path) -> Vec<(u32, String)> {
    let home = home.display().to_string();
    let entries = std::fs::read_dir("/proc").expect("processes are listed").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    others.filter_map(|pid| is_of(pid, &home).map(|command| (pid, command))).collect()
}

/// The command of a process that has to do with a directory.
fn is_of(pid: u32, home: &str) -> Option<String> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let stat = std::fs::read_to_string(proc.join("stat")).ok()?;
    if stat.rsplit(')').next()?.trim_start().starts_with(['Z', 'X']) {
        return None;
    }
    let text = |name: &str| {
        let bytes = std::fs::read(proc.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    let command = text("cmdline");
    let names = |place: PathBuf| {
        std::fs::read_link(place).is_ok_and(|to| to.to_string_lossy().contains(home))
    };
    let open = || {
        let files = std::fs::read_dir(proc.join("fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| names(file.path()))
    };
    let its = command.contains(home)
        || text("environ").contains(home)
        || names(proc.join("cwd"))
        || open();
    its.then_some(command)
}

/// Ends what is left, so that a test that failed leaves nothing.
pub(crate) fn end_all(home: &Path) {
    for (pid, _) in processes(home) {
        if let Some(pid) = rustix::process::Pid::from_raw(pid as i32) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
