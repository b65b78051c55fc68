//! `srun` within a task: copies of a command in the task's allocation.

mod copies;
mod devices;
mod output;
mod steps;

use crate::error::{CliError, UsageError};
use crate::parse::slurm::{Limit, gpu_wish, gres, limit};
use crate::slurm::words::Words;
use coloc_api::slurm::NTASKS;
use copies::{Copies, Ends};
use devices::{Binding, Devices};
use output::{Destination, Mode};
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;
use steps::Steps;

/// As many copies as a task may ask for.
const MOST: u32 = 4096;

/// What was asked for, with what the task's own flags say where nothing was.
struct Step {
    words: Words,
    copies: u32,
    cpus: Option<u32>,
    binding: Binding,
    devices: Devices,
}

fn wrong(flag: &str, why: impl Into<String>) -> CliError {
    UsageError::flag(format!("srun: {flag}"), why).into()
}

/// A number from the command line, or from the environment.
fn number(words: &Words, name: &str, variable: &str) -> Result<Option<u32>, CliError> {
    let typed = words.value(name).map(OsStr::to_owned);
    let Some(text) = typed.or_else(|| std::env::var_os(variable)) else { return Ok(None) };
    let parsed = text.to_str().and_then(|text| text.trim().parse().ok());
    match parsed.filter(|number| (1..=MOST).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => Err(wrong(&format!("--{name}"), format!("expected 1 to {MOST}, not {text:?}"))),
    }
}

pub(super) fn run(words: &[OsString]) -> Result<ExitCode, CliError> {
    let words = Words::read(words).map_err(|why| CliError::from(UsageError::flag("srun", why)))?;
    if std::env::var_os("COLOC_TASK_ID").is_none() {
        return Err(UsageError::flag("srun", "there is no command to run").into());
    }
    if words.command.is_empty() {
        return Err(UsageError::flag("srun", "no command was given").into());
    }
    if let Some(flag) = words.for_a_new_task() {
        let why = "is for a new task, and srun runs within this one: say it to sbatch";
        return Err(wrong(&format!("--{flag}"), why));
    }
    if let Some(kind) = words.value("mpi").filter(|kind| *kind != "none") {
        let kind = kind.to_string_lossy();
        eprintln!("srun: --mpi={kind} has no effect: start MPI programs with mpirun");
    }
    let step = Step::of(words)?;
    if step.words.has("pty") {
        return step.on_the_terminal();
    }
    step.run()
}

impl Step {
    fn of(words: Words) -> Result<Self, CliError> {
        if let Some(nodes) = words.value("nodes").and_then(OsStr::to_str) {
            crate::parse::slurm::nodes(nodes).map_err(|why| wrong("--nodes", why))?;
        }
        let per_node = number(&words, "ntasks-per-node", NTASKS)?;
        // What was typed goes before what the task says.
        let copies = match words.has("ntasks") {
            true => number(&words, "ntasks", NTASKS)?,
            false => per_node,
        };
        let copies = copies.unwrap_or(1);
        let cpus = number(&words, "cpus-per-task", "SLURM_CPUS_PER_TASK")?;
        let per_copy = gpus_per_copy(&words)?;
        let binding = match words.value("gpu-bind").and_then(OsStr::to_str) {
            Some(text) => Binding::read(text).map_err(|why| wrong("--gpu-bind", why))?,
            None => per_copy.map_or(Binding::All, Binding::Each),
        };
        let wanted = gpus_of_step(&words)?.or(per_copy.map(|each| each.saturating_mul(copies)));
        let devices = Devices::of_task();
        if let Some(wanted) = wanted.filter(|&wanted| wanted as usize > devices.len()) {
            let has = devices.len();
            return Err(wrong("--gpus", format!("{wanted} are asked for, and the task has {has}")));
        }
        let steps = Steps::of_task();
        let devices = match wanted.filter(|&wanted| (wanted as usize) < devices.len()) {
            Some(wanted) if words.has("overlap") => devices.first(wanted),
            Some(wanted) => devices.alone(wanted, &steps),
            None => devices,
        };
        Ok(Step { words, copies, cpus, binding, devices })
    }

