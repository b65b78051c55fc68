//! `coloc cancel`, `hold`, `release` and `requeue`: one wish for some tasks.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_daemon::client::Client;
use coloc_daemon::owner::Change;

/// Tasks to change
#[derive(Args, Debug)]
pub(crate) struct ChangeTasks {
    #[command(flatten)]
    socket: SocketArg,
    /// The tasks: 7, 3-9, last or all
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<Selection>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl ChangeTasks {
    pub(crate) fn run(self, change: Change) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let ids = resolve(&mut client, &self.tasks)?;
        apply(&mut client, &ids, change, self.json)
    }
}

/// Has the daemon change tasks, and says what became of it.
pub(crate) fn apply(
    client: &mut Client,
    ids: &[u32],
    change: Change,
    json: bool,
) -> Result<(), CliError> {
    let verb = match change {
        Change::Cancel => "Cancelled",
        Change::Hold => "Held",
        Change::Release => "Released",
        Change::Requeue => "Requeued",
        Change::Update(_) => "Updated",
    };
    let changed = client.change(ids, change)?;
    if json {
        // The daemon's answer has the version already.
        #[derive(serde::Serialize)]
        struct Body<'a> {
            done: &'a [u32],
            refused: &'a [(u32, String)],
        }
        let body = Body { done: &changed.done, refused: &changed.refused };
        Answer { body: &body, wall_s: None }.print()?;
    } else if !changed.done.is_empty() {
        let done: Vec<String> = changed.done.iter().map(ToString::to_string).collect();
        print_text(&format!("{verb} {}", done.join(", ")))?;
    }
    match changed.refused.as_slice() {
        [] => Ok(()),
        refused => {
            let why: Vec<&str> = refused.iter().map(|(_, why)| why.as_str()).collect();
            Err(CliError::Refused(why.join("\n")))
        }
    }
}
