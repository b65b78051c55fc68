//! `coloc update`: tasks that are to be different.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::args::task::OnOomFlag;
use crate::error::CliError;
use crate::parse::begin_time;
use crate::parse::dependencies::{self, Dependencies};
use crate::parse::slurm::{self, Limit};
use crate::verbs::change;
use clap::{ArgGroup, Args};
use coloc_api::moment::Moment;
use coloc_api::request::Change;
use coloc_api::spec::{OnOom, TaskUpdate};
use coloc_model::{Bytes, Millis};

/// `none`, or tasks. Which of its name were before is settled when a task is submitted.
fn after(text: &str) -> Result<Dependencies, String> {
    match text {
        "none" | "" => Ok(Dependencies::default()),
        text => match dependencies::dependencies(text)? {
            Dependencies { singleton: true, .. } => {
                Err("singleton is for `submit` alone".to_owned())
            }
            dependencies => Ok(dependencies),
        },
    }
}

/// A time limit as it is asked for: another one, or so much more or less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NewLimit {
    Absolute(Limit),
    Change(i64),
}

impl NewLimit {
    fn absolute(self) -> Option<Millis> {
        match self {
            NewLimit::Absolute(Limit(limit)) => Some(limit.unwrap_or(Millis::ZERO)),
            NewLimit::Change(_) => None,
        }
    }

    fn change(self) -> Option<i64> {
        match self {
            NewLimit::Absolute(_) => None,
            NewLimit::Change(change) => Some(change),
        }
    }
}

/// `4h`, or `+2h` and `-30m`.
fn new_limit(text: &str) -> Result<NewLimit, String> {
    let signed = text.strip_prefix('+').map(|more| (1, more));
    match signed.or_else(|| text.strip_prefix('-').map(|less| (-1, less))) {
        None => slurm::limit(text).map(NewLimit::Absolute),
        Some((sign, span)) => {
            let span = slurm::time(span)?;
            let span = i64::try_from(span.0).map_err(|_| format!("{text:?} is too long"))?;
            Ok(NewLimit::Change(sign * span))
        }
    }
}

/// Change tasks that wait; of one that runs, name, priority, time limit, retries and what to do when a GPU has no room
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Update {
    /// The tasks: 7, 3-9, last or all
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<Selection>,
    /// A name for people
    #[arg(short = 'J', long, visible_alias = "job-name", value_name = "NAME", group = "what")]
    name: Option<String>,
    /// Stop it after this long: 90 (minutes), 1:30:00, 2-12, 1h30m; 0 or UNLIMITED for never; +2h or -30m to change its limit
    /// by so much. While it runs, its owner may make it shorter and an administrator longer
    #[arg(short = 't', long, value_name = "TIME", allow_hyphen_values = true, value_parser = new_limit, group = "what")]
    time: Option<NewLimit>,
    /// GPUs at once
    #[arg(short = 'G', long, value_name = "N", group = "what")]
    gpus: Option<u32>,
    /// Kinds of GPU that it may run on, such as A100, or any
    #[arg(long, value_name = "KINDS", value_delimiter = ',', group = "what")]
    gpu_kind: Option<Vec<String>>,
    /// Pools of GPUs that it may run in, or default
    #[arg(long, value_name = "POOLS", value_delimiter = ',', group = "what")]
    pool: Option<Vec<String>>,
    /// No other task on its GPUs, or (--exclusive=false) others too
    #[arg(long, value_name = "YES", num_args = 0..=1, require_equals = true, default_missing_value = "true", group = "what")]
    exclusive: Option<bool>,
    /// Not before: now, now+1h, 16:00, tomorrow, 2027-01-20T12:34
    #[arg(short = 'b', long, value_name = "WHEN", value_parser = begin_time::begin, group = "what")]
    begin: Option<Moment>,
    /// Tasks that must end first, instead of those so far: 7, afterok:7:8, or none
    #[arg(short = 'd', long, visible_alias = "dependency", value_name = "TASKS", value_parser = after, group = "what")]
    after: Option<Dependencies>,
    /// Run it again this often if it fails by itself
    #[arg(long, value_name = "N", group = "what")]
    retry: Option<u32>,
    /// What to do after it ran out of GPU memory
    #[arg(long, value_enum, group = "what")]
    on_oom: Option<OnOomFlag>,
    /// Let others go first: the priority is this much below 0
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000), group = "what", conflicts_with = "priority")]
    nice: Option<i32>,
    /// Memory it needs on each GPU, such as 12G; a bare number is MiB
    #[arg(long, value_name = "MEMORY", group = "what")]
    gpu_mem: Option<Bytes>,
    /// Higher goes first among tasks that wait; above 0 is for administrators
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000), group = "what")]
    priority: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Update {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let ids = resolve(&mut client, &self.tasks)?;
        let update = TaskUpdate {
            name: self.name,
            time_limit: self.time.and_then(NewLimit::absolute),
            time_limit_change_ms: self.time.and_then(NewLimit::change),
            gpu_memory: self.gpu_mem,
            priority: self.priority.or(self.nice.map(|nice| -nice)),
            gpus: self.gpus,
            gpu_kinds: self.gpu_kind.map(|kinds| match kinds.as_slice() {
                [any] if any.eq_ignore_ascii_case("any") => Vec::new(),
                _ => kinds,
            }),
            pools: self.pool.map(|pools| match pools.as_slice() {
                [default] if default == "default" => Vec::new(),
                _ => pools,
            }),
            exclusive: self.exclusive,
            begin_ms: self.begin.map(|begin| begin.0),
            after_any: self.after.as_ref().map(|after| after.any),
            after: self.after.map(|after| after.tasks),
            retries: self.retry,
            on_oom: self.on_oom.map(OnOom::from),
        };
        change::apply(&mut client, &ids, &self.tasks, Change::Update(update), self.json)
    }
}
