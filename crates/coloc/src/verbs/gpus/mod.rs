//! `coloc gpus`: the GPUs, the processes on them, and how busy they are: as the daemon knows them where there is one,
//! and as the devices tell where they are here.

mod daemon;
mod host;

pub(super) use daemon::trouble;

use crate::args::live::{Maybe, SocketArg};
use crate::error::CliError;
use crate::output::table::listing;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_gpu::driver::Guarded;
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::sample::dcgm::{Endpoint, dmon_feed, exporter_feed};
use coloc_gpu::sample::{Sample, Source};
use coloc_gpu::snapshot::{self, GpuSnapshot, Snapshot};
use coloc_model::{Bytes, Fraction, Millis, Time};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A driver that takes longer to answer is said to hang.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long SM activity is waited for: DCGM needs a second to start.
const TIMEOUT: Duration = Duration::from_secs(3);
/// The time between two samples of NVML's performance monitors.
const PERIOD: Duration = Duration::from_millis(120);

/// Show the GPUs, the tasks and processes on them and how busy they are: of the daemon where there is one, and of this machine
#[derive(Args, Debug)]
pub(crate) struct Gpus {
    /// Read the devices of this machine alone, without asking a daemon
    #[arg(long)]
    local: bool,
    /// Watch until SM activity is seen, which takes up to three seconds
    #[arg(long)]
    activity: bool,
    /// A dcgm-exporter to read activity from
    #[arg(long, value_name = "HOST:PORT", env = "COLOC_DCGM_EXPORTER")]
    exporter: Option<Maybe<Endpoint>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    socket: SocketArg,
}

impl Gpus {
    pub(crate) fn run(self) -> Result<(), CliError> {
        let elsewhere = self.socket.host().is_some() && !self.local;
        let daemon = if self.local { None } else { daemon::ask(&self.socket)? };
        let devices = (!elsewhere).then(|| self.devices(daemon.as_ref()));
        match (daemon, devices) {
            // Where the daemon's GPUs are elsewhere, there are no devices here to read.
            (Some(daemon), None) => daemon.print(self.json),
            (Some(daemon), Some(Err(error))) => {
                // Where there is no driver at all, there is nothing to complain of.
                if self.activity {
                    eprintln!("coloc: the devices here could not be read: {error}");
                }
                daemon.print(self.json)
            }
            (Some(daemon), Some(Ok(devices))) if daemon.has_some_of(&devices) => {
                daemon.print_with(&devices, self.json)
            }
            // Inside `emu run` the GPUs that are there were asked for.
            (Some(daemon), Some(Ok(_))) if std::env::var_os(coloc_emu::DIR_VARIABLE).is_none() => {
                daemon.print(self.json)
            }
            (_, Some(devices)) => self.print_devices(&devices?),
            (None, None) => Ok(()),
        }
    }

    /// What the driver of this machine says.
    fn devices(&self, daemon: Option<&daemon::Told>) -> Result<Snapshot, CliError> {
        let driver = Guarded::nvml(DEADLINE);
        let (versions, told) = driver.ask(snapshot::ask)?;
        let attribution = || {
            let mut attribution = Attribution::new(ProcessTable::default(), Users::of_system());
            attribution.set_tasks(daemon.map(daemon::Told::roots).unwrap_or_default());
            attribution
        };
        let mut answer = snapshot::compose(versions, told, &mut attribution());
        if self.activity {
            let sources = Sources {
                driver,
                dmon: Some(dmon_feed(PathBuf::from("dcgmi"), PERIOD)),
                exporter: self
                    .exporter
                    .as_ref()
                    .and_then(Maybe::get)
                    .map(|endpoint| exporter_feed(endpoint.clone(), PERIOD)),
            };
            let monitor = Monitor::new(sources, MonitorConfig::default(), attribution());
            take_activity(&mut answer, monitor);
        }
        Ok(answer)
    }

    fn print_devices(&self, answer: &Snapshot) -> Result<(), CliError> {
        if self.json {
            #[derive(serde::Serialize)]
            struct Body<'a> {
                told_by: &'static str,
                #[serde(flatten)]
                answer: &'a Snapshot,
            }
            return Answer { body: &Body { told_by: "devices", answer }, wall_s: None }.print();
        }
        let why = if self.local { "" } else { ": no daemon answers for them" };
        print_text(&format!("{}\n\nRead from the devices{why}.", render(answer, None)))
    }
}

/// Samples until every GPU's SM activity was seen, or the timeout ends.
fn take_activity(answer: &mut Snapshot, mut monitor: Monitor) {
    let began = Instant::now();
    loop {
        let now = Time(began.elapsed().as_millis() as u64) + Millis(1);
        let samples: Vec<Sample> = monitor.sample(now).samples;
        for sample in &samples {
            let gpu = answer.gpus.iter_mut().find(|gpu| gpu.uuid.as_ref() == Some(&sample.gpu));
            let finer = |gpu: &GpuSnapshot| gpu.smact.is_none() || sample.reading.sm.is_some();
            if let Some(gpu) = gpu.filter(|gpu| finer(gpu)) {
                gpu.set_activity(sample);
            }
        }
        let seen = answer.gpus.iter().all(|gpu| gpu.smact.is_some() || gpu.error.is_some());
        if seen || began.elapsed() > TIMEOUT {
            return;
        }
        std::thread::sleep(PERIOD);
    }
}

