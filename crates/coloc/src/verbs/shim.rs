//! `coloc shim`: runs one task for the daemon.

use crate::error::CliError;
use clap::Args;
use coloc_daemon::run::RunDir;
use std::path::PathBuf;

/// Run the task of a directory to its end
#[derive(Args, Debug)]
pub(crate) struct Shim {
    /// The directory of the attempt
    directory: PathBuf,
}

impl Shim {
    pub(crate) fn run(self) -> Result<(), CliError> {
        Ok(coloc_daemon::shim::run(&RunDir::at(self.directory))?)
    }
}
