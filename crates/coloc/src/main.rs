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
    Simulate(verbs::simulate::Simulate),
    Compare(verbs::compare::Compare),
    Trace(verbs::trace::TraceVerb),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Simulate(verb) => verb.run(),
        Verb::Compare(verb) => verb.run(),
        Verb::Trace(verb) => verb.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}
