//! Other queues of one machine, measured the same way where they are installed: pueue and gflow. What they promise
//! of the disk was not looked into; they are here to say what people are used to.

use super::daemon::{resident, wait_for};
use super::table::{Figure, Table};
use super::{load, starts};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The rows that all have.
pub(crate) const LOOP: &str = "submit command, one after the other";
pub(crate) const FOUR: &str = "submit command, four at once";
pub(crate) const LIST: &str = "list command, 400 tasks";
pub(crate) const START: &str = "submit command to first line, median";
pub(crate) const START95: &str = "submit command to first line, p95";

/// A queue, and how it is used.
struct Peer {
    name: &'static str,
    daemon: &'static [&'static str],
    /// A task that waits.
    waits: &'static [&'static str],
    /// A task that runs; a shell's command follows.
    runs: &'static [&'static str],
    list: &'static [&'static str],
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "pueue",
        daemon: &["pueued"],
        waits: &["pueue", "add", "--stashed", "--", "true"],
        runs: &["pueue", "add", "--"],
        list: &["pueue", "status"],
    },
    Peer {
        name: "gflow",
        daemon: &["gflowd"],
        waits: &["gbatch", "--begin", "now+1d", "true"],
        runs: &["gbatch", "sh", "-c"],
        list: &["gqueue"],
    },
];

/// Measures the peers that are there, and says which are not.
pub(crate) fn measure(table: &mut Table, submits: usize, starts: usize) {
    for peer in &PEERS {
        match find(peer.daemon[0]) {
            Some(_) => of(peer, table, submits, starts),
            None => table.remark(format!("{}: not installed, not measured", peer.name)),
        }
    }
}

fn search_path() -> OsString {
    let mut path = std::env::var_os("COLOC_BENCH_PEERS").unwrap_or_default();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

fn find(program: &str) -> Option<PathBuf> {
    let path = search_path();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// A daemon with a home of its own.
struct Running {
    place: tempfile::TempDir,
    child: Child,
}

impl Running {
    fn start(peer: &Peer) -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let child = command(peer.daemon, place.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the daemon starts");
        let running = Running { place, child };
        wait_for(peer.name, || {
            running.command(peer.list).output().is_ok_and(|output| output.status.success())
        });
        running
    }

    fn command(&self, words: &[&str]) -> Command {
        command(words, self.place.path())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
        // gflow runs tasks in tmux, here in one of their own.
        let _ = self.command(&["tmux", "kill-server"]).stderr(Stdio::null()).status();
    }
}

fn command(words: &[&str], home: &Path) -> Command {
    let program = find(words[0]).unwrap_or_else(|| PathBuf::from(words[0]));
    let mut command = Command::new(program);
    command
        .args(&words[1..])
        .env("HOME", home)
        .env("TMUX_TMPDIR", home)
        .env("XDG_RUNTIME_DIR", home);
    for variable in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "TMUX"] {
        command.env_remove(variable);
    }
    command
}

fn of(peer: &Peer, table: &mut Table, submits: usize, starts: usize) {
    let running = Running::start(peer);
    let submit = || running.command(peer.waits);
    table.add(peer.name, Figure::rate(LOOP, load::in_a_loop(submits, submit)));
    table.add(peer.name, Figure::rate(FOUR, load::at_once(4, submits, submit)));
    let list = load::time_of(5, || running.command(peer.list).output());
    table.add(peer.name, Figure::time(LIST, list));
    table.add(peer.name, Figure::memory("daemon with 400 pending", resident(running.child.id())));
    drop(running);
    let running = Running::start(peer);
    let taken = starts::of(starts, |fifo| {
        let mut submit = running.command(peer.runs);
        submit.arg(starts::hello(fifo));
        submit
    });
    table.add(peer.name, Figure::time(START, taken.percentile(0.5)));
    table.add(peer.name, Figure::time(START95, taken.percentile(0.95)));
}
