//! A task's flags, on the command line and in the head of a script.

use super::slurm::SlurmArgs;
use super::training::TrainingArgs;
use crate::config::environments;
use crate::parse::begin_time::begin;
use crate::parse::dependencies::{self, Dependencies};
use crate::parse::slurm::{self, GpuWish, Limit};
use clap::{ArgGroup, Args, ValueEnum};
use coloc_api::moment::Moment;
use coloc_api::notify::Notify;
use coloc_api::request::ArrayRequest;
use coloc_api::spec::{OnOom, Warning};
use coloc_model::{Bytes, Framework, Millis};
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

/// Everything about a task.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("training").args(TrainingArgs::IDS).multiple(true).requires("model"))]
pub(crate) struct TaskArgs {
    /// A name for people [default: the command's]
    #[arg(short = 'J', long, visible_alias = "job-name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// GPUs at once
    #[arg(short = 'G', long, value_name = "N", default_value = "1", value_parser = slurm::gpu_wish, overrides_with_all = ["gres", "gpus_per_node", "gpus_per_task"])]
    pub(crate) gpus: GpuWish,
    /// Kinds of GPU that it may run on, such as A100 or a100-80gb,h100 [default: all]
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub(crate) gpu_kind: Vec<String>,
    /// Pools of GPUs that it may run in, as `coloc gpus` shows them; the administrator's order counts [default: the daemon's]
    #[arg(long, value_name = "POOLS", value_delimiter = ',')]
    pub(crate) pool: Vec<String>,
    /// Memory it needs on each GPU, such as 12G; a bare number is MiB
    #[arg(long, value_name = "MEMORY")]
    pub(crate) gpu_mem: Option<Bytes>,
    /// Lend what it declares with --gpu-mem and does not use, until it wants it
    #[arg(long)]
    pub(crate) gpu_mem_reclaim: bool,
    /// Let it run in memory that another task lends: it is requeued when that one wants it back
    #[arg(long)]
    pub(crate) gpu_mem_borrow: bool,
    /// It saves its work, every so often or when it is told to stop, and goes on from there: it may be preempted for shorter tasks
    #[arg(long, value_name = "EVERY", num_args = 0..=1, require_equals = true, default_missing_value = "0", value_parser = slurm::time)]
    pub(crate) checkpoint: Option<Millis>,
    /// Submit it although its program or the folder of its output is not there, or no GPU has the memory that it declares or is estimated to need
    #[arg(long)]
    pub(crate) force: bool,
    /// Host memory it may use, such as 64G, where control groups can hold it to that; 0 is no limit
    #[arg(long, value_name = "MEMORY", overrides_with_all = ["mem_per_cpu", "mem_per_gpu"])]
    pub(crate) mem: Option<Bytes>,
    /// No other task on its GPUs
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// Stop it after this long: 90 (minutes), 1:30:00, 2-12, 1h30m; 0 or UNLIMITED for never
    #[arg(short = 't', long, value_name = "TIME", value_parser = slurm::limit)]
    pub(crate) time: Option<Limit>,
    /// Tasks that must end first: 7, afterok:7:8, afterany:7, afternotok:7, after:7 (once it has started), after:7+30 (30 minutes later), aftercorr:7 (number by number of two arrays), singleton (all before it of its name); ? between them: any one is enough
    #[arg(short = 'd', long, visible_alias = "dependency", alias = "depend", value_name = "TASKS", value_parser = dependencies::dependencies)]
    pub(crate) after: Option<Dependencies>,
    /// Many tasks: 1-100, 0-9:3, 1,5,9; %8 lets 8 run at once
    #[arg(short = 'a', long, value_name = "INDICES", value_parser = slurm::array)]
    pub(crate) array: Option<ArrayRequest>,
    /// Run it again this often if it fails by itself
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retry: u32,
    /// Higher goes first among tasks that wait; above 0 is for administrators
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000))]
    pub(crate) priority: i32,
    /// Let others go first: the priority is lowered by this
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000))]
    pub(crate) nice: i32,
    /// Not before: now+1h, 16:00, tomorrow, 2027-01-20T12:34, or seconds since 1970
    #[arg(short = 'b', long, value_name = "WHEN", value_parser = begin)]
    pub(crate) begin: Option<Moment>,
    /// Let it wait until it is released
    #[arg(short = 'H', long)]
    pub(crate) hold: bool,
    /// Stop it when its GPUs did nothing for this long, such as 30m
    #[arg(long, value_name = "TIME", value_parser = slurm::time)]
    pub(crate) idle_timeout: Option<Millis>,
    /// The most of a GPU's SMs that it may use under MPS, in percent
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) sm_percent: Option<u8>,
    /// What it trains with, so that its allocator can be told its limit: pytorch, jax or tensorflow
    #[arg(long, value_name = "NAME")]
    pub(crate) framework: Option<Framework>,
    /// A layer summary of its model, from which its memory is estimated: torchsummary or torchinfo, or a printed module
    #[arg(long, value_name = "FILE", group = "model")]
    pub(crate) model_summary: Option<PathBuf>,
    /// A Hugging Face config.json of its model, from which its memory is estimated
    #[arg(long, value_name = "FILE", group = "model")]
    pub(crate) hf_config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) training: TrainingArgs,
    /// The software environment that it runs in, for the estimate: carma, gpumemnet, or one that `coloc estimate learn` stored [default: gpumemnet]
    #[arg(long, value_name = "NAME", value_parser = environments::name)]
    pub(crate) env: Option<String>,
    /// What to do after it ran out of GPU memory [default: as the daemon's policy says]
    #[arg(long, value_enum)]
    pub(crate) on_oom: Option<OnOomFlag>,
    /// Tell of start, end, fail, oom, wait (or wait=2h) or all: end,fail is by mail, fail:http://HOST:PORT/PATH posts JSON, oom:/PATH runs a program, all:mail=ADDRESS; can be given several times
    #[arg(long, value_name = "EVENTS[:CHANNEL]")]
    pub(crate) notify: Vec<Notify>,
    /// A signal before the time limit or a preemption, such as USR1@60
    #[arg(long, value_name = "SIGNAL@SECONDS", value_parser = slurm::warning)]
    pub(crate) signal: Option<Warning>,
    /// Where its output goes; %j is its id, %A and %a its array and number, %x its name, %u its user, %N the machine [default: coloc logs]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Where its errors go [default: with the output]
    #[arg(short = 'e', long, value_name = "FILE")]
    pub(crate) error: Option<PathBuf>,
    /// Whether files that --output and --error name are written on or begun anew [default: append]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) open_mode: Option<OpenMode>,
    /// Where it runs [default: here]
    #[arg(short = 'D', long, value_name = "DIR")]
    pub(crate) chdir: Option<PathBuf>,
    /// Run a script where it is and as it is when the task starts, instead of a copy of what it is now
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Give it an empty environment but for these variables, NAME or NAME=VALUE
    #[arg(long, value_name = "VARIABLES", value_delimiter = ',')]
    pub(crate) export: Option<Vec<OsString>>,
    /// Give it the environment of a login shell, and not of this one; --export is added to it
    #[arg(long, visible_alias = "get-user-env")]
    pub(crate) user_env: bool,
    /// A name for this submission alone: one that is sent again with it, within a week, is not a second one [default: one that nobody else has]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) slurm: SlurmArgs,
    /// Slurm's way to give a command for the shell
    #[arg(long, hide = true, value_name = "COMMAND", conflicts_with = "command")]
    pub(crate) wrap: Option<OsString>,
    /// Stands after each line of a script, so that no option there takes a word from elsewhere for its value
    #[arg(long = SCRIPT_LINE_ENDS, hide = true)]
    pub(crate) script_line_ends: bool,
    /// The command, or a script; - is a script on standard input
    #[arg(trailing_var_arg = true, value_name = "COMMAND", help_heading = None::<&str>)]
    pub(crate) command: Vec<OsString>,
}

impl TaskArgs {
    /// The command, of which the first word may be a script.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// Nothing was named that could be run.
    pub(crate) fn lacks_a_command(&self) -> bool {
        self.command.is_empty() && self.wrap.is_none()
    }
}
