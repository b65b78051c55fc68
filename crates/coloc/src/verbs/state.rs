//! `coloc state`: what a daemon keeps, checked, copied and put back.

use crate::args::live::{own_state, path, said};
use crate::error::{CliError, UsageError};
use crate::output::{Answer, print_text};
use crate::verbs::doctor;
use clap::{Args, Subcommand};
use coloc_daemon::log::{self, LogFormat, LogLevel};
use coloc_daemon::state_dir::{self, StateError, WentOn, size_of, some_of};
use coloc_gpu::doctor::Health;
use coloc_model::TaskId;
use std::path::PathBuf;

/// Check, back up or put back what a daemon keeps in its state directory
#[derive(Args, Debug)]
pub(crate) struct State {
    #[command(subcommand)]
    what: What,
    /// The daemon's state directory
    #[arg(long, value_name = "DIR", env = "COLOC_STATE", global = true, value_parser = path())]
    state: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Say whether the journal is whole and the newest; changes nothing, and works beside a daemon
    Check,
    /// Write a copy of the journal to a new file; works beside a daemon
    Backup {
        /// The file, which must not be there yet
        file: PathBuf,
    },
    /// Put a backup in the journal's place; the journal is kept under another name
    Restore {
        /// The backup
        file: PathBuf,
    },
    /// Go on with a journal that lost its end, or without one; no id is used twice
    Accept,
}

impl From<StateError> for CliError {
    fn from(error: StateError) -> Self {
        if error.is_bad_input() { UsageError::State(error).into() } else { CliError::State(error) }
    }
}

impl State {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let _log = log::start(LogFormat::Text, LogLevel::Warn);
        let state = said(self.state.as_ref()).cloned().unwrap_or_else(own_state);
        match &self.what {
            What::Check => {
                let report = state_dir::check(&state)?;
                self.tell(&report, || doctor::render(&report.findings))?;
                let broken = |health| matches!(health, Health::Broken | Health::Missing);
                let broken = report.findings.iter().filter(|finding| broken(finding.health));
                let broken: Vec<&str> = broken.map(|finding| finding.about).collect();
                if broken.is_empty() { Ok(()) } else { Err(CliError::Broken(broken.join(", "))) }
            }
            What::Backup { file } => {
                let made = state_dir::backup(&state, file)?;
                self.tell(&made, || {
                    let (file, size) = (made.file.display(), size_of(made.bytes));
                    format!("{file}: {} tasks, {size}, read back and whole", made.tasks)
                })
            }
            What::Restore { file } => {
                let done = state_dir::restore(&state, file)?;
                let first = format!("{} is the journal now.", file.display());
                self.tell(&done, || told(first, &done))
            }
            What::Accept => {
                let done = state_dir::accept(&state)?;
                let first = "The journal is taken as it is.".to_owned();
                self.tell(&done, || told(first, &done))
            }
        }
    }

    fn tell<T: serde::Serialize>(
        &self,
        body: &T,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        match self.json {
            true => Answer { body, wall_s: None }.print(),
            false => print_text(&text()),
        }
    }
}

/// What became of tasks, for people.
fn told(first: String, done: &WentOn) -> String {
    let tasks = |ids: &[u32]| some_of(&ids.iter().copied().map(TaskId).collect::<Vec<_>>());
    let mut lines = vec![first];
    if let Some(kept) = &done.kept {
        lines.push(format!("What was there before is kept as {}.", kept.display()));
    }
    lines.push(format!("New tasks begin with id {}.", done.next_task));
    if !done.held.is_empty() {
        lines.push(format!(
            "Held, since they were started after this journal ended: {}. `coloc release` runs them again.",
            tasks(&done.held)
        ));
    }
    if !done.unknown.is_empty() {
        lines.push(format!(
            "The journal does not know these tasks, which left run directories: {}. Those that still run go on unwatched.",
            tasks(&done.unknown)
        ));
    }
    lines.join("\n")
}
