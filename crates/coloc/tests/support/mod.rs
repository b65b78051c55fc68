//! A folder to work in, and the binary to run there.
#![allow(dead_code)] // Each test binary uses a part of it.

use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A temporary folder with some files.
pub(crate) struct Workspace {
    dir: TempDir,
}

impl Workspace {
    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).expect("writing a test file");
        }
        Workspace { dir }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("a file that the command wrote")
    }

    /// Names of the files in it, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("the folder");
        let mut names: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Simulates `t.csv` in the published format on two A100s.
    pub(crate) fn simulate(&self, flags: &[&str]) -> Run {
        let input = ["simulate", "--trace", "t.csv", "--format", "carma", "--fleet", "2xA100-40GB"];
        coloc(self.path(), &[&input[..], flags].concat())
    }
}

/// A finished command.
pub(crate) struct Run {
    pub(crate) output: Output,
}

impl Run {
    /// What it printed; it must have succeeded.
    pub(crate) fn ok(&self) -> String {
        assert!(self.output.status.success(), "{}", self.stderr());
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Its complaint; it must have ended with this code and printed nothing else.
    pub(crate) fn fails_with(&self, code: i32) -> String {
        let stdout = String::from_utf8_lossy(&self.output.stdout);
        assert_eq!(self.output.status.code(), Some(code), "{stdout}{}", self.stderr());
        assert_eq!(stdout, "", "a failed command prints to standard error only");
        self.stderr()
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }
}

/// Runs the binary in a folder whose `coloc.toml` is the configuration, with something on standard input.
pub(crate) fn coloc_configured(folder: &Path, arguments: &[&str], input: &str) -> Run {
    use std::io::Write as _;
    let mut child = Command::new(env!("CARGO_BIN_EXE_coloc"))
        .args(arguments)
        .current_dir(folder)
        .env("COLOC_CONFIG", folder.join("coloc.toml"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("it is piped");
    // A program that does not read it has nothing to say about it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    Run { output: child.wait_with_output().expect("the binary ends") }
}

/// Runs the binary in a folder.
pub(crate) fn coloc(folder: &Path, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_coloc"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary runs");
    Run { output }
}

/// The text without the time that it took to compute.
pub(crate) fn without_seconds_taken(text: &str) -> String {
    let line = |line: &str| match line.split_once(" in ") {
        Some((before, after)) if after.ends_with("nothing was measured.") => {
            format!("{before} in […] s; nothing was measured.")
        }
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}
