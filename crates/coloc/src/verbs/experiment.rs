//! `coloc experiment`: what `coloc collocate -- CMD` submits. It runs where a GPU was given to it.

use crate::error::{CliError, UsageError};
use crate::live::experiment::{self, Plan};
use crate::output::print_text;
use clap::Args;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The line of its output that has what was found begins with this.
pub(crate) const FOUND: &str = "found ";

/// Run copies of a command on the GPU that this task was given
#[derive(Args, Debug)]
pub(crate) struct Experiment {
    /// What to try, as JSON
    plan: String,
}

impl Experiment {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let plan: Plan = serde_json::from_str(&self.plan)
            .map_err(|error| UsageError::Parser(format!("this is no plan: {error}")))?;
        // When the task is ended, the GPU is left as it was.
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [2, 15] {
            let _ = crate::signals::note_signal(signal, &stop);
        }
        let found = experiment::run(&plan, stop, |what| {
            // A user who follows reads how far it is; a log that cannot be written ends the experiment later.
            let _ = print_text(what);
        })?;
        let found = serde_json::to_string(&found)
            .map_err(|error| CliError::Refused(format!("cannot be told: {error}")))?;
        print_text(&format!("{FOUND}{found}"))
    }
}
