//! `coloc collocate -- CMD`: copies of a real command on a GPU that the daemon keeps free for them.

use super::learn::{Learned, describe, lessons};
use crate::args::live::SocketArg;
use crate::error::{CliError, UsageError};
use crate::invocation::typed_one;
use crate::live::emulated_daemon::EmulatedDaemon;
use crate::live::experiment::{Alone, Found, Pattern, Plan, Together, Trial};
use crate::output::table::{bar, table};
use crate::output::{Answer, print_text};
use crate::submission::batch_script::{self, Prepared};
use crate::submission::environment::exported;
use crate::verbs::experiment::FOUND;
use clap::Args;
use coloc_api::client::Client;
use coloc_api::request::{Change, Submission};
use coloc_api::spec::TaskSpec;
use coloc_api::text::RawText;
use coloc_api::view::TaskDetail;
use coloc_model::{Fleet, Share, TaskState};
use serde::Serialize;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the experiment is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A command to try out.
#[derive(Args, Debug)]
#[command(next_help_heading = "Live")]
pub(super) struct LiveArgs {
    #[command(flatten)]
    socket: SocketArg,
    /// Another command that runs beside the copies; a shell reads it
    #[arg(long, value_name = "CMD", requires = "command")]
    with_command: Option<String>,
    /// What tells progress in the output: a regular expression whose first group is the number of iterations done [default: iter, step and batch counts, tqdm's bars, N/M]
    #[arg(long, value_name = "REGEX", requires = "command")]
    progress: Option<String>,
    /// Seconds before anything counts
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, requires = "command")]
    warmup: f64,
    /// Seconds that count, of each trial
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, requires = "command")]
    seconds: f64,
    /// Emulated GPUs for this experiment, such as 1xA100-40GB, instead of a daemon's
    #[arg(long, value_name = "FLEET", requires = "command")]
    emulate: Option<Fleet>,
    /// How many seconds pass for tasks in one second of an emulated fleet
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "emulate")]
    time_scale: f64,
    /// Tell the daemon's scheduler nothing of what was found
    #[arg(long, requires = "command")]
    no_learn: bool,
    /// The command
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["workload", "with", "html"])]
    command: Vec<OsString>,
}

/// The JSON answer.
#[derive(Serialize)]
struct Body<'a> {
    gpu: &'a str,
    measured: bool,
    emulated: bool,
    alone: Alone,
    with_alone: Option<Alone>,
    experiments: Vec<Row<'a>>,
    learned: Vec<Learned>,
    /// Why the scheduler was not told.
    not_learned: Option<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    share: Share,
    layout: &'a str,
    copies: u32,
    throughput: Option<f64>,
    slowdown_mean: Option<f64>,
    slowdowns: &'a [f64],
    smact: Option<f64>,
    memory_mib: Option<f64>,
    power_w: Option<f64>,
    energy_ratio: Option<f64>,
    error: Option<&'a str>,
}

impl LiveArgs {
    pub(super) fn is_wanted(&self) -> bool {
        !self.command.is_empty()
    }

