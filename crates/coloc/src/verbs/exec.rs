//! `coloc exec`: a command inside a running task's allocation.

use crate::args::live::{Selection, SocketArg, resolve_one};
use crate::error::{CliError, UsageError};
use crate::terminal::{self, DetachKeys, End, Session};
use crate::verbs::attach::needs_a_terminal;
use clap::Args;
use coloc_api::client::ClientError;
use coloc_api::request::ExecRequest;
use coloc_api::spec::TerminalSize;
use coloc_api::text::RawText;
use std::ffi::OsString;
use std::process::ExitCode;

/// As shells have it.
const CANNOT_START: u8 = 127;

/// Run a command inside the allocation of a running task: its user, environment, GPUs and control group
///
/// It ends with the task, and when this program does. Its exit code is this program's.
#[derive(Args, Debug)]
pub(crate) struct Exec {
    #[command(flatten)]
    socket: SocketArg,
    /// Give it a terminal
    #[arg(long)]
    pty: bool,
    /// Leave standard input alone: the command finds it empty
    #[arg(short = 'n', long, conflicts_with = "pty")]
    no_stdin: bool,
    /// The task
    task: Selection,
    /// The command
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Exec {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        if self.pty {
            needs_a_terminal("--pty", ": leave --pty out")?;
        }
        let mut client = self.socket.connect()?;
        let id = resolve_one(&mut client, &self.task)?;
        let size = terminal::size().unwrap_or(TerminalSize::USUAL);
        let request = ExecRequest {
            command: self.command.into_iter().map(RawText::from).collect(),
            terminal: self.pty.then_some(size),
            term: std::env::var("TERM").ok().filter(|_| self.pty),
        };
        let channel = match client.exec(id, &request) {
            Err(error) if error.code() == "not_started" => {
                eprintln!("coloc: {error}");
                return Ok(ExitCode::from(CANNOT_START));
            }
            channel => channel?,
        };
        let end = match self.pty {
            true => {
                terminal::on_leaving(|_| {});
                let none: DetachKeys =
                    "none".parse().map_err(|why| UsageError::flag("--pty", why))?;
                Session::new(&none, false)?.run(channel)?
            }
            false => {
                terminal::pipe_through(channel, !self.no_stdin).or_else(|error| match error {
                    CliError::Client(error) => Ok(End::Lost(error)),
                    error => Err(error),
                })?
            }
        };
        match end {
            End::Ended(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
            End::Detached => Ok(ExitCode::SUCCESS),
            End::Lost(error @ ClientError::Broken(_)) => Err(CliError::ExecLost(error)),
            End::Lost(error) => Err(error.into()),
        }
    }
}
