//! Running the simulator as a user would.

use crate::run::Failed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The binary, the data and a place for intermediate files, which is removed in the end.
pub(super) struct Lab {
    coloc: PathBuf,
    data: PathBuf,
    scratch: PathBuf,
}

/// What one run answered.
pub(super) struct Answer {
    json: String,
}

pub(super) fn failed(step: impl Into<String>) -> Failed {
    Failed { step: step.into() }
}

impl Lab {
    pub(super) fn new(root: &Path, data: PathBuf) -> Result<Self, Failed> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let coloc = target.unwrap_or_else(|| root.join("target")).join("release/coloc");
        let scratch = std::env::temp_dir().join(format!("coloc-reproduce-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).map_err(|error| failed(error.to_string()))?;
        Ok(Lab { coloc, data, scratch })
    }

    /// A published file.
    pub(super) fn data(&self, name: &str) -> String {
        self.data.join(name).to_string_lossy().into_owned()
    }

    /// The text of a published file.
    pub(super) fn text(&self, name: &str) -> Result<String, Failed> {
        let file = self.data.join(name);
        std::fs::read_to_string(&file).map_err(|error| failed(format!("{name}: {error}")))
    }

    /// Writes an intermediate file and names it.
    pub(super) fn file(&self, name: &str, text: &str) -> Result<String, Failed> {
        let file = self.scratch.join(name);
        std::fs::write(&file, text).map_err(|error| failed(format!("{name}: {error}")))?;
        Ok(file.to_string_lossy().into_owned())
    }

    /// Where an intermediate file is, written or not.
    pub(super) fn path(&self, name: &str) -> String {
        self.scratch.join(name).to_string_lossy().into_owned()
    }

    pub(super) fn coloc(&self, arguments: &[&str]) -> Result<String, Failed> {
        let output = Command::new(&self.coloc).args(arguments).output();
        match output {
            Ok(output) if output.status.success() => {
                Ok(String::from_utf8_lossy(&output.stdout).into_owned())
            }
            Ok(output) => {
                eprintln!("{}", String::from_utf8_lossy(&output.stderr));
                Err(failed(format!("coloc {}", arguments.join(" "))))
            }
            Err(error) => Err(failed(format!("coloc: {error}"))),
        }
    }

    /// `coloc simulate` with these flags, written as one text besides the trace and its like.
    pub(super) fn simulate(&self, trace: &str, flags: &str) -> Result<Answer, Failed> {
        let mut arguments = vec!["simulate", "--json", "--trace", trace];
        arguments.extend(flags.split_whitespace());
        Ok(Answer { json: self.coloc(&arguments)? })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}

impl Answer {
    /// A number of the answer. Its fields are a contract, so one that is missing is a mistake here.
    pub(super) fn number(&self, field: &str) -> f64 {
        let name = format!("\"{field}\":");
        let value = self.json.split_once(&name).map(|(_, rest)| rest.trim_start());
        let end = |rest: &str| rest.find([',', '}', '\n']).unwrap_or(rest.len());
        let value = value.and_then(|rest| rest[..end(rest)].trim().parse().ok());
        value.unwrap_or_else(|| panic!("no number {field} in {}", self.json))
    }

    pub(super) fn jct(&self) -> f64 {
        self.number("jct_mean_s")
    }
}
