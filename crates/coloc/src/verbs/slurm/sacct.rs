//! `sacct`: tasks that run or have ended, by Slurm's columns.

mod columns;

use super::host_name;
use super::read;
use super::scontrol::exit;
use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::local_time::LocalTime;
use crate::output::print_text;
use crate::output::visible::visible;
use crate::parse::begin_time::begin;
use crate::parse::states::{StateWish, slurms};
use clap::Parser;
use coloc_api::client::{Client, Wanted, Whose};
use coloc_api::moment::Moment;
use coloc_api::view::TaskView;
use coloc_model::TaskState;
use columns::{BRIEF, Column, LONG, USUAL, columns, names};
use std::ffi::OsString;

/// What sacct is asked.
#[derive(Parser, Debug)]
#[command(name = "sacct", disable_help_flag = true, version, args_override_self = true)]
struct Asked {
    /// Only these
    #[arg(short = 'j', long, value_name = "TASKS", value_delimiter = ',')]
    jobs: Vec<Selection>,
    /// Only these users'
    #[arg(short = 'u', long, visible_alias = "uid", value_name = "NAMES", value_delimiter = ',')]
    user: Vec<String>,
    /// Those of all users
    #[arg(short = 'a', long)]
    allusers: bool,
    /// Only those that ended then or later, or have not ended [default: since midnight]
    #[arg(short = 'S', long, value_name = "WHEN", value_parser = past)]
    starttime: Option<Moment>,
    /// Only those that were submitted before
    #[arg(short = 'E', long, value_name = "WHEN", value_parser = past)]
    endtime: Option<Moment>,
    /// Only in these states
    #[arg(short = 's', long, value_name = "STATES", value_delimiter = ',')]
    state: Vec<StateWish>,
    /// Only tasks of these names
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    name: Vec<String>,
    /// Columns, such as JobID,JobName%30,State
    #[arg(short = 'o', long, value_name = "COLUMNS")]
    format: Option<String>,
    /// Columns with | between and after them
    #[arg(short = 'p', long)]
    parsable: bool,
    /// Columns with | between them
    #[arg(short = 'P', long)]
    parsable2: bool,
    /// What stands between columns then
    #[arg(long, default_value = "|")]
    delimiter: String,
    /// Leave the header out
    #[arg(short = 'n', long)]
    noheader: bool,
    /// A few columns
    #[arg(short = 'b', long)]
    brief: bool,
    /// Many columns
    #[arg(short = 'l', long)]
    long: bool,
    /// Which columns there are
    #[arg(short = 'e', long)]
    helpformat: bool,
    #[arg(short = 'X', long, hide = true)]
    allocations: bool,
    #[arg(short = 'D', long, hide = true)]
    duplicates: bool,
    #[arg(short = 'L', long, hide = true)]
    allclusters: bool,
    #[arg(short = 'r', long, hide = true)]
    partition: Option<String>,
    #[arg(short = 'A', long, hide = true)]
    accounts: Option<String>,
    #[arg(long, hide = true)]
    units: Option<String>,
    /// Print help
    #[arg(short = 'h', long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// A moment, also `now-7days`, `today`, `01/20`, `2027-01-20T12:34:56`.
fn past(text: &str) -> Result<Moment, String> {
    let fail = || format!("{text:?}: expected now-7days, today, 2027-01-20 or 2027-01-20T12:34");
    if let Some(span) = text.strip_prefix("now-") {
        let ahead = begin(&format!("now+{span}")).map_err(|_| fail())?;
        let now = Moment::now();
        return Ok(Moment(now.0.saturating_sub(ahead.0.saturating_sub(now.0))));
    }
    match text {
        "today" | "midnight" => Ok(Moment((midnight() * 1000.0) as u64)),
        _ => dated(text).map_or_else(|| begin(text).map_err(|_| fail()), Ok),
    }
}

/// `2027-01-20` and `2027-01-20T12:34:56`, also those that are over.
fn dated(text: &str) -> Option<Moment> {
    let (day, time) = text.split_once('T').unwrap_or((text, "0:0"));
    let mut day = day.split('-').map(|part| part.parse::<i32>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    let mut time = time.split(':').map(|part| part.parse::<i32>().ok());
    let (hour, minute) = (time.next()??, time.next()??);
    let second = time.next().unwrap_or(Some(0))?;
    let seconds = LocalTime { year, month, day, hour, minute, second }.seconds()?;
    u64::try_from(seconds).ok()?.checked_mul(1000).map(Moment)
}

/// The beginning of this day, in seconds since 1970.
fn midnight() -> f64 {
    let now = Moment::now().secs();
    let start = LocalTime::of(now as i64)
        .and_then(|today| LocalTime { hour: 0, minute: 0, second: 0, ..today }.seconds());
    start.map_or(0.0, |start| start as f64)
}

/// What a task asked of the machine, where that is wanted.
#[derive(Clone, Default, Debug)]
struct Host {
    cpus: Option<u32>,
    copies: Option<u32>,
    memory: Option<u64>,
    energy_j: Option<f64>,
    directory: String,
    output: String,
}

/// Columns that a list of tasks does not tell.
const OF_HOST: [&str; 10] = [
    "AllocCPUS",
    "NCPUS",
    "ReqCPUS",
    "NTasks",
    "ReqMem",
    "CPUTime",
    "CPUTimeRAW",
    "ConsumedEnergy",
    "WorkDir",
    "StdOut",
];
/// Tasks are asked one by one for these: of a longer list they are left out.
const MOST_ASKED: usize = 500;

fn text(task: &TaskView, host_need: &Host, column: &str, now: f64) -> String {
    let moment = |at: Option<f64>| {
        let known = at.and_then(|at| LocalTime::of(at as i64));
        known.map_or_else(|| "Unknown".to_owned(), |at| at.to_string())
    };
    let began = task.started_s.filter(|_| task.state != TaskState::Pending);
    let elapsed = task.ran_s(now).unwrap_or(0.0);
    let tres = || format!("billing=1,gres/gpu={},node=1", task.gpus);
    match column {
        "JobID" => match (task.array_id, task.array_index) {
            (Some(array), Some(index)) => format!("{array}_{index}"),
            _ => task.id.to_string(),
        },
        "JobIDRaw" => task.id.to_string(),
        "JobName" => visible(&task.name).into_owned(),
        "Partition" | "Cluster" => "coloc".to_owned(),
        "Account" | "User" => visible(&task.user).into_owned(),
        "AllocCPUS" | "NCPUS" | "ReqCPUS" => host_need.cpus.unwrap_or(1).to_string(),
        "State" => slurms(task.state).to_uppercase(),
        "ExitCode" => exit(task.exit_code),
        "Elapsed" => span(elapsed),
        "ElapsedRaw" => format!("{elapsed:.0}"),
        "Submit" | "Eligible" => moment(Some(task.submitted_s)),
        "Start" => moment(began),
        "End" => moment(task.ended_s),
        "Timelimit" => task.time_limit_s.map_or_else(|| "UNLIMITED".to_owned(), span),
        "TimelimitRaw" => {
            task.time_limit_s.map_or(String::new(), |limit| format!("{:.0}", limit / 60.0))
        }
        "NNodes" | "AllocNodes" => "1".to_owned(),
        "CPUTime" => span(elapsed * f64::from(host_need.cpus.unwrap_or(1))),
        "CPUTimeRAW" => format!("{:.0}", elapsed * f64::from(host_need.cpus.unwrap_or(1))),
        "Planned" | "Reserved" => {
            let began = task.first_started_s.or(task.ended_s).unwrap_or(now);
            span(began - task.submitted_s)
        }
        "ConsumedEnergy" => host_need.energy_j.map_or(String::new(), |j| format!("{j:.0}")),
        "WorkDir" => visible(&host_need.directory).into_owned(),
        "StdOut" => visible(&host_need.output).into_owned(),
        "NodeList" if began.is_some() => host_name(),
        "NodeList" => "None assigned".to_owned(),
        "NTasks" => host_need.copies.unwrap_or(1).to_string(),
        "ReqMem" => host_need.memory.map_or_else(|| "0".to_owned(), |m| format!("{}M", m >> 20)),
        "ReqTRES" | "AllocTRES" => tres(),
        "ReqGRES" => format!("gpu:{}", task.gpus),
        "Priority" => task.priority.to_string(),
        "Restarts" => task.attempts.saturating_sub(1).to_string(),
        "Reason" => visible(task.reason.as_deref().unwrap_or("None")).into_owned(),
        _ => String::new(),
    }
}

/// `1-02:03:04`, with all places.
fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let clock = format!("{:02}:{:02}:{:02}", rest / 3600, rest % 3600 / 60, rest % 60);
    if days > 0 { format!("{days}-{clock}") } else { clock }
}

impl Asked {
    /// The tasks that are meant, the first first.
    fn tasks(&self, client: &mut Client) -> Result<Vec<TaskView>, CliError> {
        // Named tasks are told whenever they were.
        let usual = if self.jobs.is_empty() { midnight() } else { 0.0 };
        let since_s = self.starttime.map_or(usual, Moment::secs);
        let is_for_all = self.allusers || !self.jobs.is_empty() || self.user.len() > 1;
        let whose = match self.user.as_slice() {
            [user] => Whose::User(user),
            _ if is_for_all => Whose::Everybody,
            _ => Whose::Mine,
        };
        let ids = match self.jobs.is_empty() {
            true => None,
            false => Some(resolve(client, &self.jobs)?),
        };
        let mut tasks = client.list_of(&Wanted { all: true, since_s, whose })?;
        let named = |task: &TaskView| {
            ids.as_ref().is_none_or(|ids| {
                ids.contains(&task.id) || task.array_id.is_some_and(|array| ids.contains(&array))
            })
        };
        let one_of =
            |wishes: &[String], text: &str| wishes.is_empty() || wishes.iter().any(|w| w == text);
        tasks.retain(|task| {
            named(task)
                && StateWish::any(&self.state, task.state)
                && one_of(&self.user, &task.user)
                && one_of(&self.name, &task.name)
                && self.endtime.is_none_or(|end| task.submitted_s <= end.secs())
        });
        tasks.sort_by_key(|task| task.id);
        Ok(tasks)
    }