    pub(super) fn run(
        self,
        copies: Option<Vec<u32>>,
        shares: Vec<Share>,
        json: bool,
    ) -> Result<(), CliError> {
        for (flag, value) in [("--warmup", self.warmup), ("--seconds", self.seconds)] {
            if !(0.0..=86_400.0).contains(&value) {
                return Err(UsageError::value(flag, "seconds, a day at most", value).into());
            }
        }
        Pattern::new(self.progress.as_deref())
            .map_err(|error| UsageError::flag("--progress", error.to_string()))?;
        if let (Some(flag), Some(_)) = (typed_one(&["--socket", "--host"]), &self.emulate) {
            let why = "it names a daemon, and --emulate GPUs without one: give one of them";
            return Err(UsageError::flag(flag, why).into());
        }
        if self.command.first().is_some_and(|first| first == batch_script::STDIN) {
            let problem = "copies cannot share a script on standard input: name its file";
            return Err(UsageError::file(batch_script::STDIN, problem).into());
        }
        // As a submitted task has it, so that what is learned is learned of the same command.
        let prepared = batch_script::prepared(self.command.clone(), &here()?, false)?;
        let plan = Plan {
            command: prepared.in_place(),
            with: self
                .with_command
                .as_ref()
                .map(|text| ["/bin/sh", "-c", text].map(RawText::from).to_vec()),
            copies: copies.unwrap_or_else(|| vec![1, 2, 3]),
            shares,
            progress: self.progress.clone(),
            warmup_s: self.warmup,
            seconds: self.seconds,
        };
        let Some(fleet) = &self.emulate else {
            let mut client = self.socket.connect()?;
            let found = conduct(&mut client, &plan)?;
            return self.tell(&plan, prepared, &found, Some(&mut client), json);
        };
        let place = std::env::temp_dir().join(format!("coloc-lab-{}", std::process::id()));
        let daemon = EmulatedDaemon::open(&place, "lab", &fleet.to_string(), self.time_scale, &[]);
        let found = daemon.and_then(|mut daemon| {
            let found = conduct(&mut daemon.client, &plan);
            let _ = daemon.close();
            found
        });
        let _ = std::fs::remove_dir_all(&place);
        self.tell(&plan, prepared, &found?, None, json)
    }

    fn tell(
        &self,
        plan: &Plan,
        prepared: Prepared,
        found: &Found,
        client: Option<&mut Client>,
        json: bool,
    ) -> Result<(), CliError> {
        let (mut learned, mut not_learned) = (lessons(plan, prepared, found), None);
        match client.filter(|_| !self.no_learn) {
            None => learned.clear(),
            Some(client) => {
                let taught = learned.iter().try_for_each(|(teaching, _)| client.teach(teaching));
                if let Err(error) = taught {
                    learned.clear();
                    not_learned = Some(error.to_string());
                }
            }
        }
        let learned: Vec<Learned> = learned.into_iter().map(|(_, learned)| learned).collect();
        if json {
            let body = Body {
                gpu: &found.gpu,
                measured: !found.emulated,
                emulated: found.emulated,
                alone: found.alone,
                with_alone: found.with_alone,
                experiments: found.trials.iter().map(row).collect(),
                learned,
                not_learned,
            };
            return Answer { body: &body, wall_s: None }.print();
        }
        print_text(&render(plan, found))?;
        for Learned { command, lesson } in &learned {
            let told = describe(lesson);
            print_text(&format!("The scheduler now believes of {command}: {told}"))?;
        }
        match not_learned {
            Some(why) => print_text(&format!("The scheduler was not told: {why}")),
            None => Ok(()),
        }
    }
}

fn here() -> Result<PathBuf, CliError> {
    crate::submission::working_directory()
}

/// Has the daemon run the experiment on a GPU of its own, and waits for what it finds.
fn conduct(client: &mut Client, plan: &Plan) -> Result<Found, CliError> {
    let failed = |source| CliError::Write { file: PathBuf::from("."), source };
    let program = std::env::current_exe().map_err(failed)?;
    let directory = here()?;
    let told = serde_json::to_string(plan)
        .map_err(|error| UsageError::Parser(format!("the command cannot be told: {error}")))?;
    let command = vec![program.into_os_string().into(), "experiment".into(), told.into()];
    let spec = TaskSpec {
        environment: exported(None).into(),
        exclusive: true,
        ..TaskSpec::new("collocate".to_owned(), command, directory.into_os_string().into())
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [2, 15] {
        let _ = crate::signals::note_signal(signal, &interrupted);
    }
    let ids = client.submit(&Submission::of(spec))?.ids;
    let id = ids.first().copied().unwrap_or_default();
    eprintln!("coloc: task {id} is the experiment; it waits for a GPU of its own");
    let (mut offset, mut text) = (0, Vec::new());
    loop {
        let part = client.log(id, None, offset)?.bytes;
        offset += part.len() as u64;
        show_progress(&mut text, &part);
        let task = client.show(id)?;
        if part.is_empty() && task.task.state.is_over() {
            return conclude(&task, &text);
        }
        if interrupted.load(Ordering::Relaxed) {
            client.change(&[id], Change::Cancel)?;
            return Err(CliError::Refused("interrupted; the experiment was cancelled".to_owned()));
        }
        if part.is_empty() {
            std::thread::sleep(LOOK);
        }
    }
}

/// Says on the terminal how far the experiment is.
fn show_progress(text: &mut Vec<u8>, part: &[u8]) {
    let before = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    text.extend_from_slice(part);
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    for line in text[before.min(whole)..whole].split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        if !line.is_empty() && !line.starts_with(FOUND) {
            eprintln!("coloc: {}", crate::output::visible::visible(&line));
        }
    }
}

