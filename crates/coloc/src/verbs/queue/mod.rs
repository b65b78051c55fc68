//! `coloc queue`: the tasks.

mod fields;
mod fold;
mod format;
mod rows;

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::{CliError, UsageError};
use crate::live::reconnect::Reconnect;
use crate::output::terminal::width;
use crate::output::to_stdout;
use crate::output::visible::visible;
use crate::parse::states::StateWish;
use clap::Args;
use coloc_api::SCHEMA;
use coloc_api::client::{Client, Wanted, Whose};
use coloc_api::moment::Moment;
use coloc_api::view::TaskView;
use coloc_model::TaskState;
use fold::Folding;
use format::{Format, Sort};
use rows::Rows;
use std::borrow::Cow;
use std::io::Write as _;
use std::time::Duration;

/// List tasks
#[derive(Args, Debug, Default)]
#[command(args_override_self = true)]
pub(crate) struct Queue {
    /// Ended tasks too
    #[arg(long)]
    all: bool,
    /// Only these users'
    #[arg(short = 'u', long, value_name = "NAMES", value_delimiter = ',')]
    user: Vec<String>,
    /// Only tasks of these names
    #[arg(short = 'n', long, value_name = "NAMES", value_delimiter = ',')]
    name: Vec<String>,
    /// Only mine
    #[arg(long, conflicts_with = "user")]
    me: bool,
    /// Only these: 7, 3-9, 1,4-6
    #[arg(short = 'j', long, alias = "job", value_name = "TASKS")]
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
    /// A line for each task of an array, instead of one for all that follow each other
    #[arg(short = 'r', long)]
    array: bool,
    /// When they are expected to start and to end, and what that rests on
    #[arg(long, visible_alias = "start", conflicts_with_all = ["all", "json", "noheader"])]
    expected: bool,
    /// A line for each task, such as "%.8i %.20j %T", with squeue's letters
    #[arg(short = 'o', long, value_name = "FORMAT", conflicts_with_all = ["expected", "json"])]
    format: Option<Format>,
    /// The same by names, such as JobID:8,Name:20,State
    #[arg(short = 'O', long = "Format", value_name = "NAMES", value_parser = Format::of_names, conflicts_with_all = ["expected", "json", "format"])]
    named_format: Option<Format>,
    /// As squeue -l
    #[arg(short = 'l', long, conflicts_with_all = ["expected", "json", "format", "named_format"])]
    long: bool,
    /// In this order: names such as priority, user, time, gpus, submitted, or squeue's letters; with - before those that fall
    #[arg(short = 'S', long, value_name = "FIELDS", allow_hyphen_values = true, conflicts_with_all = ["expected", "json"])]
    sort: Option<Sort>,
    /// List again every so many seconds [default: 2]
    #[arg(short = 'i', long, visible_alias = "iterate", value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = seconds)]
    watch: Option<Duration>,
    /// Leave the header out
    #[arg(long)]
    noheader: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// As squeue
    #[arg(long, hide = true)]
    slurm: bool,
    #[command(flatten)]
    socket: SocketArg,
}

/// Tasks are asked one by one for what lists do not tell: of a longer list that is left out.
const MOST_ASKED: usize = 500;

/// Where squeue looks for its form, and how that is read.
type ParseFormat = fn(&str) -> Result<Format, String>;
const FORMATS: [(&str, ParseFormat); 2] =
    [("SQUEUE_FORMAT", str::parse), ("SQUEUE_FORMAT2", Format::of_names)];

/// Seconds, a tenth of one at least.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.1..=86_400.0).contains(s));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("{text:?}: expected seconds, such as 2"))
}

