//! `coloc shell`: an allocation with a shell on it, as salloc gives one.

use crate::args::live::SocketArg;
use crate::args::task::TaskArgs;
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use crate::verbs::attach::DetachArg;
use crate::verbs::wait::on_a_terminal;
use clap::Args;
use std::process::ExitCode;

/// Where a user has none.
const USUAL: &str = "/bin/sh";

/// Get GPUs and a shell on them: `run --pty` with your shell
///
/// It waits until there is room, and says what for. To exit the shell gives the GPUs back; Ctrl-P Ctrl-Q leaves it running, and
/// `coloc attach` comes back.
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Shell {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    #[command(flatten)]
    keys: DetachArg,
    #[command(flatten)]
    reconnect: Reconnect,
    #[command(flatten)]
    socket: SocketArg,
}

impl Shell {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let Shell { socket, reconnect, keys, mut task } = self;
        if task.lacks_a_command() {
            let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty());
            task.command = vec![shell.unwrap_or_else(|| USUAL.into())];
        }
        on_a_terminal(socket, reconnect, keys, task, "shell")
    }
}
