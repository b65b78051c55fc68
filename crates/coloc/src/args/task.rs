//! A task's flags, on the command line and in the head of a script.

use super::batch::{self, Prepared};
use super::dependencies::{self, Dependencies};
use super::environment;
use super::script::{self, GpuWish, Limit};
use super::slurm::SlurmArgs;
use super::training::TrainingArgs;
use super::when;
use crate::config::environments;
use crate::error::CliError;
use crate::invocation::typed_one;
use crate::verbs::estimate::{self, Forecast, Layers, Source};
use clap::{ArgGroup, Args, ValueEnum};
use coloc_daemon::owner::{ArrayRequest, Submission};
use coloc_daemon::record::Moment;
use coloc_daemon::spec::{OnOom, TaskSpec, Warning};
use coloc_daemon::text::RawText;
use coloc_gpu::enforce::{Cap, Framework, cap};
use coloc_model::{Bytes, Millis};
use std::ffi::OsString;
use std::path::PathBuf;

/// What to do about a task that ran out of GPU memory.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OnOomFlag {
    /// Try again where there is more room
    Grow,
    /// Try again alone
    Exclusive,
    /// Let it end
    Fail,
}

impl From<OnOomFlag> for OnOom {
    fn from(flag: OnOomFlag) -> Self {
        match flag {
            OnOomFlag::Grow => OnOom::Grow,
            OnOomFlag::Exclusive => OnOom::Exclusive,
            OnOomFlag::Fail => OnOom::Fail,
        }
    }
}

/// What becomes of what is in a file already.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OpenMode {
    /// It stays
    Append,
    /// It goes, at the first attempt
    Truncate,
}

/// The flag that ends a line of a script.
pub(crate) const SCRIPT_LINE_ENDS: &str = "script-line-ends";

/// What is said to who names nothing that could be run.
const NO_COMMAND: &str =
    "no command was given: expected `-- COMMAND`, a script, or - for a script on standard input";

