//! What the monitor costs: eight emulated GPUs at ten samples a second, and a day of samples in a row.
//!
//! `cargo bench -p coloc-gpu --bench monitor`. Processor time is what the kernel charges this process for, the emulated
//! driver included, which runs in it as a real one's library would. `dcgmi` and dcgm-exporter are processes of their own and
//! not counted: what is, is reading them.

use coloc_emu::{Emulator, Identity, Options, Place};
use coloc_emu_tools::dcgm;
use coloc_emu_tools::run::FleetHome;
use coloc_gpu::driver::Guarded;
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::sample::Source;
use coloc_gpu::sample::dcgm::{Endpoint, Feed, dmon_feed, exporter_feed};
use coloc_model::{Bytes, Millis, Time};
use coloc_physics::Profile;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "COLOC_BENCH_INSIDE";
const EXPORTER: &str = "COLOC_BENCH_EXPORTER";
const GPUS: u32 = 8;
const PERIOD: Millis = Millis(100);
/// Samples of a day at ten a second.
const DAY: u64 = 24 * 3600 * 10;

/// Runs this program as a tool of the emulated driver, if it was started by its name.
fn as_tool() -> Option<ExitCode> {
    let mut words = std::env::args();
    let name = Path::new(&words.next()?).file_name()?.to_str()?.to_owned();
    coloc_emu_tools::by_name(&name, &words.collect::<Vec<_>>())
}

fn main() -> ExitCode {
    if let Some(code) = as_tool() {
        return code;
    }
    if std::env::var_os(EXPORTER).is_some() {
        dcgm::serve("127.0.0.1:0", |address| println!("{address}")).expect("an exporter");
    } else {
        bench();
    }
    ExitCode::SUCCESS
}

fn bench() {
    if std::env::var_os(INSIDE).is_some() {
        return measure();
    }
    for spec in ["8xA100-40GB", "8xH100-80GB"] {
        let options = Options { time_scale: 1.0, frozen: false, shared: false };
        let fleet = spec.parse().expect("a fleet spec");
        let home = FleetHome::create(None, &fleet, options).expect("an emulated fleet");
        println!("\n{spec}, a process on each GPU");
        let status = Command::new(std::env::current_exe().expect("this program"))
            .envs(home.environment())
            .env(INSIDE, spec)
            .status()
            .expect("the child runs");
        assert!(status.success());
        compare_with_nvitop(&home);
    }
}

/// nvitop's library on the same fleet, in the environment that `cargo xtask test` makes for other people's clients. Its
/// GPUs have a process each, as ours have.
fn compare_with_nvitop(home: &FleetHome) {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/clients/bin/python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/nvitop_samples.py");
    if !std::path::Path::new(python).exists() {
        println!("  nvitop: SKIPPED, it is not installed in target/clients");
        return;
    }
    occupy(home.emulator());
    let status = Command::new(python).arg(script).envs(home.environment()).status();
    assert!(status.is_ok_and(|status| status.success()), "nvitop ran");
}

/// A monitor with these sources beside NVML.
fn monitor(dmon: Option<Feed>, exporter: Option<Feed>) -> Monitor {
    let driver = Guarded::nvml(Duration::from_secs(5));
    let sources = Sources { driver, dmon, exporter };
    let attribution = Attribution::new(ProcessTable::default(), Users::of_system());
    Monitor::new(sources, MonitorConfig { period: PERIOD, ..MonitorConfig::default() }, attribution)
}

fn measure() {
    let emulator = Emulator::from_environment().expect("a fleet");
    occupy(&emulator);
    paced("NVML", None, monitor(None, None));
    let period = Duration::from_millis(PERIOD.0);
    let dmon = dmon_feed(PathBuf::from("dcgmi"), period);
    paced("dcgmi dmon", Some(Source::DcgmDmon), monitor(Some(dmon), None));
    let (mut server, endpoint) = exporter();
    let scraped = exporter_feed(endpoint, period);
    paced("dcgm-exporter", Some(Source::DcgmExporter), monitor(None, Some(scraped)));
    server.kill().expect("it is ours");
    server.wait().expect("it ends");
    in_a_row(monitor(None, None));
}

/// An exporter of this fleet.
fn exporter() -> (Child, Endpoint) {
    let program = std::env::current_exe().expect("this program");
    let mut server = Command::new(program)
        .env(EXPORTER, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("an exporter");
    let mut address = String::new();
    let stdout = server.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut address).expect("an address");
    (server, address.trim().parse().expect("an address"))
}

/// This process is on every GPU and keeps it busy.
fn occupy(emulator: &Emulator) {
    let mut fleet = emulator.lock().expect("the fleet");
    let slot = fleet.join(Identity::of_self()).expect("a row").slot;
    for gpu in 0..GPUS {
        fleet.open_context(slot, Place::whole(gpu)).expect("a context");
        fleet.allocate(slot, Place::whole(gpu), Bytes::from_mib(4000)).expect("memory");
    }
    let profile = Profile::new(0.9, 0.5, 0.3, 0.4, Bytes::from_mib(4400));
    fleet.declare(slot, &profile).expect("a profile");
    fleet.set_busy(slot, true).expect("work");
}

/// Ten looks a second for ten seconds, as a daemon would. Where a source is named, GPUs without GPM are read by it.
fn paced(name: &str, source: Option<Source>, mut monitor: Monitor) {
    monitor.sample(Time(1));
    // A feed takes a moment to begin.
    std::thread::sleep(Duration::from_secs(1));
    let (began, cpu) = (Instant::now(), cpu_seconds());
    let (mut samples, mut by_source) = (0, 0);
    for look in 1..=100u32 {
        let due = Duration::from_millis(PERIOD.0) * look;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let now = Time(began.elapsed().as_millis() as u64);
        let seen = monitor.sample(now).samples;
        samples += seen.len();
        by_source += seen.iter().filter(|sample| sample.source == source).count();
    }
    let used = (cpu_seconds() - cpu) / began.elapsed().as_secs_f64();
    let share = used * 100.0;
    let whose = source.map_or(String::new(), |_| format!(", {by_source} of them by it"));
    println!("  {name}, 10 Hz for 10 s: {samples} samples{whose}, {share:.2} % of a core");
}

/// A day's looks one after the other, by a clock that is only counted.
fn in_a_row(mut monitor: Monitor) {
    let looks = if std::env::var_os("COLOC_BENCH_DAY").is_some() { DAY } else { DAY / 100 };
    for look in 0..1000 {
        monitor.sample(Time(look * PERIOD.0));
    }
    let (began, before) = (Instant::now(), resident_kib());
    for look in 1000..looks + 1000 {
        let look = monitor.sample(Time(look * PERIOD.0));
        assert_eq!(look.samples.len(), GPUS as usize);
    }
    let each = began.elapsed().as_secs_f64() * 1e6 / (looks * u64::from(GPUS)) as f64;
    let grown = resident_kib().saturating_sub(before);
    println!(
        "  {looks} looks in a row ({:.1} h of samples): {each:.1} us per GPU, memory {before} KiB + {grown} KiB",
        looks as f64 / 36_000.0
    );
}

/// Processor time of all threads of this process.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let nanos = |path: std::path::PathBuf| -> u64 {
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
    };
    tasks.map(|task| nanos(task.path())).sum::<u64>() as f64 / 1e9
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("our status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("KiB")
}
