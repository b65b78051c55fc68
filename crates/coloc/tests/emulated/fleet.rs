//! A fleet of emulated GPUs for one test.

use crate::support::Workspace;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(super) const COLOC: &str = env!("CARGO_BIN_EXE_coloc");

/// A fleet for one test, with its environment.
pub(super) struct Fleet {
    workspace: Workspace,
    variables: Vec<(String, String)>,
}

impl Fleet {
    pub(super) fn start(spec: &str, options: &[&str]) -> Self {
        let workspace = Workspace::with(&[]);
        let folder = workspace.path().join("fleet");
        let output = Command::new(COLOC)
            .args(["emu", "start", "--fleet", spec, "--dir"])
            .arg(&folder)
            .args(options)
            .output()
            .expect("the binary");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let line = |line: &str| {
            let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('\'').to_owned()))
        };
        let variables = text(&output.stdout).lines().filter_map(line).collect();
        Fleet { workspace, variables }
    }

    pub(super) fn path(&self) -> &Path {
        self.workspace.path()
    }

    /// A command on the fleet; tools are found by their names.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let tool = self.path().join("fleet/bin").join(program);
        let program = if tool.exists() { tool } else { program.into() };
        let mut command = Command::new(program);
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.path().join("mps"));
        command
    }

    pub(super) fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().expect("a program that starts")
    }

    /// What a command that succeeds prints.
    pub(super) fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    pub(super) fn tell_mps(&self, line: &str) -> String {
        use std::io::Write;
        let mut control = self.command("nvidia-cuda-mps-control", &[]);
        let mut child =
            control.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool");
        // Without a daemon the tool ends before it has read anything.
        let _ = writeln!(child.stdin.take().expect("piped"), "{line}");
        text(&child.wait_with_output().expect("ours").stdout).trim().to_owned()
    }

    pub(super) fn show(&self) -> serde_json::Value {
        serde_json::from_str(&self.ask(COLOC, &["emu", "show", "--json"])).expect("JSON")
    }

    pub(super) fn train(&self, arguments: &[&str]) -> Trainer {
        let arguments = [&["emu", "train"], arguments].concat();
        let mut command = self.command(COLOC, &arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Trainer(child.expect("the binary"))
    }

    pub(super) fn used_mib(&self, gpu: usize) -> u64 {
        self.show()["gpus"][gpu]["memory_used_bytes"].as_u64().expect("bytes") >> 20
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // A process that is still on it ends with it; the test itself may have stopped it.
        let _ = self.command(COLOC, &["emu", "stop"]).output();
    }
}

/// A trainer that does not outlive its test.
pub(super) struct Trainer(pub(super) Child);

impl Trainer {
    pub(super) fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill").success());
    }

    pub(super) fn end(mut self) -> (Option<i32>, String, String) {
        let read = |stream: Option<Box<dyn std::io::Read>>| {
            stream.map_or_else(String::new, |mut stream| {
                let mut all = String::new();
                std::io::Read::read_to_string(&mut stream, &mut all).expect("text");
                all
            })
        };
        let stdout = read(self.0.stdout.take().map(|s| Box::new(s) as Box<dyn std::io::Read>));
        let stderr = read(self.0.stderr.take().map(|s| Box::new(s) as Box<dyn std::io::Read>));
        (self.0.wait().expect("ours").code(), stdout, stderr)
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}
