//! A daemon on four emulated A100s, in a directory of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon that is stopped and swept away at the end.
pub(crate) struct Daemon {
    place: tempfile::TempDir,
    child: Child,
}

impl Daemon {
    /// Starts it and waits until it answers.
    pub(crate) fn start() -> Self {
        let place = tempfile::tempdir().expect("a temporary directory");
        let child = spawn(place.path());
        let daemon = Daemon { place, child };
        daemon.wait();
        daemon
    }

    /// Stops it and starts it again on the same state; how long it took from the start to the first answer.
    pub(crate) fn start_again(&mut self) -> Duration {
        self.stop();
        let began = Instant::now();
        self.child = spawn(self.path());
        self.wait();
        began.elapsed()
    }

    fn wait(&self) {
        wait_for("the daemon", || {
            self.command().args(["queue", "--me"]).output().is_ok_and(|o| o.status.success())
        });
    }

    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-TERM", &pid]).status();
        let _ = self.child.wait();
    }

    pub(crate) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    /// The command line, talking to this daemon.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coloc"));
        command.env("COLOC_SOCKET", self.socket());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) {
        let output = self.command().args(arguments).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Bytes of memory that it has.
    pub(crate) fn resident(&self) -> u64 {
        resident(self.child.id())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.command().args(["cancel", "all"]).output();
        self.stop();
    }
}

fn spawn(place: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_coloc"))
        .args(["daemon", "--emulate", "4xA100-40GB", "--state"])
        .arg(place.join("state"))
        .arg("--socket")
        .arg(place.join("socket"))
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the daemon starts")
}

/// Bytes of memory that a process has.
pub(crate) fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
}

/// Waits until something holds.
pub(crate) fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}: waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}