    fn render(&self, tasks: &[(TaskView, Host)], columns: &[Column], now: f64) -> String {
        let plain = self.parsable || self.parsable2;
        let line = |cells: Vec<String>| match plain {
            true => {
                let end = if self.parsable2 { "" } else { self.delimiter.as_str() };
                cells.join(&self.delimiter) + end
            }
            false => {
                let padded = cells.iter().zip(columns).map(|(cell, column)| {
                    let width = column.width;
                    // What is cut is marked, as sacct does.
                    let cell: String = match cell.chars().count() > width {
                        true => cell.chars().take(width.saturating_sub(1)).chain(['+']).collect(),
                        false => cell.clone(),
                    };
                    if column.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                });
                padded.collect::<Vec<_>>().join(" ")
            }
        };
        let mut lines = Vec::new();
        if !self.noheader {
            lines.push(line(columns.iter().map(|column| column.name.to_owned()).collect()));
            if !plain {
                lines.push(line(columns.iter().map(|column| "-".repeat(column.width)).collect()));
            }
        }
        let row = |(task, host): &(TaskView, Host)| {
            columns.iter().map(|column| text(task, host, column.name, now)).collect()
        };
        lines.extend(tasks.iter().map(|task| line(row(task))));
        lines.join("\n")
    }
}

pub(super) fn run(socket: &SocketArg, words: &[OsString]) -> Result<(), CliError> {
    let asked: Asked = read("sacct", words);
    if asked.helpformat {
        return print_text(&names().collect::<Vec<_>>().join("\n"));
    }
    let usual = match (asked.brief, asked.long) {
        (true, _) => BRIEF,
        (_, true) => LONG,
        _ => USUAL,
    };
    let columns = columns(asked.format.as_deref().unwrap_or(usual))?;
    let mut client = socket.connect()?;
    let tasks = asked.tasks(&mut client)?;
    let is_of_host = |column: &Column| OF_HOST.contains(&column.name);
    let asks = columns.iter().any(is_of_host) && tasks.len() <= MOST_ASKED;
    let mut rows = Vec::new();
    for task in tasks {
        let detail = asks.then(|| client.show(task.id)).transpose()?;
        let host = detail.map_or_else(Host::default, |detail| Host {
            cpus: detail.cpus,
            copies: detail.ntasks,
            memory: detail.host_mem_bytes,
            energy_j: detail.energy_j,
            directory: detail.directory.to_string_lossy().into_owned(),
            output: detail.log,
        });
        rows.push((task, host));
    }
    let told = asked.render(&rows, &columns, Moment::now().secs());
    if told.is_empty() { Ok(()) } else { print_text(&told) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_sacct_s() {
        let asked = |words: &[&str]| Asked::parse_from([&["sacct"], words].concat());
        let task = TaskView {
            id: 7,
            name: "a long name".to_owned(),
            user: "ann".to_owned(),
            state: TaskState::Completed,
            started_s: Some(10.0),
            ended_s: Some(3700.0),
            gpus: 2,
            exit_code: Some(0),
            ..TaskView::default()
        };
        let told = |words: &[&str], format: &str| {
            let columns = columns(format).expect("columns");
            asked(words).render(&[(task.clone(), Host::default())], &columns, 5000.0)
        };
        let plain = told(&["-P", "-n"], "jobid,jobname,State,Elapsed,ExitCode,ReqGRES");
        assert_eq!(plain, "7|a long name|COMPLETED|01:01:30|0:0|gpu:2");
        assert_eq!(told(&["-pn"], "JobID"), "7|");
        assert_eq!(told(&["-n"], "JobName%6,JobID%-3"), "a lon+ 7  ");
        assert_eq!(told(&["--noheader"], "User"), "      ann");
        assert!(told(&[], "JobID").starts_with("       JobID\n------------\n"));
        assert_eq!(told(&["-P", "-n"], "CPUTime,MaxRSS,QOS,User"), "01:01:30|||ann");
        assert!(columns("Nope").is_err() && columns("JobID%x").is_err());
        let host = Host {
            energy_j: Some(1.0),
            directory: "/".to_owned(),
            output: "/log".to_owned(),
            ..Host::default()
        };
        let limited = TaskView { time_limit_s: Some(60.0), ..task.clone() };
        assert!(
            columns::COLUMNS.iter().all(|(name, _)| !text(&limited, &host, name, 0.0).is_empty())
        );
    }

    #[test]
    fn days_are_read_as_sacct_reads_them() {
        let now = Moment::now();
        let week = past("now-7days").expect("a moment");
        assert!((now.secs() - week.secs() - 7.0 * 86_400.0).abs() < 5.0);
        assert!(
            past("2024-02-03").expect("a day") < past("2024-02-03T04:05:06").expect("a moment")
        );
        assert!(past("today").expect("a day").secs() <= now.secs());
        assert!(past("yore").is_err() && past("now-").is_err());
    }
}