/// On a narrow terminal: how busy memory is, temperature, utilization, processes, power, what is promised and the user.
const SPARE: [usize; 7] = [4, 6, 2, 7, 5, 8, 9];

fn render(answer: &Snapshot, daemon: Option<&daemon::Told>) -> String {
    let mut header = vec!["GPU", "MEMORY", "UTIL", "SMACT", "DRAMA", "POWER", "TEMP", "PROCS"];
    header.extend(daemon.iter().flat_map(|_| daemon::COLUMNS));
    let row = |gpu: &GpuSnapshot| {
        let more = daemon.map(|daemon| daemon.cells(gpu));
        let mut row = gpu_row(gpu);
        row[0].push_str(&daemon.map(|daemon| daemon.state(gpu)).unwrap_or_default());
        row.into_iter().chain(more.into_iter().flatten()).collect()
    };
    let mut parts = vec![listing(&header, answer.gpus.iter().map(row), &SPARE)];
    let instances: Vec<Vec<String>> = answer.gpus.iter().flat_map(instance_rows).collect();
    if !instances.is_empty() {
        parts.push(listing(&["GPU", "GI", "CI", "MEMORY", "SMACT", "DEVICE"], instances, &[4]));
    }
    let processes: Vec<Vec<String>> = answer.gpus.iter().flat_map(process_rows).collect();
    if !processes.is_empty() {
        let header = ["GPU", "PID", "USER", "MEMORY", "TASK", "COMMAND"];
        parts.push(listing(&header, processes, &[]));
    }
    let silent = answer.gpus.iter().filter_map(|gpu| Some((gpu.index, gpu.error.as_ref()?)));
    parts.extend(silent.map(|(index, error)| format!("GPU {index}: {error}")));
    parts.extend(footnotes(answer));
    parts.join("\n\n")
}

fn footnotes(answer: &Snapshot) -> Vec<String> {
    let mut notes = Vec::new();
    let fine = |gpu: &GpuSnapshot| gpu.source.is_some_and(Source::sees_sms);
    if !answer.gpus.iter().all(fine) {
        let note = "UTIL says that some kernel ran, not how much of the GPU it used. \
                    `coloc gpus --activity` looks for SM activity; `coloc doctor` says how to get it.";
        notes.push(note.to_owned());
    }
    if answer.emulated {
        notes.push("These GPUs are emulated: no figure was measured.".to_owned());
    }
    notes
}

fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

fn percent(value: Option<Fraction>) -> String {
    or_dash(value, |value| value.to_string())
}

fn memory(used: Option<Bytes>, total: Option<Bytes>) -> String {
    match (used, total) {
        (Some(used), Some(total)) => format!("{:.1} / {:.1} GiB", used.gib(), total.gib()),
        _ => "-".to_owned(),
    }
}

fn gpu_row(gpu: &GpuSnapshot) -> Vec<String> {
    let watts = match (gpu.power_w, gpu.power_limit_w) {
        (Some(power), Some(limit)) => format!("{power:.0} / {limit:.0} W"),
        (power, _) => or_dash(power, |power| format!("{power:.0} W")),
    };
    vec![
        format!("{:<3} {}", gpu.index, gpu.name.as_deref().unwrap_or("does not answer")),
        memory(gpu.memory_used_bytes, gpu.memory_total_bytes),
        percent(gpu.utilization),
        percent(gpu.smact),
        percent(gpu.drama),
        watts,
        or_dash(gpu.temperature_c, |celsius| format!("{celsius} °C")),
        gpu.processes.len().to_string(),
    ]
}

fn instance_rows(gpu: &GpuSnapshot) -> Vec<Vec<String>> {
    let devices = gpu.mig.iter().flat_map(|mig| &mig.devices);
    let seen = |device: &coloc_gpu::mig::MigDevice| {
        let mut instances = gpu.mig.iter().flat_map(|mig| &mig.activity);
        instances.find(|seen| seen.gpu_instance == device.gpu_instance)?.smact
    };
    let row = |device: &coloc_gpu::mig::MigDevice| {
        vec![
            gpu.index.to_string(),
            device.gpu_instance.0.to_string(),
            device.compute_instance.0.to_string(),
            memory(device.memory_used, device.memory_total),
            percent(seen(device)),
            device.uuid.to_string(),
        ]
    };
    devices.map(row).collect()
}

fn process_rows(gpu: &GpuSnapshot) -> Vec<Vec<String>> {
    let row = |process: &coloc_gpu::snapshot::ProcessSnapshot| {
        vec![
            gpu.index.to_string(),
            process.pid.to_string(),
            process.user.clone().unwrap_or_else(|| "ended".to_owned()),
            or_dash(process.memory_bytes, |bytes| bytes.to_string()),
            process.task.map_or("foreign".to_owned(), |task| task.to_string()),
            process.command.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    };
    gpu.processes.iter().map(row).collect()
}
