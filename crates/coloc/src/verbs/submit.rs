//! `coloc submit`: hand a task over to the daemon.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::args::task::TaskArgs;
use crate::error::{CliError, UsageError};
use crate::live::reconnect::Reconnect;
use crate::output::visible::visible;
use crate::output::{Answer, print_text};
use crate::parse::dependencies::LAST;
use crate::submission::presence;
use crate::verbs::wait::until_ended;
use clap::Args;
use coloc_api::answer::Submitted;
use coloc_api::client::Client;
use coloc_api::request::Submission;
use coloc_model::{TaskId, TaskState};
use std::process::ExitCode;

/// Submit a task: a command, or a script with #COLOC or #SBATCH lines
#[derive(Args, Debug)]
#[command(args_override_self = true)]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) task: TaskArgs,
    /// Stay until the tasks have ended; the exit code is that of the first that failed
    #[arg(short = 'W', long, help_heading = None::<&str>)]
    wait: bool,
    /// Tell nothing but errors
    #[arg(short = 'Q', long, help_heading = None::<&str>)]
    quiet: bool,
    /// Print the id alone
    #[arg(long, help_heading = None::<&str>)]
    parsable: bool,
    /// Print JSON
    #[arg(long, help_heading = None::<&str>)]
    json: bool,
    /// Answer as sbatch does, and put the output where it does
    #[arg(long, hide = true)]
    pub(crate) slurm: bool,
    #[command(flatten)]
    socket: SocketArg,
    #[command(flatten)]
    reconnect: Reconnect,
}

impl Submit {
    pub(crate) fn run(self) -> Result<ExitCode, CliError> {
        let mut submission = self.task.clone().submission()?;
        if self.slurm {
            let pattern =
                if submission.array.is_some() { "slurm-%A_%a.out" } else { "slurm-%j.out" };
            submission.spec.output.get_or_insert_with(|| pattern.into());
        }
        if self.socket.host().is_none() {
            presence::check(&submission.spec)?;
        }
        let mut client = self.socket.connect()?;
        name_the_last(&mut client, &mut submission)?;
        let submitted: Submitted = self.reconnect.submit(&mut client, &submission)?;
        self.tell(&submitted)?;
        if !submission.spec.after.is_empty() {
            warn_of_the_impossible(&mut client, &submitted.ids);
        }
        if !self.wait {
            return Ok(ExitCode::SUCCESS);
        }
        let (_, code) = until_ended(self.reconnect, &mut client, &submitted.ids)?;
        Ok(ExitCode::from(code))
    }

    fn tell(&self, submitted: &Submitted) -> Result<(), CliError> {
        if self.quiet && !self.json {
            return Ok(());
        }
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                ids: &'a [u32],
                memory_rule: Option<&'a str>,
            }
            let Submitted { ids, memory_rule, .. } = submitted;
            let body = Body { ids, memory_rule: memory_rule.as_deref() };
            return Answer { body: &body, wall_s: None }.print();
        }
        if let Some(rule) = submitted.memory_rule.as_ref().filter(|_| !self.parsable && !self.slurm)
        {
            eprintln!("coloc: memory {}", visible(rule));
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

/// Says which task `last` is among those that a submission waits for.
pub(crate) fn name_the_last(
    client: &mut Client,
    submission: &mut Submission,
) -> Result<(), CliError> {
    for dependency in submission.spec.after.iter_mut().filter(|each| each.task == LAST) {
        let last = resolve(client, &[Selection::Last])?;
        dependency.task = TaskId(last.first().copied().ok_or(UsageError::NoTaskYet)?);
    }
    Ok(())
}

/// A task that waits for what can no longer happen is cancelled as soon as it is looked at: its user hears of it now.
fn warn_of_the_impossible(client: &mut Client, ids: &[u32]) {
    let task = ids.first().and_then(|&id| client.show(id).ok()).map(|shown| shown.task);
    if let Some(task) = task.filter(|task| task.state == TaskState::Cancelled) {
        let why = task.reason.unwrap_or_default();
        eprintln!("coloc: task {} was cancelled at once: {}", task.id, visible(&why));
    }
}
