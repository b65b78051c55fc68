//! `coloc logs`: what a task says.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use clap::Args;
use coloc_daemon::client::Client;
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
    /// The task
    task: Selection,
}

impl Logs {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        for id in resolve(&mut client, &[self.task])? {
            copy(&mut client, id, self.follow)?;
        }
        Ok(())
    }
}

/// Copies a log to standard output, to its end or to the task's.
pub(crate) fn copy(client: &mut Client, id: u32, follow: bool) -> Result<(), CliError> {
    let failed = |source| CliError::Write { file: PathBuf::from("standard output"), source };
    let mut offset = 0;
    loop {
        let (part, state) = client.log(id, offset)?;
        offset += part.len() as u64;
        let mut out = std::io::stdout().lock();
        out.write_all(&part).and_then(|()| out.flush()).map_err(failed)?;
        let over = ["completed", "failed", "cancelled", "timed_out", "out_of_memory", "lost"];
        if part.is_empty() && (!follow || over.contains(&state.as_str())) {
            return Ok(());
        }
        if part.is_empty() {
            std::thread::sleep(PERIOD);
        }
    }
}
