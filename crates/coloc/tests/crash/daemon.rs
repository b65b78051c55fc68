//! A daemon that is killed and started again.

use super::http::{Answer, ask};
use super::processes;
use super::program::Program;
use super::random::Random;
use super::setup::Setup;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A start takes longer only if something is wrong.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Kills while it starts, one after the other, at most.
const MOST_IN_A_ROW: u64 = 3;

/// A daemon with its directory.
pub(super) struct Daemon {
    place: tempfile::TempDir,
    setup: Setup,
    process: Option<Child>,
    /// How long each start took, until it was answered.
    pub(super) starts: Vec<Duration>,
    pub(super) kills: usize,
    /// Starts that ended by themselves, with what was said.
    pub(super) refusals: Vec<String>,
}

impl Daemon {
    /// A daemon that has not been started.
    pub(super) fn new(setup: Setup) -> Self {
        let place = tempfile::Builder::new().prefix("coloc-crash-").tempdir();
        let place = place.expect("a temporary directory");
        Program::prepare(place.path());
        let (starts, refusals) = (Vec::new(), Vec::new());
        Daemon { place, setup, process: None, starts, kills: 0, refusals }
    }

    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    fn log_file(&self) -> PathBuf {
        self.path().join("daemon.log")
    }

    /// The last words of all daemons so far.
    pub(super) fn log(&self) -> String {
        const LINES: usize = 60;
        let log = std::fs::read(self.log_file()).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    fn spawn(&mut self) {
        let log = File::options().create(true).append(true).open(self.log_file()).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_coloc"));
        command.args(["daemon", "--log-level", "warn"]).args(self.setup.arguments());
        command.arg("--state").arg(self.path().join("state"));
        command.arg("--socket").arg(self.socket());
        command.env("COLOC_CONFIG", "/dev/null");
        if !self.setup.groups {
            command.env("COLOC_CGROUP", "none");
        }
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(process.expect("the daemon starts"));
    }

    /// Starts it and waits until it answers.
    pub(super) fn start(&mut self) {
        let (mut began, timeout) = (Instant::now(), Instant::now() + TIMEOUT);
        self.spawn();
        loop {
            if let Answer::Done(_) = ask(&self.socket(), "GET /v1/status", None) {
                self.starts.push(began.elapsed());
                return;
            }
            let process = self.process.as_mut().expect("it was started");
            if let Some(status) = process.try_wait().expect("it is ours") {
                let said = self.log().lines().last().unwrap_or("").to_owned();
                self.refusals.push(format!("{status}: {said}"));
                began = Instant::now();
                self.spawn();
            }
            assert!(Instant::now() < timeout, "the daemon does not answer:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.as_ref().expect("it was started").id()
    }

    /// It has not ended.
    pub(super) fn lives(&mut self) -> bool {
        let process = self.process.as_mut().expect("it was started");
        process.try_wait().expect("it is ours").is_none()
    }

    /// Ends it without a word of warning.
    pub(super) fn kill(&mut self) {
        self.kill_traced(());
    }

    /// The same for one that has a tracer: until that is gone, its parent does not hear of its end.
    pub(super) fn kill_traced<T>(&mut self, tracer: T) {
        let mut process = self.process.take().expect("it was started");
        process.kill().expect("it is ours");
        drop(tracer);
        process.wait().expect("it ends");
        self.kills += 1;
    }

    /// Starts it again after a kill; sometimes it is killed while it starts, once or several times.
    pub(super) fn start_again(&mut self, random: &mut Random) {
        if random.percent(30) {
            let usual = self.starts.last().map_or(300, |start| start.as_millis() as u64);
            for _ in 0..=random.below(MOST_IN_A_ROW) {
                self.spawn();
                std::thread::sleep(random.millis(0, usual * 5 / 4 + 1));
                self.kill();
            }
        }
        self.start();
    }

    /// Asks it to end, and waits until it has; says whether it did.
    pub(super) fn stop(&mut self) -> bool {
        let Some(mut process) = self.process.take() else { return true };
        let pid = rustix::process::Pid::from_child(&process);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
        let timeout = Instant::now() + TIMEOUT;
        while process.try_wait().expect("it is ours").is_none() {
            if Instant::now() > timeout {
                process.kill().and_then(|()| process.wait()).expect("it is ours");
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// An answer that a daemon owes which is not killed.
    pub(super) fn must(&self, line: &str, body: Option<&Value>) -> Value {
        match ask(&self.socket(), line, body) {
            Answer::Done(value) => value,
            other => panic!("{line}: {other:?}\n{}", self.log()),
        }
    }

    /// Every task.
    pub(super) fn list(&self) -> Vec<Value> {
        let listed = self.must("GET /v1/tasks?all=true", None);
        listed["tasks"].as_array().expect("tasks").clone()
    }

    /// What is told of a task.
    pub(super) fn story(&self, task: u32) -> String {
        let Answer::Done(shown) = ask(&self.socket(), &format!("GET /v1/tasks/{task}"), None)
        else {
            return "it has no story".to_owned();
        };
        let mut lines: Vec<String> = Vec::new();
        for line in shown["story"].as_array().into_iter().flatten() {
            let what = line["what"].as_str().unwrap_or("");
            // Of a row of restarts the last one is enough.
            if lines.last().is_some_and(|last| last.ends_with(what)) {
                lines.pop();
            }
            lines.push(format!("    {} {what}", line["at"]));
        }
        let (state, attempts) = (&shown["state"], &shown["attempts"]);
        format!("    {state}, {attempts} attempts\n{}\n", lines.join("\n"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        // Of a test that failed: nothing must run in a directory that is about to go.
        processes::end_all(self.path());
    }
}
