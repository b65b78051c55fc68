//! `coloc shim`: runs one task for the daemon.

use crate::error::{CliError, UsageError};
use clap::Args;
use coloc_daemon::executor::local::run::RunDir;
use std::path::PathBuf;

/// Run the order on standard input to its end
#[derive(Args, Debug)]
pub(crate) struct Shim {
    /// The directory of the attempt
    directory: PathBuf,
}

impl Shim {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let named = RunDir::at(&self.directory);
        let dir = named.ok_or_else(|| {
            UsageError::file(&self.directory, "expected a directory of an attempt")
        })?;
        Ok(coloc_daemon::executor::local::shim::run(&dir)?)
    }
}