fn conclude(task: &TaskDetail, text: &[u8]) -> Result<Found, CliError> {
    let text = String::from_utf8_lossy(text);
    let found = text.lines().rev().find_map(|line| line.strip_prefix(FOUND));
    if let (Some(found), TaskState::Completed) = (found, task.task.state) {
        return serde_json::from_str(found).map_err(|error| {
            CliError::Refused(format!("the experiment's answer is odd: {error}"))
        });
    }
    let words = text.lines().next_back().unwrap_or("it said nothing").to_owned();
    Err(CliError::Refused(format!("the experiment is {}: {words}", task.task.state)))
}

fn row(trial: &Trial) -> Row<'_> {
    let Trial { share, copies, layout, outcome } = trial;
    let together = outcome.as_ref().ok();
    let gauge = together.map(|together| together.gauge);
    Row {
        share: *share,
        layout,
        copies: *copies,
        throughput: together.map(|together| together.throughput),
        slowdown_mean: together.map(Together::slowdown_mean),
        slowdowns: together.map_or(&[], |together| &together.slowdowns),
        smact: gauge.and_then(|gauge| Some(gauge.smact?.get())),
        memory_mib: gauge.map(|gauge| gauge.memory_mib),
        power_w: gauge.and_then(|gauge| gauge.power_w),
        energy_ratio: together.and_then(|together| together.energy_ratio),
        error: outcome.as_ref().err().map(String::as_str),
    }
}

fn render(plan: &Plan, found: &Found) -> String {
    let words: Vec<_> = plan.command.iter().map(|word| word.to_string_lossy()).collect();
    let beside = plan.with.as_ref().and_then(|with| with.last());
    let beside = beside.map_or(String::new(), |with| format!(" beside {}", with.to_string_lossy()));
    let how = if found.emulated { "emulated" } else { "measured" };
    let unit = if found.alone.by_progress { "iterations/s" } else { "runs/s" };
    let best = found.trials.iter().filter_map(|trial| trial.outcome.as_ref().ok());
    let best = best.map(|together| together.throughput).fold(1.0, f64::max);
    let header =
        ["share", "copies", "throughput", "", "slowdown", "SMACT", "memory", "power", "energy"];
    format!(
        "Copies of {}{beside} on one {}, {how}; {:.2} {unit} alone.\nThroughput and energy are against one at a time.\n\n{}",
        words.join(" "),
        found.gpu,
        found.alone.rate,
        table(&header, found.trials.iter().map(|trial| cells(trial, best)))
    )
}

fn cells(trial: &Trial, best: f64) -> Vec<String> {
    let mode = format!("{} {}", trial.share, trial.layout);
    let mut cells = vec![mode.trim_end().to_owned(), trial.copies.to_string()];
    let dash = || "-".to_owned();
    match &trial.outcome {
        Ok(together) => {
            let gauge = together.gauge;
            cells.extend([
                format!("{:.2}x", together.throughput),
                format!("{:<16}", bar(together.throughput / best, 16)),
                format!("{:.2}x", together.slowdown_mean()),
                gauge.smact.map_or_else(dash, |sm| format!("{:.2}", sm.get())),
                format!("{:.1} GiB", gauge.memory_mib / 1024.0),
                gauge.power_w.map_or_else(dash, |watts| format!("{watts:.0} W")),
                together.energy_ratio.map_or_else(dash, |ratio| format!("{ratio:.2}x")),
            ]);
        }
        Err(why) => {
            cells.push(why.clone());
            cells.extend(std::iter::repeat_n(String::new(), 6));
        }
    }
    cells
}