    fn run(self) -> Result<ExitCode, CliError> {
        let words = &self.words;
        let text = |name: &str| words.value(name).map(|value| value.to_string_lossy().into_owned());
        let id = Steps::of_task().next();
        let mode = Mode {
            label: words.has("label"),
            output: Destination::read(text("output").as_deref()),
            errors: Destination::read(text("error").as_deref()),
            append: text("open-mode").is_some_and(|mode| mode.starts_with('a')),
            step: id,
            copies: self.copies,
        };
        let limit = text("time").map(|text| limit(&text).map_err(|why| wrong("--time", why)));
        let limit = limit.transpose()?.and_then(|Limit(limit)| limit);
        let patience = text("wait").map(|text| text.parse::<u64>());
        let patience = patience.transpose().map_err(|_| wrong("--wait", "expected seconds"))?;
        let ends = Ends {
            on_failure: match text("kill-on-bad-exit").as_deref() {
                Some("0") => false,
                Some(_) => true,
                None => words.has("kill-on-bad-exit"),
            },
            after_first: patience.filter(|&seconds| seconds > 0).map(Duration::from_secs),
            limit: limit.map(|limit| Duration::from_millis(limit.0)),
        };
        let environment = (0..self.copies).map(|rank| self.environment(id, rank)).collect();
        let copies = Copies {
            command: words.command.clone(),
            directory: text("chdir").map(Into::into),
            input: text("input"),
            environment,
            mode,
            ends,
        };
        // What holds the GPUs of this step is given back when it has ended.
        let code = copies.run()?;
        drop(self.devices);
        Ok(ExitCode::from(code))
    }

    /// The command is this process from now on: it has the terminal that this one has.
    fn on_the_terminal(self) -> Result<ExitCode, CliError> {
        use std::os::unix::process::CommandExt as _;
        if self.copies > 1 {
            return Err(wrong("--pty", "one copy has a terminal: give --ntasks=1"));
        }
        let id = Steps::of_task().next();
        let mut command = copies::command(&self.words.command, &self.environment(id, 0));
        if let Some(directory) = self.words.value("chdir") {
            command.current_dir(directory);
        }
        let error = command.exec();
        let program = self.words.command.first().cloned().unwrap_or_default();
        Err(wrong(&program.to_string_lossy(), error.to_string()))
    }

    /// The variables of one copy.
    fn environment(&self, step: u32, rank: u32) -> Vec<(OsString, OsString)> {
        let export = self.words.value("export").map(|words| words.to_string_lossy().into_owned());
        let mut all = copies::inherited(export.as_deref());
        let mut set = |name: &str, value: String| {
            all.retain(|(known, _)| known != name);
            all.push((name.into(), value.into()));
        };
        let copies = self.copies.to_string();
        let ranks: Vec<String> = (0..self.copies).map(|rank| rank.to_string()).collect();
        for name in ["SLURM_PROCID", "SLURM_LOCALID"] {
            set(name, rank.to_string());
        }
        for name in
            ["SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS_PER_NODE"]
        {
            set(name, copies.clone());
        }
        for name in ["SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE"] {
            set(name, copies.clone());
        }
        for name in ["SLURM_STEP_ID", "SLURM_STEPID"] {
            set(name, step.to_string());
        }
        set("SLURM_NODEID", "0".to_owned());
        set("SLURM_GTIDS", ranks.join(","));
        set("SLURM_STEP_NUM_NODES", "1".to_owned());
        set("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1".to_owned());
        if let Ok(host) = std::env::var("SLURM_JOB_NODELIST") {
            set("SLURM_STEP_NODELIST", host);
        }
        if let Some(cpus) = self.cpus {
            let before = std::env::var("SLURM_CPUS_PER_TASK").ok();
            let threads = std::env::var("OMP_NUM_THREADS").ok();
            if threads.is_none() || threads == before {
                set("OMP_NUM_THREADS", cpus.to_string());
            }
            set("SLURM_CPUS_PER_TASK", cpus.to_string());
        }
        for (name, value) in self.devices.variables(&self.binding, rank) {
            set(name, value);
        }
        all
    }
}

/// GPUs of each copy, as typed or as the task says.
fn gpus_per_copy(words: &Words) -> Result<Option<u32>, CliError> {
    let typed = words.value("gpus-per-task").and_then(OsStr::to_str);
    let Some(text) = typed else { return number(words, "gpus-per-task", "SLURM_GPUS_PER_TASK") };
    let wish = gpu_wish(text).map_err(|why| wrong("--gpus-per-task", why))?;
    Ok(Some(wish.count).filter(|&count| count > 0))
}

/// GPUs of all copies together, where the step is to have fewer than the task.
fn gpus_of_step(words: &Words) -> Result<Option<u32>, CliError> {
    for name in ["gpus", "gpus-per-node"] {
        if let Some(text) = words.value(name).and_then(OsStr::to_str) {
            let wish = gpu_wish(text).map_err(|why| wrong(&format!("--{name}"), why))?;
            return Ok(Some(wish.count));
        }
    }
    match words.value("gres").and_then(OsStr::to_str) {
        Some("none") => Ok(Some(0)),
        Some(text) => Ok(Some(gres(text).map_err(|why| wrong("--gres", why))?.count)),
        None => Ok(None),
    }
}
