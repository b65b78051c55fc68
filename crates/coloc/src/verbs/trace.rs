//! `coloc trace`: make, inspect and convert traces.

use crate::args::input::{TraceFormat, read_trace};
use crate::error::CliError;
use crate::output::files;
use clap::{Args, Subcommand};
use coloc_sim::trace::{self, Generator};
use std::path::PathBuf;

/// Make, inspect and convert traces
#[derive(Args, Debug)]
pub(crate) struct TraceVerb {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Make a synthetic trace
    Generate {
        /// How many tasks
        #[arg(long)]
        tasks: usize,
        /// How many GPUs of A100-40GB class the load refers to
        #[arg(long)]
        gpus: u32,
        /// Demand of all tasks run exclusively, over what the GPUs can do until the last arrival
        #[arg(long, default_value_t = 0.9)]
        load: f64,
        /// The most GPUs of one task
        #[arg(long, default_value_t = 4)]
        widest: u32,
        /// Makes it reproducible
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Where to write it
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Convert
    Convert {
        /// in
        input: PathBuf,
        /// Format
        #[arg(long, value_enum, default_value = "coloc")]
        format: TraceFormat,
        /// Where to write it
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
    },
}

impl TraceVerb {
    pub(crate) fn run(self) -> Result<(), CliError> {
        match self.action {
            Action::Generate { tasks, gpus, load, widest, seed, output } => {
                let generated = Generator { tasks, gpus, load, widest, seed }.generate()?;
                files::write(&output, |out| trace::write(&generated, out))
            }
            Action::Convert { input, format, output } => {
                let read = read_trace(&input, format)?;
                files::write(&output, |out| trace::write(&read, out))
            }
        }
    }
}
