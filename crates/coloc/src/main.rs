//! coloc

mod estimate;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Run more deep-learning training on the GPUs you have.
#[derive(Parser, Debug)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    Estimate(Box<estimate::EstimateArgs>),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Estimate(args) => estimate::run(*args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
