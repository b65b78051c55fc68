//! `coloc queue`: the tasks.

mod rows;

use crate::args::live::{Selection, SocketArg, resolve};
use crate::args::states::StateWish;
use crate::error::CliError;
use crate::output::terminal::width;
use crate::output::{Answer, to_stdout};
use clap::Args;
use coloc_daemon::client::{Client, Wanted, Whose};
use coloc_daemon::owner::TaskView;
use coloc_daemon::record::{Moment, Phase};
use rows::Rows;
use std::io::Write as _;

/// List tasks
#[derive(Args, Debug, Default)]
#[command(args_override_self = true)]
pub(crate) struct Queue {
    #[command(flatten)]
    socket: SocketArg,
    /// Ended tasks too
    #[arg(long)]
    all: bool,
    /// Only this user's
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// Only mine
    #[arg(long, conflicts_with = "user")]
    me: bool,
    /// Only these: 7, 3-9, 1,4-6
    #[arg(short = 'j', long, value_name = "TASKS")]
    jobs: Option<Selection>,
    /// Only in these states: pending, running, or Slurm's letters such as PD,R
    #[arg(
        short = 't',
        long,
        visible_alias = "state",
        value_name = "STATES",
        value_delimiter = ','
    )]
    states: Vec<StateWish>,
    /// When they are expected to start and to end, and what that rests on
    #[arg(long, visible_alias = "start", conflicts_with_all = ["all", "json", "noheader"])]
    expected: bool,
    /// Leave the header out
    #[arg(long)]
    noheader: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// As squeue
    #[arg(long, hide = true)]
    slurm: bool,
}

impl Queue {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let whose = match &self.user {
            Some(user) => Whose::User(user),
            None if self.me => Whose::Mine,
            None => Whose::Everybody,
        };
        let wanted = Wanted { all: self.all, since_s: 0.0, whose };
        let mut client = self.socket.connect()?;
        let ids = self.jobs.as_ref().map(|jobs| resolve(&mut client, std::slice::from_ref(jobs)));
        let ids = ids.transpose()?;
        // An array goes by the id of its first task, as Slurm has it.
        let named = |id: u32| ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let meant = |id: u32, array: Option<u32>, state: Phase| {
            (named(id) || (self.slurm && array.is_some_and(named)))
                && StateWish::any(&self.states, state)
        };
        if self.expected {
            return super::expected::print(&mut client, &wanted, |task| {
                meant(task.id, task.array_id, task.state)
            });
        }
        if self.json && (ids.is_some() || !self.states.is_empty()) {
            return print_some(&mut client, &wanted, |task| {
                meant(task.id, task.array_id, task.state)
            });
        }
        if self.json {
            return print_json(&mut client, &wanted);
        }
        let mut table = Rows::new(width(), !self.noheader);
        let now = Moment::now();
        client.each_task(&wanted, |task| {
            if meant(task.id, task.array_id, task.state) {
                table.push(&task, now);
            }
        })?;
        table.print(&mut std::io::stdout().lock()).map_err(to_stdout)
    }
}

/// The daemon's answer is what is printed: it is copied, not read.
fn print_json(client: &mut Client, wanted: &Wanted<'_>) -> Result<(), CliError> {
    let mut out = std::io::stdout().lock();
    let mut printed = Ok(());
    client.list_json(wanted, |piece| {
        if printed.is_ok() {
            printed = out.write_all(piece);
        }
        Ok(())
    })?;
    printed.and_then(|()| writeln!(out)).and_then(|()| out.flush()).map_err(to_stdout)
}

/// Some of the tasks, which have to be read for that.
fn print_some(
    client: &mut Client,
    wanted: &Wanted<'_>,
    meant: impl Fn(&TaskView) -> bool,
) -> Result<(), CliError> {
    #[derive(serde::Serialize)]
    struct Body {
        tasks: Vec<TaskView>,
    }
    let mut tasks: Vec<TaskView> = Vec::new();
    client.each_task(wanted, |task| tasks.push(task.owned()))?;
    tasks.retain(meant);
    Answer { body: &Body { tasks }, wall_s: None }.print()
}

/// A task's id, with its place in an array.
pub(crate) fn id_text(task: &TaskView) -> String {
    match (task.array_id, task.array_index) {
        (Some(array), Some(index)) => format!("{} ({array}_{index})", task.id),
        _ => task.id.to_string(),
    }
}

/// `1:02:03`, `2-03:04:05`.
pub(crate) fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hours, minutes, seconds) = (rest / 3600, rest % 3600 / 60, rest % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}:{seconds:02}"),
        (0, _) => format!("{hours}:{minutes:02}:{seconds:02}"),
        _ => format!("{days}-{hours:02}:{minutes:02}:{seconds:02}"),
    }
}
