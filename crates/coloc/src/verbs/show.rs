//! `coloc show`: everything about a task.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::error::CliError;
use crate::output::visible::visible;
use crate::output::{print_tasks, print_text};
use crate::verbs::expected::is_at_its_limit;
use crate::verbs::queue::clock;
use clap::Args;
use coloc_api::client::Client;
use coloc_api::moment::Moment;
use coloc_api::text::{RawText, shell_quoted};
use coloc_api::view::{Expected, TaskDetail};
use serde::Serialize;
use std::fmt::Write as _;

/// Show everything about a task
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The task
    task: Selection,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Show {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let mut all = Vec::new();
        for id in resolve(&mut client, std::slice::from_ref(&self.task))? {
            let task = client.show(id)?;
            let ahead = look_ahead(&mut client, &task);
            match self.json {
                true => all.push(Shown { task, ahead }),
                false => print_text(&render(&task, &ahead))?,
            }
        }
        if self.json { print_tasks(&self.task, &all) } else { Ok(()) }
    }
}

/// A task and what is expected of it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    task: TaskDetail,
    #[serde(flatten)]
    ahead: Ahead,
}

/// When a task that has not ended is expected to start and to end.
#[derive(Default, Serialize)]
struct Ahead {
    expected_start_s: Option<f64>,
    expected_end_s: Option<f64>,
    expected_basis: Option<String>,
}

/// A task can be shown even where there is no forecast: then that is said.
fn look_ahead(client: &mut Client, task: &TaskDetail) -> Ahead {
    if task.task.state.is_over() {
        return Ahead::default();
    }
    match client.expected(task.task.id) {
        Ok(Expected { expected_start_s, expected_end_s, expected_basis, .. }) => {
            Ahead { expected_start_s, expected_end_s, expected_basis: Some(expected_basis) }
        }
        Err(error) => {
            Ahead { expected_basis: Some(format!("unknown: {error}")), ..Ahead::default() }
        }
    }
}

/// What is expected, in words: «in 12:30» rather than seconds since 1970.
fn foretell(task: &TaskDetail, ahead: &Ahead) -> Option<String> {
    let basis = ahead.expected_basis.as_ref()?;
    let now = Moment::now().secs();
    let when = |at: f64| match at - now {
        past if past <= 0.0 => "now".to_owned(),
        left => format!("in {}", clock(left)),
    };
    let start = ahead.expected_start_s.filter(|_| !task.task.state.is_on_gpus());
    let start = start.map(|at| format!("starts {}", when(at)));
    let end = ahead.expected_end_s.map(|at| match is_at_its_limit(&task.task, at) {
        true => format!("ends {} at the latest, by its time limit", when(at)),
        false => format!("ends {}", when(at)),
    });
    let said: Vec<String> = start.into_iter().chain(end).collect();
    Some(match said.is_empty() {
        true => basis.clone(),
        false => format!("{} ({basis})", said.join(", ")),
    })
}

/// What is expected, what is booked, and which estimator said so.
fn estimated(detail: &TaskDetail) -> String {
    let Some(peak) = detail.task.estimate_bytes else { return "-".to_owned() };
    let bound = detail.estimate_bound_bytes.map(|bound| format!(", bound {}", gib(bound)));
    let by = detail.estimator.as_ref().map(|estimator| format!(" by {estimator}"));
    format!("{}{}{}", gib(peak), by.unwrap_or_default(), bound.unwrap_or_default())
}

fn gib(bytes: u64) -> String {
    format!("{:.2} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// Which row of the memory contract applies.
fn promised(detail: &TaskDetail) -> String {
    let memory = &detail.memory;
    let booked = || {
        Some(format!("{} ({})", gib(detail.task.promised_bytes?), memory.memory_basis.as_ref()?))
    };
    memory.memory_rule.clone().or_else(booked).unwrap_or_else(|| "-".to_owned())
}

/// What was asked for, and what the kernel holds the task to.
fn host_memory(detail: &TaskDetail) -> String {
    let held = detail.enforcement.as_ref().map(|enforced| enforced.host_memory);
    match (detail.host_mem_bytes.map(gib), held) {
        (_, Some(Some(limit))) => format!("at most {limit}"),
        (Some(asked), None) => format!("asked {asked}"),
        (Some(asked), Some(None)) => format!("asked {asked}, and nothing holds it to that"),
        (None, _) => "no limit".to_owned(),
    }
}

/// The GPUs that were asked for, and the GPUs that it has.
fn gpus(detail: &TaskDetail) -> String {
    let kinds = match detail.gpu_kinds.as_slice() {
        [] => String::new(),
        kinds => format!(" of kind {}", kinds.join(" or ")),
    };
    let has: Vec<String> = detail.task.gpu_ids.iter().map(ToString::to_string).collect();
    let has = if has.is_empty() { "none given".into() } else { format!("on {}", has.join(",")) };
    format!("{}{kinds} wanted, {has}", detail.task.gpus)
}

fn facts(detail: &TaskDetail) -> impl Iterator<Item = (&'static str, String)> {
    let task = &detail.task;
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let quoted = |word: &RawText| shell_quoted(word.as_bytes());
    let command = detail.command.iter().map(quoted).collect::<Vec<_>>().join(&b' ');
    let facts = [
        ("Task", format!("{} {}", task.id, task.name)),
        ("User", task.user.clone()),
        ("State", task.state.to_string()),
        ("Reason", optional(task.reason.clone())),
        ("Command", String::from_utf8_lossy(&command).into_owned()),
        ("Directory", detail.directory.to_string_lossy().into_owned()),
        ("GPUs", gpus(detail)),
        (
            "GPU memory",
            format!(
                "asked {}, estimated {}, peak seen {}",
                optional(task.gpu_mem_bytes.map(gib)),
                estimated(detail),
                gib(task.peak_bytes)
            ),
        ),
        ("Promised", promised(detail)),
        (
            "Attempts",
            format!(
                "{} ({} out of memory, {} preempted)",
                task.attempts, task.ooms, task.preemptions
            ),
        ),
        ("Priority", task.priority.to_string()),
        ("Time limit", optional(task.time_limit_s.map(clock))),
        ("Exit code", optional(task.exit_code.map(|code| code.to_string()))),
        ("Log", format!("{}{}", detail.log, if detail.log_removed { ", removed" } else { "" })),
    ];
    let enforced = detail.enforcement.iter().flat_map(|enforced| {
        let processes = format!("kept by {}", enforced.processes);
        let plain = [("Processes", processes), ("GPU limit", enforced.gpu_memory.clone())];
        plain.into_iter().chain(enforced.sms.clone().map(|sms| ("SM limit", sms)))
    });
    let doubts = detail.estimate_flags.iter();
    let doubts = doubts.map(|flag| ("Doubt", format!("{}: {}", flag.kind, flag.detail)));
    facts.into_iter().chain(doubts).chain(enforced).chain([("Host memory", host_memory(detail))])
}

fn render(detail: &TaskDetail, ahead: &Ahead) -> String {
    let mut text = String::new();
    for (name, value) in facts(detail) {
        let _ = writeln!(text, "{name:<12}{}", visible(&value));
    }
    if let Some(expected) = foretell(detail, ahead) {
        let _ = writeln!(text, "{:<12}{}", "Expected", visible(&expected));
    }
    let began = detail.story.first().map_or(0.0, |line| line.at.secs());
    let _ = writeln!(text, "Story");
    for line in &detail.story {
        let after = format!("+{:.1} s", line.at.secs() - began);
        let _ = writeln!(text, "  {after:>10}  {}", visible(&line.what));
    }
    text.trim_end().to_owned()
}
