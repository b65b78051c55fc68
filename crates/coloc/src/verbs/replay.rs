//! `coloc replay`: a trace on a live daemon.

use crate::args::input::{TraceFormat, read_trace};
use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::live::replay::Replay;
use crate::output::{Answer, print_text};
use clap::Args;
use std::path::PathBuf;

/// Play a trace on a live daemon with emulated GPUs, each task an emulated training
#[derive(Args, Debug)]
pub(crate) struct ReplayTrace {
    /// The trace to play
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Format of the trace
    #[arg(long, value_enum, default_value = "coloc")]
    format: TraceFormat,
    /// The daemon's time scale
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    time_scale: f64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl ReplayTrace {
    pub(crate) fn run(self) -> Result<(), CliError> {
        if !(self.time_scale.is_finite() && self.time_scale > 0.0) {
            return Err(
                UsageError::value("--time-scale", "a number above 0", self.time_scale).into()
            );
        }
        let trace = read_trace(&self.trace, self.format)?;
        let mut client = self.socket.connect()?;
        let replayed = Replay::new(&trace, self.time_scale).play(&mut client)?;
        if self.json {
            return Answer { body: &replayed, wall_s: None }.print();
        }
        print_text(&format!(
            "{} of {} tasks completed, makespan {:.1} min, mean completion time {:.1} min, mean wait {:.1} min, {} out of memory",
            replayed.completed,
            replayed.tasks,
            replayed.makespan_s / 60.0,
            replayed.jct_mean_s / 60.0,
            replayed.wait_mean_s / 60.0,
            replayed.oom_count
        ))
    }
}