impl Queue {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let Some(period) = self.watch else { return self.list() };
        self.list()?;
        loop {
            std::thread::sleep(period);
            // A daemon that was there once may come back.
            Reconnect::default().again(|| self.list())?;
        }
    }

    fn list(&self) -> Result<(), CliError> {
        let whose = match self.user.as_slice() {
            [user] => Whose::User(user),
            _ if self.me => Whose::Mine,
            _ => Whose::Everybody,
        };
        let all = self.all || StateWish::names_an_end(&self.states);
        let wanted = Wanted { all, since_s: 0.0, whose };
        let mut client = self.socket.connect()?;
        if self.watch.is_some() && width().is_some() {
            // Where it was, over what was there.
            print!("\x1b[H\x1b[2J");
        }
        let ids = self.jobs.as_ref().map(|jobs| resolve(&mut client, std::slice::from_ref(jobs)));
        let ids = ids.transpose()?;
        // An array goes by the id of its first task, as Slurm has it.
        let named = |id: u32| ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let one_of =
            |wishes: &[String], text: &str| wishes.is_empty() || wishes.iter().any(|w| w == text);
        let meant = |id: u32, array: Option<u32>, state: TaskState, name: &str, user: &str| {
            (named(id) || (self.slurm && array.is_some_and(named)))
                && StateWish::any(&self.states, state)
                && one_of(&self.name, name)
                && one_of(&self.user, user)
        };
        let is_meant =
            |task: &TaskView| meant(task.id, task.array_id, task.state, &task.name, &task.user);
        if self.expected {
            return super::expected::print(&mut client, &wanted, is_meant);
        }
        if self.json {
            return print_json(&mut client, &wanted, |task| {
                meant(task.id, task.array_id, task.state, &task.name, &task.user)
            });
        }
        let line = self.line()?;
        if self.sort.is_some() || line.is_some() {
            let mut tasks = client.list_of(&wanted)?;
            tasks.retain(is_meant);
            return self.print_lines(&mut client, tasks, line.as_ref());
        }
        if !self.noheader && !self.slurm {
            tell_notices(&mut client);
        }
        let mut table = self.table(Moment::now());
        client.each_task(&wanted, |task| {
            if meant(task.id, task.array_id, task.state, &task.name, &task.user) {
                table.push(&task);
            }
        })?;
        table.rows().print(&mut std::io::stdout().lock()).map_err(to_stdout)
    }

    fn table(&self, now: Moment) -> Folding {
        Folding::new(Rows::new(width(), !self.noheader), now, self.array || self.slurm)
    }

    /// The form of a line that was asked for; squeue has one of its own, or that of its variables.
    fn line(&self) -> Result<Option<Format>, CliError> {
        let said = self.format.clone().or_else(|| self.named_format.clone());
        let said = said.or_else(|| self.long.then(Format::long));
        if said.is_some() || !self.slurm {
            return Ok(said);
        }
        for (name, parse) in FORMATS {
            let told = std::env::var(name).ok().filter(|format| !format.is_empty());
            if let Some(format) = told {
                let wrong = |why| CliError::from(UsageError::flag(name, why));
                return parse(&format).map_err(wrong).map(Some);
            }
        }
        Ok(Some(Format::usual()))
    }

    /// Tasks in an order, or a form, of one's own.
    fn print_lines(
        &self,
        client: &mut Client,
        mut tasks: Vec<TaskView>,
        format: Option<&Format>,
    ) -> Result<(), CliError> {
        let now = Moment::now();
        if let Some(sort) = &self.sort {
            sort.sort(&mut tasks, now.secs());
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        let Some(format) = format else {
            let mut table = self.table(now);
            tasks.iter().for_each(|task| table.push(task));
            return table.rows().print(&mut out).map_err(to_stdout);
        };
        let header = (!self.noheader).then(|| format.header());
        let asks = format.asks_each() && tasks.len() <= MOST_ASKED;
        let mut rows = Vec::with_capacity(tasks.len());
        for task in &tasks {
            let more = asks.then(|| client.show(task.id)).transpose()?;
            rows.push(format.row(task, more.as_ref(), now.secs()));
        }
        let mut lines = header.into_iter().chain(rows);
        lines
            .try_for_each(|line| writeln!(out, "{line}"))
            .and_then(|()| out.flush())
            .map_err(to_stdout)
    }
}

/// What keeps tasks from starting, or GPUs from taking them, beside the queue itself.
fn tell_notices(client: &mut Client) {
    // A daemon that does not tell is asked for its tasks all the same.
    let faults = client.status().map(|status| status.faults).unwrap_or_default();
    for fault in faults {
        eprintln!("coloc: {}", visible(&fault.text));
    }
}

/// Tasks as JSON, each on a line of its own, as they come.
fn print_json(
    client: &mut Client,
    wanted: &Wanted<'_>,
    meant: impl Fn(&TaskView<Cow<'_, str>>) -> bool,
) -> Result<(), CliError> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    // Nothing is printed before there is an answer.
    let head = format!("{{\"schema\":{SCHEMA},\"tasks\":[\n");
    let (mut before, mut printed) = (head.as_str(), Ok(()));
    client.each_task(wanted, |task| {
        if printed.is_ok() && meant(&task) {
            printed = out
                .write_all(before.as_bytes())
                .and_then(|()| serde_json::to_writer(&mut out, &task).map_err(Into::into));
            before = ",\n";
        }
    })?;
    let head = if before == head { before } else { "" };
    printed
        .and_then(|()| writeln!(out, "{head}\n]}}"))
        .and_then(|()| out.flush())
        .map_err(to_stdout)
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
