//! `coloc completions`: what a shell needs to finish words.

use crate::Cli;
use crate::error::CliError;
use crate::output::print_text;
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

/// Print what a shell needs to complete commands: source <(coloc completions bash)
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "coloc", &mut script);
        print_text(String::from_utf8_lossy(&script).trim_end())
    }
}
