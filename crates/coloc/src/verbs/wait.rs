//! `coloc wait` and `coloc run`: stay until tasks have ended, and end as they did.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::args::task::TaskArgs;
use crate::error::CliError;
use crate::verbs::logs;
use clap::Args;
use coloc_daemon::owner::TaskDetail;
use coloc_daemon::record::Phase;
use std::process::ExitCode;

/// Exit codes for ends that have no code of their own; `docs/commands.md` lists them.
const TIMED_OUT: u8 = 124;
const CANCELLED: u8 = 125;
const OUT_OF_MEMORY: u8 = 126;
const LOST: u8 = 123;

/// Wait until tasks have ended; the exit code is that of the first that failed
#[derive(Args, Debug)]
pub(crate) struct Wait {
    #[command(flatten)]
    socket: SocketArg,
    /// The tasks: 7, 3-9, last or all
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<Selection>,
}

impl Wait {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let mut client = self.socket.connect()?;
        let mut code = 0;
        for id in resolve(&mut client, &self.tasks)? {
            let ended = exit_code(&client.wait(id)?);
            if code == 0 {
                code = ended;
            }
        }
        Ok(ExitCode::from(code))
    }
}

/// Submit a task, show its output, and end as it does
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Run {
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
}

impl Run {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let submission = self.task.submission()?;
        let mut client = self.socket.connect()?;
        let ids = client.submit(&submission)?.ids;
        let mut code = 0;
        for id in ids {
            logs::copy(&mut client, id, Some(1), true)?;
            let task = client.wait(id)?;
            let ended = exit_code(&task);
            if task.task.state != Phase::Completed {
                let why = task.task.reason.unwrap_or_default();
                eprintln!("coloc: task {id} is {}: {why}", task.task.state);
            }
            if code == 0 {
                code = ended;
            }
        }
        Ok(ExitCode::from(code))
    }
}

fn exit_code(task: &TaskDetail) -> u8 {
    let own = task.task.exit_code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    match task.task.state {
        Phase::Completed => 0,
        Phase::TimedOut => TIMED_OUT,
        Phase::Cancelled => CANCELLED,
        Phase::OutOfMemory => OUT_OF_MEMORY,
        Phase::Lost => LOST,
        _ => own.max(1),
    }
}
