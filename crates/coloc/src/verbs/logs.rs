//! `coloc logs`: what a task says.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use crate::output::sanitize::Sanitizer;
use clap::Args;
use coloc_api::client::Client;
use coloc_model::TaskState;
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
    /// Also what a terminal would obey, such as commands to its clipboard; where it is not shown on one, everything is written
    /// as it is
    #[arg(long)]
    raw: bool,
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
            copy(&mut client, id, self.attempt, follow, self.raw)?;
        }
        Ok(())
    }
}

/// Copies a log to standard output, without what a terminal would obey unless it is to be raw, to its end or, through all attempts from the given one on and through restarts of
/// the daemon, to the task's.
pub(crate) fn copy(
    client: &mut Client,
    id: u32,
    attempt: Option<u32>,
    follow: Option<Reconnect>,
    raw: bool,
) -> Result<(), CliError> {
    let mut filter = Sanitizer::for_stdout(raw);
    let copied = copy_parts(client, id, attempt, follow, &mut filter);
    // What is shown after it has the colours of before, whatever happened.
    let end = filter.as_mut().map_or(&b""[..], Sanitizer::end);
    let mut out = std::io::stdout().lock();
    let ended = out.write_all(end).and_then(|()| out.flush());
    copied.and(ended.map_err(failed))
}

fn failed(source: std::io::Error) -> CliError {
    CliError::Write { file: PathBuf::from("standard output"), source }
}

fn copy_parts(
    client: &mut Client,
    id: u32,
    mut attempt: Option<u32>,
    follow: Option<Reconnect>,
    filter: &mut Option<Sanitizer>,
) -> Result<(), CliError> {
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
        let shown = filter.as_mut().map(|filter| filter.filter(&part.bytes));
        out.write_all(shown.as_ref().unwrap_or(&part.bytes))
            .and_then(|()| out.flush())
            .map_err(failed)?;
        if !part.bytes.is_empty() {
            continue;
        }
        // Where all attempts write to one file, there is but one to follow.
        if follow.is_some() && part.attempt > 0 && part.attempts > part.attempt {
            eprintln!("coloc: task {id} is started again, attempt {}", part.attempt + 1);
            (offset, attempt) = (0, Some(part.attempt + 1));
            continue;
        }
        if follow.is_none() || part.state.is_some_and(TaskState::is_over) {
            return Ok(());
        }
        std::thread::sleep(PERIOD);
    }
}
