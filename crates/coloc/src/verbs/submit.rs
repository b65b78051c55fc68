//! `coloc submit`: hand a task over to the daemon.

use crate::args::live::SocketArg;
use crate::args::task::TaskArgs;
use crate::error::CliError;
use crate::live::reconnect::Reconnect;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_daemon::api::Submitted;

/// Submit a task: a command, or a script with #COLOC or #SBATCH lines
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Submit {
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Print the id alone
    #[arg(long)]
    parsable: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Answer as sbatch does, and put the output where it does
    #[arg(long, hide = true)]
    pub(crate) slurm: bool,
}

impl Submit {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut submission = self.task.submission()?;
        if self.slurm {
            let pattern =
                if submission.array.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
            submission.spec.output.get_or_insert_with(|| pattern.into());
        }
        let mut client = self.socket.connect()?;
        let submitted: Submitted = self.reconnect.submit(&mut client, &submission)?;
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                ids: &'a [u32],
            }
            return Answer { body: &Body { ids: &submitted.ids }, wall_s: None }.print();
        }
        let first = submitted.ids.first().copied().unwrap_or_default();
        match (self.parsable, submitted.ids.len()) {
            (true, _) => print_text(&first.to_string()),
            (false, _) if self.slurm => print_text(&format!("Submitted batch job {first}")),
            (false, 1) => print_text(&format!("Submitted task {first}")),
            (false, many) => {
                let last = submitted.ids.last().copied().unwrap_or_default();
                print_text(&format!("Submitted {many} tasks, {first}-{last}"))
            }
        }
    }
}
