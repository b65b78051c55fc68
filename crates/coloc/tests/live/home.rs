//! A daemon in a directory of its own.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Nothing here takes this long unless something is wrong.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Says that a test did nothing, past the test runner's capture, which would swallow it in a test that passes.
pub(super) fn skipped(why: &str) {
    writeln!(std::io::stderr(), "SKIPPED: {why}").expect("it is heard");
}

/// The program, deaf to the configuration of the user who runs the tests.
pub(super) fn coloc() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_coloc"));
    program.env("COLOC_CONFIG", "/dev/null");
    program
}

/// A daemon with its state, stopped and swept away at the end.
pub(super) struct Home {
    place: tempfile::TempDir,
    daemon: Option<Child>,
    /// What the daemon is started by; the directory of its state and its own words follow.
    within: Vec<String>,
    arguments: Vec<String>,
    environment: Vec<(&'static str, PathBuf)>,
}

impl Home {
    pub(super) fn new(arguments: &[&str]) -> Self {
        Home::start(&[], arguments, |_| Vec::new())
    }

    /// A daemon that another program starts.
    pub(super) fn within(within: &[&str], arguments: &[&str]) -> Self {
        Home::start(within, arguments, |_| Vec::new())
    }

    /// A daemon with some more variables, which may name files in its directory.
    pub(super) fn with_environment(
        arguments: &[&str],
        environment: impl FnOnce(&Path) -> Vec<(&'static str, PathBuf)>,
    ) -> Self {
        Home::start(&[], arguments, environment)
    }

    fn start(
        within: &[&str],
        arguments: &[&str],
        environment: impl FnOnce(&Path) -> Vec<(&'static str, PathBuf)>,
    ) -> Self {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut home = Home {
            environment: Vec::new(),
            place: tempfile::tempdir().expect("a temporary directory"),
            daemon: None,
            within: owned(within),
            arguments: owned(arguments),
        };
        home.environment = environment(home.path());
        home.boot();
        home
    }

    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path().join("socket")
    }

    /// Starts the daemon and waits until it answers.
    pub(super) fn boot(&mut self) {
        let log = std::fs::File::create(self.path().join("daemon.log")).expect("a log");
        let mut command = coloc();
        if let Some((first, rest)) = self.within.split_first() {
            command = Command::new(first);
            command.args(rest).arg(self.path().join("state")).arg(env!("CARGO_BIN_EXE_coloc"));
        }
        let daemon = command
            .arg("daemon")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .args(&self.arguments)
            .arg("--state")
            .arg(self.path().join("state"))
            .arg("--socket")
            .arg(self.socket())
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the daemon starts");
        self.daemon = Some(daemon);
        self.wait_for("the daemon", |home| home.try_run(&["queue"]).status.success());
    }

    /// The daemon's process.
    pub(super) fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a daemon").id()
    }

    /// Bytes of memory that the daemon has.
    pub(super) fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("the daemon's status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib << 10
    }

    /// Asks the daemon to stop, and waits until it has.
    pub(super) fn stop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let pid = daemon.id().to_string();
            Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs");
            daemon.wait().expect("the daemon ends");
        }
    }

    /// Ends the daemon without a word of warning.
    pub(super) fn kill(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            daemon.kill().expect("the daemon is ours");
            daemon.wait().expect("the daemon ends");
        }
    }

    pub(super) fn try_run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let output = coloc().args(arguments).env("COLOC_SOCKET", self.socket()).output();
        output.expect("the program runs")
    }

    pub(super) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> String {
        let output = self.try_run(arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        out
    }

    /// Submits a task and returns its id.
    pub(super) fn submit(&self, arguments: &[&str]) -> u32 {
        let all: Vec<&str> = ["submit", "--parsable"].iter().chain(arguments).copied().collect();
        self.run(&all).trim().parse().expect("an id")
    }

    pub(super) fn json(&self, arguments: &[&str]) -> Value {
        let all: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.run(&all)).expect("JSON")
    }

    pub(super) fn show(&self, id: u32) -> Value {
        self.json(&["show", &id.to_string()])
    }

    pub(super) fn state(&self, id: u32) -> String {
        self.show(id)["state"].as_str().expect("a state").to_owned()
    }

    pub(super) fn story(&self, id: u32) -> String {
        let task = self.show(id);
        let lines = task["story"].as_array().expect("a story").iter();
        lines.map(|line| line["what"].as_str().unwrap_or("").to_owned() + "\n").collect()
    }

    pub(super) fn wait_for(&self, what: &str, condition: impl Fn(&Home) -> bool) {
        self.wait_at_most(TIMEOUT, what, condition);
    }

    /// Waits for something that takes longer than most.
    pub(super) fn wait_at_most(
        &self,
        timeout: Duration,
        what: &str,
        condition: impl Fn(&Home) -> bool,
    ) {
        let began = Instant::now();
        while !condition(self) {
            if began.elapsed() > timeout {
                panic!("{what}: waited in vain\n{}", self.how_it_stands());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What a daemon that does not do what is expected has to say.
    fn how_it_stands(&self) -> String {
        let log = std::fs::read_to_string(self.path().join("daemon.log")).unwrap_or_default();
        let ask = |arguments: &[&str]| {
            let said = self.try_run(arguments);
            format!("{}{}", text(&said.stdout), text(&said.stderr))
        };
        let (queue, gpus) = (ask(&["queue", "--all"]), ask(&["gpus"]));
        let stories = ask(&["show", "all"]);
        format!("the log:\n{log}\nthe queue:\n{queue}\nthe GPUs:\n{gpus}\ntasks:\n{stories}")
    }

    pub(super) fn wait_for_state(&self, id: u32, state: &str) {
        self.wait_for(&format!("task {id} {state}"), |home| home.state(id) == state);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if self.daemon.is_some() {
            self.try_run(&["cancel", "all"]);
            let empty = |home: &Home| home.try_run(&["queue"]).stdout.lines_count() <= 1;
            let began = Instant::now();
            while !empty(self) && began.elapsed() < Duration::from_secs(5) {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        self.stop();
    }
}

trait Lines {
    fn lines_count(&self) -> usize;
}

impl Lines for Vec<u8> {
    fn lines_count(&self) -> usize {
        text(self).lines().count()
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
