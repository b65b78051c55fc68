//! `coloc emu`: emulated GPUs for users who have none.

mod control;
mod phases;
mod run;
mod show;
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
    Show(show::Show),
    Clock(control::ClockVerb),
    Fault(control::FaultVerb),
    Exporter(control::Exporter),
}

impl Emu {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let done = match self.verb {
            Verb::Run(verb) => return verb.run(),
            Verb::Train(verb) => return verb.run(),
            Verb::Start(verb) => verb.run(),
            Verb::Stop(verb) => verb.run(),
            Verb::Show(verb) => verb.run(),
            Verb::Clock(verb) => verb.run(),
            Verb::Fault(verb) => verb.run(),
            Verb::Exporter(verb) => verb.run(),
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}
