//! `coloc cancel`: tasks that are to go, or to hear a signal.

use crate::error::CliError;
use crate::parse::slurm;
use crate::verbs::change::ChangeTasks;
use clap::Args;
use coloc_api::request::{Change, SignalRequest};

/// Make tasks go away, whether they wait or run, or send them a signal
#[derive(Args, Debug)]
pub(crate) struct Cancel {
    #[command(flatten)]
    tasks: ChangeTasks,
    /// Send the program this signal instead, such as USR1, and let the task go on
    #[arg(short = 's', long, value_name = "SIGNAL", value_parser = slurm::signal)]
    signal: Option<i32>,
    /// With --signal: send it to all processes of the task; STOP, CONT and KILL always are
    #[arg(short = 'f', long, requires = "signal")]
    full: bool,
    /// With --signal: the program alone, as it is without
    #[arg(short = 'b', long, hide = true, requires = "signal", conflicts_with = "full")]
    batch: bool,
}

impl Cancel {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let full = self.full;
        let signal = self.signal.map(|signal| Change::Signal(SignalRequest { signal, full }));
        self.tasks.run(signal.unwrap_or(Change::Cancel))
    }
}