/// Everything about a task.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Task", group = ArgGroup::new("training").args(TrainingArgs::IDS).multiple(true).requires("model"))]
pub(crate) struct TaskArgs {
    /// A name for people [default: the command's]
    #[arg(short = 'J', long, visible_alias = "job-name", value_name = "NAME")]
    name: Option<String>,
    /// GPUs at once
    #[arg(short = 'G', long, value_name = "N", default_value = "1", value_parser = script::gpu_wish, overrides_with_all = ["gres", "gpus_per_node", "gpus_per_task"])]
    gpus: GpuWish,
    /// Kinds of GPU that it may run on, such as A100 or a100-80gb,h100 [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    gpu_kind: Vec<String>,
    /// Memory it needs on each GPU, such as 12G; a bare number is MiB
    #[arg(long, value_name = "MEMORY")]
    gpu_mem: Option<Bytes>,
    /// Host memory it may use, such as 64G, where control groups can hold it to that; 0 is no limit
    #[arg(long, value_name = "MEMORY")]
    mem: Option<Bytes>,
    /// No other task on its GPUs
    #[arg(long)]
    exclusive: bool,
    /// Stop it after this long: 90 (minutes), 1:30:00, 2-12, 1h30m; 0 or UNLIMITED for never
    #[arg(short = 't', long, value_name = "TIME", value_parser = script::limit)]
    time: Option<Limit>,
    /// Tasks that must end first: 7, afterok:7:8, afterany:7, afternotok:7, after:7 (once it has started), after:7+30 (30 minutes later), aftercorr:7 (number by number of two arrays), singleton (all before it of its name); ? between them: any one is enough
    #[arg(short = 'd', long, visible_alias = "dependency", value_name = "TASKS", value_parser = dependencies::dependencies)]
    after: Option<Dependencies>,
    /// Many tasks: 1-100, 0-9:3, 1,5,9; %8 lets 8 run at once
    #[arg(short = 'a', long, value_name = "INDICES", value_parser = script::array)]
    array: Option<ArrayRequest>,
    /// Run it again this often if it fails by itself
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
    /// Higher goes first among tasks that wait; above 0 is for administrators
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000))]
    priority: i32,
    /// Let others go first: the priority is lowered by this
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000))]
    nice: i32,
    /// Not before: now+1h, 16:00, tomorrow, 2027-01-20T12:34, or seconds since 1970
    #[arg(short = 'b', long, value_name = "WHEN", value_parser = when::begin)]
    begin: Option<Moment>,
    /// Let it wait until it is released
    #[arg(short = 'H', long)]
    hold: bool,
    /// Stop it when its GPUs did nothing for this long, such as 30m
    #[arg(long, value_name = "TIME", value_parser = script::time)]
    idle_timeout: Option<Millis>,
    /// The most of a GPU's SMs that it may use under MPS, in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    sm_percent: Option<u8>,
    /// What it trains with, so that its allocator can be told its limit: pytorch, jax or tensorflow
    #[arg(long, value_name = "NAME")]
    framework: Option<Framework>,
    /// A layer summary of its model, from which its memory is estimated: torchsummary or torchinfo, or a printed module
    #[arg(long, value_name = "FILE", group = "model")]
    model_summary: Option<PathBuf>,
    /// A Hugging Face config.json of its model, from which its memory is estimated
    #[arg(long, value_name = "FILE", group = "model")]
    hf_config: Option<PathBuf>,
    #[command(flatten)]
    training: TrainingArgs,
    /// The software environment that it runs in, for the estimate: carma, gpumemnet, or one that `coloc estimate learn` stored [default: gpumemnet]
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    env: Option<String>,
    /// What to do when a GPU has no room for it [default: as the daemon's policy says]
    #[arg(long, value_enum)]
    on_oom: Option<OnOomFlag>,
    /// A signal before the time limit or a preemption, such as USR1@60
    #[arg(long, value_name = "SIGNAL@SECONDS", value_parser = script::warning)]
    signal: Option<Warning>,
    /// Where its output goes; %j is its id, %A and %a its array and number, %x its name, %u its user, %N the machine [default: coloc logs]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Where its errors go [default: with the output]
    #[arg(short = 'e', long, value_name = "FILE")]
    error: Option<PathBuf>,
    /// Whether files that --output and --error name are written on or begun anew [default: append]
    #[arg(long, value_enum, value_name = "MODE")]
    open_mode: Option<OpenMode>,
    /// Where it runs [default: here]
    #[arg(short = 'D', long, value_name = "DIR")]
    chdir: Option<PathBuf>,
    /// Run a script where it is and as it is when the task starts, instead of a copy of what it is now
    #[arg(long)]
    in_place: bool,
    /// Give it an empty environment but for these variables, NAME or NAME=VALUE
    #[arg(long, value_name = "VARIABLES", value_delimiter = ',')]
    export: Option<Vec<OsString>>,
    /// Give it the environment of a login shell, and not of this one; --export is added to it
    #[arg(long, visible_alias = "get-user-env")]
    user_env: bool,
    /// A name for this submission alone: one that is sent again with it, within a week, is not a second one [default: one that nobody else has]
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    #[command(flatten)]
    slurm: SlurmArgs,
    /// Slurm's way to give a command for the shell
    #[arg(long, hide = true, value_name = "COMMAND", conflicts_with = "command")]
    wrap: Option<OsString>,
    /// Stands after each line of a script, so that no option there takes a word from elsewhere for its value
    #[arg(long = SCRIPT_LINE_ENDS, hide = true)]
    script_line_ends: bool,
    /// The command, or a script; - is a script on standard input
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl TaskArgs {
    /// What is sent to the daemon.
    pub(crate) fn submission(self) -> Result<Submission, CliError> {
        let args = self;
        let here = std::env::current_dir()
            .map_err(|source| CliError::Write { file: PathBuf::from("."), source })?;
        let directory = args.chdir.as_ref().map_or(here.clone(), |chdir| here.join(chdir));
        for remark in args.slurm.remarks() {
            eprintln!("coloc: {remark}");
        }
        if let Some(framework) = args.framework {
            let said = args.gpu_mem.is_some() || args.model_summary.is_some();
            if let Some(remark) = remark_on(framework, said || args.hf_config.is_some()) {
                eprintln!("coloc: {remark}");
            }
        }
        let gpus = args.slurm.gpus().unwrap_or(args.gpus.count);
        let forecast = args.forecast(gpus)?;
        let after = args.after.unwrap_or_default();
        let Prepared { name, command, script } = match args.wrap {
            Some(wrap) => Prepared {
                name: "wrap".to_owned(),
                command: vec!["/bin/sh".into(), "-c".into(), wrap],
                script: None,
            },
            None if args.command.is_empty() => return Err(CliError::Usage(NO_COMMAND.to_owned())),
            None => batch::prepared(args.command, &here, args.in_place)?,
        };
        let spec = TaskSpec {
            name: args.name.unwrap_or(name),
            command: command.into_iter().map(RawText::from).collect(),
            script,
            directory: directory.into_os_string().into(),
            environment: environment::chosen(args.user_env, args.export.as_deref())?,
            gpus,
            gpu_kinds: match args.gpu_kind {
                said if !said.is_empty() => said,
                _ => args.slurm.kinds(&args.gpus),
            },
            gpu_memory: args.gpu_mem,
            host_memory: args.mem.filter(|&memory| memory > Bytes::ZERO),
            estimate: forecast.as_ref().map(|forecast| (&forecast.estimate).into()),
            estimator: forecast.as_ref().map(|forecast| forecast.estimate.estimator.to_owned()),
            replayed: forecast.as_ref().and_then(|forecast| forecast.replayed),
            estimate_flags: forecast.map(|forecast| forecast.flags).unwrap_or_default(),
            exclusive: args.exclusive,
            time_limit: args.time.and_then(|Limit(limit)| limit),
            after: after.tasks,
            after_any: after.any,
            singleton: after.singleton,
            begin_ms: args.begin.map(|begin| begin.0),
            priority: args.priority - args.nice,
            retries: args.retry,
            on_oom: args.on_oom.map_or(OnOom::Policy, OnOom::from),
            warning: args.signal,
            output: args.output.map(|path| path.into_os_string().into()),
            errors: args.error.map(|path| path.into_os_string().into()),
            idle_timeout: args.idle_timeout,
            sm_percent: args.sm_percent,
            framework: args.framework,
            truncate: args.open_mode == Some(OpenMode::Truncate),
        };
        let key = args.key.or_else(own_key);
        Ok(Submission { key, array: args.array, held: args.hold, ..Submission::of(spec) })
    }

    /// What its layers tell, if they are known. Doubts are told at once.
    fn forecast(&self, gpus: u32) -> Result<Option<Forecast>, CliError> {
        let summary = self.model_summary.as_deref().map(Source::Summary);
        let Some(source) = summary.or(self.hf_config.as_deref().map(Source::Config)) else {
            // What a file says counts for other tasks.
            return match self.env.as_ref().and_then(|_| typed_one(&["--env"])) {
                Some(_) => Err(CliError::Usage(
                    "--env is about the estimate: give --model-summary or --hf-config too"
                        .to_owned(),
                )),
                None => Ok(None),
            };
        };
        let layers = Layers { source, training: &self.training, gpus };
        let forecast = estimate::forecast(&layers, self.env.as_deref())?;
        for flag in &forecast.flags {
            eprintln!("coloc: estimate, {}: {}", flag.kind, flag.detail);
        }
        Ok(Some(forecast))
    }

    /// The command, of which the first word may be a script.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Nothing was named that could be run.
    pub(crate) fn lacks_a_command(&self) -> bool {
        self.command.is_empty() && self.wrap.is_none()
    }
}

