//! `coloc queue`: the tasks.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_daemon::owner::TaskView;
use coloc_daemon::record::{Moment, Phase};
use std::fmt::Write as _;

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
    states: Vec<String>,
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
        let mut client = self.socket.connect()?;
        let mut tasks = client.list(self.all, 0.0)?.tasks;
        if let Some(user) = self.user.clone().or_else(|| self.me.then(my_name)) {
            tasks.retain(|task| task.user == user);
        }
        if let Some(jobs) = self.jobs {
            let ids = resolve(&mut client, &[jobs])?;
            // An array goes by the id of its first task, as Slurm has it.
            let named = |id: u32| ids.contains(&id);
            tasks.retain(|task| named(task.id) || (self.slurm && task.array_id.is_some_and(named)));
        }
        if !self.states.is_empty() {
            tasks.retain(|task| self.states.iter().any(|state| is_in(task.state, state)));
        }
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                tasks: &'a [TaskView],
            }
            return Answer { body: &Body { tasks: &tasks }, wall_s: None }.print();
        }
        let text = render(&tasks, Moment::now(), width());
        match self.noheader {
            true if tasks.is_empty() => Ok(()),
            true => print_text(text.split_once('\n').map_or("", |(_, rows)| rows)),
            false => print_text(&text),
        }
    }
}

/// The name of whoever runs this.
pub(crate) fn my_name() -> String {
    coloc_daemon::users::mine()
}

/// Whether a state is meant by a name, in our words or Slurm's letters.
pub(crate) fn is_in(state: Phase, name: &str) -> bool {
    let name = name.trim();
    name == "all"
        || name.eq_ignore_ascii_case(short(state))
        || name.eq_ignore_ascii_case(state.name())
        || name.eq_ignore_ascii_case(&state.name().replace('_', ""))
}

/// Columns of the terminal; `None` in a pipe, where nothing is cut.
fn width() -> Option<usize> {
    use std::io::IsTerminal as _;
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    std::io::stdout().is_terminal().then(|| columns().unwrap_or(120))
}

const HEADER: [&str; 9] =
    ["ID", "NAME", "USER", "ST", "TIME", "LIMIT", "GPUS", "GPU-MEM", "GPU(REASON)"];

/// A task's id, with its place in an array.
pub(crate) fn id_text(task: &TaskView) -> String {
    match (task.array_id, task.array_index) {
        (Some(array), Some(index)) => format!("{} ({array}_{index})", task.id),
        _ => task.id.to_string(),
    }
}

fn cells(task: &TaskView, now: Moment) -> [String; 9] {
    let began = task.started_s.filter(|_| !matches!(task.state, Phase::Pending));
    let until = task.ended_s.unwrap_or(now.secs());
    let memory = task.gpu_mem_bytes.or(task.estimate_bytes);
    let gib = |bytes: u64| format!("{:.1}G", bytes as f64 / (1u64 << 30) as f64);
    let last = match (&task.reason, task.gpu_ids.is_empty() || task.state.is_over()) {
        (Some(reason), _) => format!("({reason})"),
        (None, false) => task.gpu_ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
        (None, true) if task.state == Phase::Pending => "(waiting for a GPU)".to_owned(),
        (None, true) => String::new(),
    };
    [
        id_text(task),
        task.name.clone(),
        task.user.clone(),
        short(task.state).to_owned(),
        began.map_or("-".to_owned(), |began| clock(until - began)),
        task.time_limit_s.map_or("-".to_owned(), clock),
        task.gpus.to_string(),
        format!("{}/{}", memory.map_or("-".to_owned(), gib), gib(task.peak_bytes)),
        last,
    ]
}

/// Slurm's letters.
fn short(state: Phase) -> &'static str {
    match state {
        Phase::Pending => "PD",
        Phase::Launching => "CF",
        Phase::Running => "R",
        Phase::Preempting => "PR",
        Phase::Recovering => "RQ",
        Phase::Completed => "CD",
        Phase::Failed => "F",
        Phase::Cancelled => "CA",
        Phase::TimedOut => "TO",
        Phase::OutOfMemory => "OOM",
        Phase::Lost => "NF",
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

fn render(tasks: &[TaskView], now: Moment, width: Option<usize>) -> String {
    let rows: Vec<[String; 9]> = tasks.iter().map(|task| cells(task, now)).collect();
    let mut widths = HEADER.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    if width.is_some() {
        widths[1] = widths[1].min(32);
    }
    let mut text = String::new();
    let mut line = |row: &[String; 9]| {
        let mut columns = String::new();
        for (index, cell) in row.iter().enumerate() {
            let cell: String = match (width, index) {
                (Some(_), 1) => cell.chars().take(widths[1]).collect(),
                _ => cell.clone(),
            };
            let _ = match index {
                8 => write!(columns, "{cell}"),
                _ => write!(columns, "{cell:<width$}  ", width = widths[index]),
            };
        }
        let fits: String = match width {
            Some(width) => columns.chars().take(width).collect(),
            None => columns,
        };
        text.push_str(fits.trim_end());
        text.push('\n');
    };
    line(&HEADER.map(str::to_owned));
    rows.iter().for_each(&mut line);
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, state: Phase) -> TaskView {
        TaskView {
            id,
            name: "train.py".to_owned(),
            user: "ada".to_owned(),
            state,
            reason: None,
            gpus: 1,
            gpu_ids: vec![2],
            array_id: None,
            array_index: None,
            submitted_s: 0.0,
            started_s: Some(10.0),
            ended_s: None,
            priority: 0,
            time_limit_s: Some(3600.0),
            gpu_mem_bytes: Some(12 << 30),
            estimate_bytes: None,
            peak_bytes: 3 << 29,
            attempts: 1,
            ooms: 0,
            preemptions: 0,
            exit_code: None,
        }
    }

    #[test]
    fn a_queue_reads_like_slurms() {
        let waits = TaskView {
            reason: Some("held: `coloc release` lets it go on".to_owned()),
            gpu_ids: vec![],
            started_s: None,
            array_id: Some(8),
            array_index: Some(3),
            ..task(11, Phase::Pending)
        };
        let text = render(&[task(7, Phase::Running), waits], Moment(100_000), None);
        insta::assert_snapshot!(text, @r"
        ID        NAME      USER  ST  TIME  LIMIT    GPUS  GPU-MEM     GPU(REASON)
        7         train.py  ada   R   1:30  1:00:00  1     12.0G/1.5G  2
        11 (8_3)  train.py  ada   PD  -     1:00:00  1     12.0G/1.5G  (held: `coloc release` lets it go on)
        ");
    }
}
