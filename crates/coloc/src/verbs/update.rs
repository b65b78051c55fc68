//! `coloc update`: tasks that are to be different.

use crate::args::live::{Selection, SocketArg, resolve};
use crate::args::script;
use crate::error::CliError;
use crate::verbs::change;
use clap::{ArgGroup, Args};
use coloc_daemon::owner::Change;
use coloc_daemon::spec::TaskUpdate;
use coloc_model::{Bytes, Millis};

/// Change tasks that wait; of one that runs, name and priority
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub(crate) struct Update {
    #[command(flatten)]
    socket: SocketArg,
    /// The tasks: 7, 3-9, last or all
    #[arg(required = true, value_name = "TASK")]
    tasks: Vec<Selection>,
    /// A name for people
    #[arg(short = 'J', long, visible_alias = "job-name", value_name = "NAME", group = "what")]
    name: Option<String>,
    /// Stop it after this long: 90 (minutes), 1:30:00, 2-12, 1h30m
    #[arg(short = 't', long, value_name = "TIME", value_parser = script::time, group = "what")]
    time: Option<Millis>,
    /// Memory it needs on each GPU, such as 12G; a bare number is MiB
    #[arg(long, value_name = "MEMORY", group = "what")]
    gpu_mem: Option<Bytes>,
    /// Higher goes first among tasks that wait; above 0 is for administrators
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(-1_000_000..=1_000_000), group = "what")]
    priority: Option<i32>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Update {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        let ids = resolve(&mut client, &self.tasks)?;
        let update = TaskUpdate {
            name: self.name,
            time_limit: self.time,
            gpu_memory: self.gpu_mem,
            priority: self.priority,
        };
        change::apply(&mut client, &ids, &self.tasks, Change::Update(update), self.json)
    }
}
