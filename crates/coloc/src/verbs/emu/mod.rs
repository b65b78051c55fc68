//! `coloc emu`: emulated GPUs for those who have none.

mod run;
mod train;

use crate::error::CliError;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Emulated GPUs: an NVIDIA driver without the hardware
#[derive(Args, Debug)]
pub(crate) struct Emu {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Run(run::Run),
    Start(run::Start),
    Stop(run::Stop),
    Train(Box<train::Train>),
}

impl Emu {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        match self.verb {
            Verb::Run(verb) => verb.run(),
            Verb::Train(verb) => verb.run(),
            Verb::Start(verb) => verb.run().map(|()| ExitCode::SUCCESS),
            Verb::Stop(verb) => verb.run().map(|()| ExitCode::SUCCESS),
        }
    }
}
