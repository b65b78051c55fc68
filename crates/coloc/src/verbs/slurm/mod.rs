//! Slurm's commands that have no verb here: srun within a task, scontrol, sinfo, sacct.

mod sacct;
mod scontrol;
mod sinfo;
mod srun;

use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::slurm::words::Words;
use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// What a link by the name of one of Slurm's commands does
#[derive(Args, Debug)]
pub(crate) struct SlurmTool {
    #[command(flatten)]
    socket: SocketArg,
    /// The command
    name: String,
    /// Its words
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

impl SlurmTool {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let SlurmTool { socket, name, words } = self;
        match name.as_str() {
            "srun" => srun::run(&words),
            "scontrol" => scontrol::run(&socket, &words).map(|()| ExitCode::SUCCESS),
            "sinfo" => sinfo::run(&socket, &words).map(|()| ExitCode::SUCCESS),
            "sacct" => sacct::run(&socket, &words).map(|()| ExitCode::SUCCESS),
            _ => {
                let why = Words::read(&words).err().unwrap_or_else(|| "is not known".to_owned());
                Err(UsageError::flag(name, why).into())
            }
        }
    }
}

/// The name of the one node.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What a program of Slurm's is asked that clap reads: its help and its errors are its own.
fn read<T: clap::Parser>(name: &'static str, words: &[OsString]) -> T {
    let words = [OsString::from(name)].into_iter().chain(words.iter().cloned());
    T::parse_from(words)
}
