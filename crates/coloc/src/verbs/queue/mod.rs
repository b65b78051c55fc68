//! `coloc queue`: the tasks.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::{Answer, to_stdout};
use clap::Args;
use coloc_daemon::client::{Client, Wanted};
use coloc_daemon::owner::TaskView;
use coloc_daemon::record::{Moment, Phase};
use std::borrow::Cow;
use std::io::{self, Write};

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
        let user = self.user.clone().or_else(|| self.me.then(my_name));
        let wanted = Wanted { all: self.all, since_s: 0.0, user: user.as_deref() };
        let mut client = self.socket.connect()?;
        let ids = self.jobs.as_ref().map(|jobs| resolve(&mut client, std::slice::from_ref(jobs)));
        let ids = ids.transpose()?;
        // An array goes by the id of its first task, as Slurm has it.
        let named = |id: u32| ids.as_ref().is_none_or(|ids| ids.contains(&id));
        let meant = |id: u32, array: Option<u32>, state: Phase| {
            (named(id) || (self.slurm && array.is_some_and(named)))
                && (self.states.is_empty() || self.states.iter().any(|name| is_in(state, name)))
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
        client.each_task(&wanted, |line| {
            let row: Row<'_> = serde_json::from_slice(line)?;
            if meant(row.id, row.array_id, row.state) {
                table.push(&row, now);
            }
            Ok(())
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
    client.each_task(wanted, |line| serde_json::from_slice(line).map(|task| tasks.push(task)))?;
    tasks.retain(meant);
    Answer { body: &Body { tasks }, wall_s: None }.print()
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

/// What the table shows of a task. Texts are borrowed from the answer: a list may be long.
#[derive(serde::Deserialize)]
struct Row<'a> {
    id: u32,
    array_id: Option<u32>,
    array_index: Option<u32>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    user: Cow<'a, str>,
    state: Phase,
    started_s: Option<f64>,
    ended_s: Option<f64>,
    time_limit_s: Option<f64>,
    gpus: u32,
    gpu_mem_bytes: Option<u64>,
    estimate_bytes: Option<u64>,
    #[serde(default)]
    peak_bytes: u64,
    #[serde(default)]
    gpu_ids: Vec<u32>,
    #[serde(borrow, default)]
    reason: Cow<'a, str>,
}

/// A task's id, with its place in an array.
fn write_id(text: &mut String, task: &Row<'_>) {
    write_number(text, task.id.into());
    if let (Some(array), Some(index)) = (task.array_id, task.array_index) {
        text.push_str(" (");
        write_number(text, array.into());
        text.push('_');
        write_number(text, index.into());
        text.push(')');
    }
}

/// A number without the machinery that knows of widths and signs.
fn write_number(text: &mut String, mut number: u64) {
    let (mut digits, mut first) = ([b'0'; 20], 20);
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend(digits[first..].iter().map(|&digit| char::from(digit)));
}

/// GiB with one digit, without the detour through a fraction: a list may be long.
fn write_gib(text: &mut String, bytes: u64) {
    let tenths = ((u128::from(bytes) * 10 + (1 << 29)) >> 30) as u64;
    write_number(text, tenths / 10);
    text.push('.');
    write_number(text, tenths % 10);
    text.push('G');
}

fn write_memory(text: &mut String, task: &Row<'_>) {
    match task.gpu_mem_bytes.or(task.estimate_bytes) {
        Some(bytes) => write_gib(text, bytes),
        None => text.push('-'),
    }
    text.push('/');
    write_gib(text, task.peak_bytes);
}

fn write_place(text: &mut String, task: &Row<'_>) {
    match (&*task.reason, task.gpu_ids.is_empty() || task.state.is_over()) {
        ("", false) => {
            for (index, gpu) in task.gpu_ids.iter().enumerate() {
                text.push_str(if index > 0 { "," } else { "" });
                write_number(text, (*gpu).into());
            }
        }
        ("", true) if task.state == Phase::Pending => text.push_str("(waiting for a GPU)"),
        ("", true) => {}
        (reason, _) => text.extend(["(", reason, ")"]),
    }
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

/// Rows as they come: all cells in one text, so that a hundred thousand rows are no million small ones.
struct Rows {
    /// Columns of the terminal.
    terminal: Option<usize>,
    cells: String,
    /// Where the last cell ends.
    end: usize,
    lengths: Vec<u32>,
    widths: [usize; 9],
}

/// The longest name on a terminal.
const LONGEST_NAME: usize = 32;

impl Rows {
    fn new(terminal: Option<usize>, header: bool) -> Self {
        let widths = if header { HEADER.map(str::len) } else { [0; 9] };
        let mut rows = Rows { terminal, cells: String::new(), end: 0, lengths: Vec::new(), widths };
        for title in HEADER.into_iter().filter(|_| header) {
            rows.cells.push_str(title);
            rows.end_cell();
        }
        rows
    }

    fn push(&mut self, task: &Row<'_>, now: Moment) {
        let began = task.started_s.filter(|_| !matches!(task.state, Phase::Pending));
        let until = task.ended_s.unwrap_or(now.secs());
        let time = |text: &mut String, seconds: Option<f64>| match seconds {
            Some(seconds) => text.push_str(&clock(seconds)),
            None => text.push('-'),
        };
        write_id(&mut self.cells, task);
        self.end_cell();
        match self.terminal {
            Some(_) => self.cells.extend(task.name.chars().take(LONGEST_NAME)),
            None => self.cells.push_str(&task.name),
        }
        self.end_cell();
        self.cells.push_str(&task.user);
        self.end_cell();
        self.cells.push_str(short(task.state));
        self.end_cell();
        time(&mut self.cells, began.map(|began| until - began));
        self.end_cell();
        time(&mut self.cells, task.time_limit_s);
        self.end_cell();
        write_number(&mut self.cells, task.gpus.into());
        self.end_cell();
        write_memory(&mut self.cells, task);
        self.end_cell();
        write_place(&mut self.cells, task);
        self.end_cell();
    }

    fn end_cell(&mut self) {
        let cell = &self.cells[self.end..];
        let column = &mut self.widths[self.lengths.len() % HEADER.len()];
        *column = (*column).max(width_of(cell));
        self.lengths.push(cell.len() as u32);
        self.end = self.cells.len();
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let (mut text, mut rest) = (String::with_capacity(2 * PIECE), &*self.cells);
        for row in self.lengths.chunks_exact(HEADER.len()) {
            let line = text.len();
            for (column, &length) in row.iter().enumerate() {
                let (cell, others) = rest.split_at(length as usize);
                rest = others;
                text.push_str(cell);
                if column + 1 < HEADER.len() {
                    let gap = self.widths[column] + 2 - width_of(cell);
                    text.extend(std::iter::repeat_n(' ', gap));
                }
            }
            if let Some(terminal) = self.terminal
                && let Some((cut, _)) = text[line..].char_indices().nth(terminal)
            {
                text.truncate(line + cut);
            }
            text.truncate(line + text[line..].trim_end().len());
            text.push('\n');
            if text.len() > PIECE {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

/// Written at once.
const PIECE: usize = 64 << 10;

fn width_of(cell: &str) -> usize {
    if cell.is_ascii() { cell.len() } else { cell.chars().count() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, state: Phase) -> Row<'static> {
        Row {
            id,
            array_id: None,
            array_index: None,
            name: "train.py".into(),
            user: "ada".into(),
            state,
            started_s: Some(10.0),
            ended_s: None,
            time_limit_s: Some(3600.0),
            gpus: 1,
            gpu_mem_bytes: Some(12 << 30),
            estimate_bytes: None,
            peak_bytes: 3 << 29,
            gpu_ids: vec![2],
            reason: "".into(),
        }
    }

    fn text(terminal: Option<usize>, tasks: &[Row<'_>]) -> String {
        let (mut rows, mut text) = (Rows::new(terminal, true), Vec::new());
        tasks.iter().for_each(|task| rows.push(task, Moment(100_000)));
        rows.print(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn a_queue_reads_like_slurms() {
        let waits = Row {
            reason: "held: `coloc release` lets it go on".into(),
            gpu_ids: vec![],
            started_s: None,
            array_id: Some(8),
            array_index: Some(3),
            ..task(11, Phase::Pending)
        };
        insta::assert_snapshot!(text(None, &[task(7, Phase::Running), waits]), @r"
        ID        NAME      USER  ST  TIME  LIMIT    GPUS  GPU-MEM     GPU(REASON)
        7         train.py  ada   R   1:30  1:00:00  1     12.0G/1.5G  2
        11 (8_3)  train.py  ada   PD  -     1:00:00  1     12.0G/1.5G  (held: `coloc release` lets it go on)
        ");
    }

    #[test]
    fn a_terminal_is_not_overrun() {
        let long = Row { name: "ä".repeat(50).into(), ..task(7, Phase::Running) };
        assert!(text(Some(20), &[long]).lines().all(|line| line.chars().count() <= 20));
    }

    #[test]
    fn a_brief_line_is_a_row() {
        let line =
            r#"{"id":7,"name":"a\"b","user":"ada","state":"pending","gpus":1,"submitted_s":1.5}"#;
        let row: Row<'_> = serde_json::from_str(line).unwrap();
        assert!(
            text(None, &[row])
                .ends_with("a\"b   ada   PD  -     -      1     -/0.0G   (waiting for a GPU)\n")
        );
    }
}
