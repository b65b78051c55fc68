//! `coloc logs`: what a task says.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use clap::Args;
use coloc_daemon::client::Client;
use coloc_daemon::record::Phase;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// How often a log is asked for more.
const PERIOD: Duration = Duration::from_millis(100);

/// Print a task's output
#[derive(Args, Debug)]
pub(crate) struct Logs {
    #[command(flatten)]
    socket: SocketArg,
    /// Go on until the task has ended
    #[arg(short, long)]
    follow: bool,
    /// What it said in this attempt, the first being 1 [default: the last]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    #[command(flatten)]
    reconnect: Reconnect,
    /// The task
    task: Selection,
}

impl Logs {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let follow = self.follow.then_some(self.reconnect);
        for id in resolve(&mut client, &[self.task])? {
            copy(&mut client, id, self.attempt, follow)?;
        }
        Ok(())
    }
}

/// Copies a log to standard output, to its end or, through all attempts from the given one on and through restarts of
/// the daemon, to the task's.
pub(crate) fn copy(
    client: &mut Client,
    id: u32,
    mut attempt: Option<u32>,
    follow: Option<Reconnect>,
) -> Result<(), CliError> {
    let failed = |source| CliError::Write { file: PathBuf::from("standard output"), source };
    let mut offset = 0;
    loop {
        let part = match follow {
            Some(reconnect) => reconnect.ask(client, |client| client.log(id, attempt, offset))?,
            None => client.log(id, attempt, offset)?,
        };
        if part.offset > offset {
            eprintln!(
                "coloc: {} bytes of output are gone: its log was too long",
                part.offset - offset
            );
        }
        (offset, attempt) = (part.offset + part.bytes.len() as u64, Some(part.attempt));
        let mut out = std::io::stdout().lock();
        out.write_all(&part.bytes).and_then(|()| out.flush()).map_err(failed)?;
        if !part.bytes.is_empty() {
            continue;
        }
        // Where all attempts write to one file, there is but one to follow.
        if follow.is_some() && part.attempt > 0 && part.attempts > part.attempt {
            eprintln!("coloc: task {id} is started again, attempt {}", part.attempt + 1);
            (offset, attempt) = (0, Some(part.attempt + 1));
            continue;
        }
        if follow.is_none() || part.state.is_some_and(Phase::is_over) {
            return Ok(());
        }
        std::thread::sleep(PERIOD);
    }
}
