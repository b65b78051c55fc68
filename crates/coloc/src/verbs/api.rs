//! `coloc api`: the daemon's interface, described for programs.

use crate::error::CliError;
use crate::output::print_text;
use clap::Args;

/// Print the OpenAPI document of the daemon's interface; a daemon serves the same at /openapi.json
#[derive(Args, Debug)]
pub(crate) struct Api {}

impl Api {
    pub(crate) fn run(self) -> Result<(), CliError> {
        print_text(&format!("{:#}", coloc_daemon::api::document()))
    }
}
