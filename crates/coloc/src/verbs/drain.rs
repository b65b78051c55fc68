//! `coloc drain` and `coloc resume`: a daemon, or single GPUs, that start nothing new, and that do again.

use crate::args::live::SocketArg;
use crate::args::pool::{SomeGpus, all_gpus, some_gpus};
use crate::error::CliError;
use crate::output::visible::visible;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_api::answer::Served;
use coloc_api::client::Client;
use coloc_api::request::GpuService;
use coloc_api::view::{GpuView, TaskView};
use serde::Serialize;
use std::time::Duration;

/// How often a daemon that drains is asked who still runs.
const PERIOD: Duration = Duration::from_millis(200);

/// Have the daemon take and start nothing new, or some GPUs take nothing; what runs goes on
#[derive(Args, Debug)]
pub(crate) struct Drain {
    /// Drain these GPUs only, by number, range or UUID; the others go on. Lasts, also over restarts, until `coloc resume --gpu`
    #[arg(long, value_name = "GPU", value_delimiter = ',', value_parser = some_gpus)]
    gpu: Vec<SomeGpus>,
    /// Why, for those who ask `coloc gpus` or `coloc why`
    #[arg(long, value_name = "TEXT", requires = "gpu")]
    reason: Option<String>,
    /// Stay until nothing runs, or nothing on those GPUs
    #[arg(long)]
    wait: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

/// How a daemon stands.
#[derive(Serialize)]
struct Told {
    draining: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<usize>,
}

impl Drain {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        if !self.gpu.is_empty() {
            return self.drain_gpus(&mut client);
        }
        client.drain(true)?;
        let mut running = || -> Result<usize, CliError> {
            let on_gpus = |task: &&TaskView| task.state.is_on_gpus();
            Ok(client.list(false, 0.0)?.tasks.iter().filter(on_gpus).count())
        };
        let mut left = running()?;
        while self.wait && left > 0 {
            std::thread::sleep(PERIOD);
            left = running()?;
        }
        if self.json {
            let told = Told { draining: true, running: Some(left) };
            return Answer { body: &told, wall_s: None }.print();
        }
        match left {
            0 => print_text("Draining: nothing runs. `coloc resume` goes on"),
            left => print_text(&format!("Draining: {left} still run. `coloc resume` goes on")),
        }
    }

    fn drain_gpus(&self, client: &mut Client) -> Result<(), CliError> {
        let (gpus, reason) = (all_gpus(&self.gpu), self.reason.clone());
        let mut served = client.serve_gpus(&GpuService { gpus, drained: true, reason })?;
        while self.wait && served.gpus.iter().any(|gpu| !gpu.tasks.is_empty()) {
            std::thread::sleep(PERIOD);
            let named = |gpu: &GpuView| served.gpus.iter().any(|named| named.uuid == gpu.uuid);
            let gpus = client.gpus()?.gpus.into_iter().filter(named).collect();
            served.gpus = gpus;
        }
        let line = |gpu: &GpuView| {
            let reason = visible(gpu.drain_reason.as_deref().unwrap_or_default()).into_owned();
            let left = match gpu.tasks.len() {
                0 => "nothing runs on it".to_owned(),
                1 => "1 task goes on".to_owned(),
                tasks => format!("{tasks} tasks go on"),
            };
            format!("GPU {} is drained ({reason}); {left}", gpu.index)
        };
        tell(&served, self.json, line)
    }
}

/// Have a daemon or GPUs that drain go on
#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// Have these GPUs take tasks again, by number, range or UUID, whyever they were drained
    #[arg(long, value_name = "GPU", value_delimiter = ',', value_parser = some_gpus)]
    gpu: Vec<SomeGpus>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Resume {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let mut client = self.socket.connect()?;
        if !self.gpu.is_empty() {
            let request = GpuService { gpus: all_gpus(&self.gpu), drained: false, reason: None };
            let served = client.serve_gpus(&request)?;
            return tell(&served, self.json, |gpu| format!("GPU {} takes tasks", gpu.index));
        }
        client.drain(false)?;
        if self.json {
            return Answer { body: &Told { draining: false, running: None }, wall_s: None }.print();
        }
        print_text("The daemon takes and starts tasks again")
    }
}

/// Says how GPUs stand, and what is to be known of them.
pub(super) fn tell(
    served: &Served,
    json: bool,
    line: impl Fn(&GpuView) -> String,
) -> Result<(), CliError> {
    if json {
        #[derive(Serialize)]
        struct Body<'a> {
            gpus: &'a [GpuView],
            notes: &'a [String],
        }
        let body = Body { gpus: &served.gpus, notes: &served.notes };
        return Answer { body: &body, wall_s: None }.print();
    }
    for note in &served.notes {
        eprintln!("coloc: {}", visible(note));
    }
    print_text(&served.gpus.iter().map(line).collect::<Vec<_>>().join("\n"))
}