/// What those should know who name a framework: what it is told depends on what the task needs, and some hear nothing.
fn remark_on(framework: Framework, said: bool) -> Option<String> {
    let unsaid = "--framework: there is no limit to tell it without --gpu-mem, a model, or an earlier run of the same command";
    // What the limit is makes no difference to the advice.
    match cap(framework, Bytes::ZERO, Bytes::ZERO, 1) {
        _ if !said => Some(unsaid.to_owned()),
        Cap::Environment { .. } => None,
        Cap::Unable { instead, .. } => Some(format!(
            "--framework: no variable holds it to its memory; its script can call {instead}"
        )),
    }
}

/// A key that nobody else has, so that a submission can be sent again when its answer was lost.
fn own_key() -> Option<String> {
    let random = std::fs::read_to_string("/proc/sys/kernel/random/uuid").ok()?;
    Some(random.trim().to_owned()).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_a_framework_is_told_what_that_is_worth() {
        assert_eq!(remark_on(Framework::Jax, true), None);
        let told = |framework, said| remark_on(framework, said).unwrap_or_default();
        assert!(told(Framework::Jax, false).contains("without --gpu-mem"));
        assert!(told(Framework::PyTorch, true).contains("set_per_process_memory_fraction"));
        assert!(told(Framework::TensorFlow, true).contains("set_logical_device_configuration"));
    }
}
