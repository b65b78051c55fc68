//! The `coloc` binary: one file a verb.

mod args;
mod error;
mod output;
mod report;
mod verbs;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Run more deep-learning training on the GPUs you have.
#[derive(Parser)]
#[command(name = "coloc", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Demo(verbs::demo::Demo),
    Simulate(Box<verbs::simulate::Simulate>),
    Compare(Box<verbs::compare::Compare>),
    Collocate(verbs::collocate::Collocate),
    Trace(verbs::trace::TraceVerb),
    Estimate(Box<verbs::estimate::EstimateArgs>),
    Gpus(verbs::gpus::Gpus),
    Doctor(verbs::doctor::Doctor),
    Emu(verbs::emu::Emu),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Demo(verb) => verb.run(),
        Verb::Simulate(verb) => verb.run(),
        Verb::Compare(verb) => verb.run(),
        Verb::Collocate(verb) => verb.run(),
        Verb::Trace(verb) => verb.run(),
        Verb::Estimate(verb) => verb.run(),
        Verb::Gpus(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
        // Here the exit code is that of another program.
        Verb::Emu(verb) => {
            return verb.run().unwrap_or_else(|error| error.report());
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
