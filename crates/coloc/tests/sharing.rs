//! Sources and sharing with the tools that a machine has: `dcgmi`, a dcgm-exporter, `nvidia-cuda-mps-control`.

mod support;

use coloc_gpu::device::Uuid;
use coloc_gpu::driver::Guarded;
use coloc_gpu::monitor::{Monitor, MonitorConfig, Sources};
use coloc_gpu::mps::{
    ClientLimits, Control, DaemonLayout, Program, admit_plan, cancel_plan, client_environment,
    client_limit, start_plan,
};
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_gpu::sample::dcgm::{Endpoint, Feed, dmon_feed, exporter_feed};
use coloc_gpu::sample::{Sample, Source};
use coloc_gpu::streams::visible_devices;
use coloc_model::{Bytes, Fraction, Time};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "COLOC_TEST_INSIDE";
const COLOC: &str = env!("CARGO_BIN_EXE_coloc");

/// Runs `body` in a process whose driver and tools are emulated, and whose trainers warm up quickly. `name` is the
/// test's name.
fn on_fleet(name: &str, spec: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        return body();
    }
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(COLOC)
        .args(["emu", "run", "--fleet", spec, "--time-scale", "50", "--"])
        .arg(this)
        .args([name, "--exact", "--nocapture"])
        .env(INSIDE, name)
        .output()
        .expect("the child runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    assert!(said.contains("1 passed"), "no test is called {name}: {said}");
}

/// A child that does not outlive its test.
struct Guest(Child);

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An emulated training that has begun to train.
fn trainer(flags: &[&str], variables: &[(&'static str, String)]) -> Guest {
    let mut command = Command::new(COLOC);
    command.args(["emu", "train", "--seconds", "100000"]).args(flags);
    command.envs(variables.iter().cloned()).stdout(Stdio::null()).stderr(Stdio::null());
    Guest(command.spawn().expect("a trainer"))
}

fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Samples until the source is the one that is waited for.
fn seen_by(source: Source, dmon: Option<Feed>, exporter: Option<Feed>) -> Sample {
    let driver = Guarded::nvml(Duration::from_secs(5));
    let attribution = Attribution::new(ProcessTable::default(), Users::of_system());
    let sources = Sources { driver, dmon, exporter };
    let mut monitor = Monitor::new(sources, MonitorConfig::default(), attribution);
    let began = Instant::now();
    let mut found = None;
    eventually(source.name(), || {
        let now = Time(began.elapsed().as_millis() as u64 + 1);
        let busy = |sample: &Sample| {
            sample.source == Some(source) && sample.reading.gpu.is_some_and(|gpu| gpu.get() > 0.9)
        };
        found = monitor.sample(now).samples.into_iter().find(busy);
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn dcgm_sees_what_utilization_does_not() {
    on_fleet("dcgm_sees_what_utilization_does_not", "1xA100-40GB", || {
        let _guest = trainer(&["--mix", "tiny-kernels"], &[]);
        let coarse = seen_by(Source::ProcessUtilization, None, None);
        assert_eq!(coarse.reading.sm, None);
        assert!(coarse.signal().activity.sm.get() > 0.9, "what is not known counts as busy");
        let dmon = dmon_feed(PathBuf::from("dcgmi"), Duration::from_millis(100));
        let fine = seen_by(Source::DcgmDmon, Some(dmon), None);
        assert!(fine.signal().activity.sm.get() < 0.15, "{fine:?}");
    });
}

/// An exporter, and a feed of what it says.
fn exporter() -> (Guest, Feed) {
    let mut exporter = Command::new(COLOC)
        .args(["emu", "exporter", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("an exporter");
    let mut line = String::new();
    let stdout = exporter.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line.split_whitespace().find(|word| word.contains("127.0.0.1:"));
    let endpoint: Endpoint = address.expect("an address").parse().expect("it can be read");
    (Guest(exporter), exporter_feed(endpoint, Duration::from_millis(100)))
}

#[test]
fn an_exporter_is_scraped() {
    on_fleet("an_exporter_is_scraped", "1xA100-40GB", || {
        let _guest = trainer(&["--mix", "tiny-kernels"], &[]);
        let (_exporter, feed) = exporter();
        let sample = seen_by(Source::DcgmExporter, None, Some(feed));
        assert!(sample.signal().activity.sm.get() < 0.15, "{sample:?}");
    });
}

#[test]
fn an_exporter_tells_of_instances() {
    on_fleet("an_exporter_tells_of_instances", "1xA100-40GB", || {
        for words in [&["-mig", "1"][..], &["mig", "-cgi", "9,19", "-C"]] {
            let done = Command::new("nvidia-smi").args(words).stdout(Stdio::null()).status();
            assert!(done.expect("it runs").success(), "{words:?}");
        }
        let list = Command::new("nvidia-smi").arg("-L").output().expect("it runs").stdout;
        let list = String::from_utf8_lossy(&list).into_owned();
        let half = list.lines().find(|line| line.contains("MIG 3g")).expect("an instance");
        let uuid = half.split("UUID: ").nth(1).expect("a name").trim_end_matches(')').to_owned();
        let shown = [("CUDA_VISIBLE_DEVICES", uuid)];
        let _guest = trainer(&["--memory", "4G", "--gpu-active", "1", "--sm", "0.2"], &shown);
        let (_exporter, feed) = exporter();
        let sample = seen_by(Source::DcgmExporter, None, Some(feed));
        let of = |compute: u8| {
            let seen = sample.instances.iter().find(|seen| seen.compute == compute);
            let seen = seen.expect("an instance");
            assert_eq!(seen.source, Some(Source::DcgmExporter));
            seen.reading.sm.expect("SM activity").get()
        };
        // A fifth of 108 SMs on the 42 of three slices.
        assert!((of(3) - 0.2 * 108.0 / 42.0).abs() < 0.01, "{sample:?}");
        assert_eq!(of(1), 0.0);
    });
}

/// The first GPU and a daemon's folders for it, in a short place.
fn stage() -> (tempfile::TempDir, Uuid, DaemonLayout) {
    let folder = tempfile::Builder::new().prefix("mps").tempdir_in("/tmp").expect("a folder");
    let driver = Guarded::nvml(Duration::from_secs(5));
    let gpu = driver.ask(|driver| driver.identity(0)).expect("a GPU").uuid;
    let uid = rustix::process::geteuid().as_raw();
    let layout = DaemonLayout::new(folder.path(), uid, std::slice::from_ref(&gpu)).expect("short");
    (folder, gpu, layout)
}

#[test]
fn mps_is_set_up_and_its_limits_hold() {
    on_fleet("mps_is_set_up_and_its_limits_hold", "1xA100-40GB", || {
        let (_folder, gpu, layout) = stage();
        let program = Program::default();
        let control = Control::new(&program, &layout, Duration::from_secs(10));
        let limits = ClientLimits {
            threads: Some(Fraction::new(0.5)),
            memory: Some(Bytes::from_mib(4096)),
            processes: 1,
        };
        control.start(&start_plan(layout.clone(), &limits)).expect("the limits read back");
        let gpus = [gpu];
        let mut variables = client_environment(&layout, &limits, &gpus);
        variables.extend(visible_devices(&gpus));
        let _small = trainer(&["--memory", "3G"], &variables);
        eventually("a client", || control.clients().is_ok_and(|clients| clients.len() == 1));

        let large = Command::new(COLOC)
            .args(["emu", "train", "--seconds", "100000", "--memory", "8G"])
            .envs(variables.iter().cloned())
            .output()
            .expect("a trainer");
        let complaint = String::from_utf8_lossy(&large.stderr);
        assert_eq!(large.status.code(), Some(1), "{complaint}");
        assert!(complaint.contains("CUDA out of memory"), "{complaint}");

        // The next task is admitted with less: its own environment does not say so, the server does.
        let server = control.servers().expect("a list")[0];
        let less = ClientLimits { memory: Some(Bytes::from_mib(2048)), ..limits };
        control
            .carry_out(&admit_plan(server, &gpus, &less, None, Bytes::ZERO))
            .expect("the limits read back");
        let third = Command::new(COLOC)
            .args(["emu", "train", "--seconds", "100000", "--memory", "3G"])
            .envs(variables.iter().filter(|(name, _)| !name.contains("LIMIT")).cloned())
            .output()
            .expect("a trainer");
        assert_eq!(third.status.code(), Some(1), "{}", String::from_utf8_lossy(&third.stderr));

        let driver = Guarded::nvml(Duration::from_secs(5));
        let limit = driver
            .ask(|driver| Ok(client_limit(&driver.identity(0)?, &driver.versions()?)))
            .expect("it answers");
        let clients = control.clients().expect("a list").len() as u32;
        assert_eq!((clients, limit), (1, 48));
    });
}

#[test]
fn a_client_is_cancelled_and_its_neighbour_lives() {
    on_fleet("a_client_is_cancelled_and_its_neighbour_lives", "1xA100-40GB", || {
        let (_folder, gpu, layout) = stage();
        let program = Program::default();
        let control = Control::new(&program, &layout, Duration::from_secs(10));
        control.start(&start_plan(layout.clone(), &ClientLimits::NONE)).expect("it comes up");
        let gpus = [gpu];
        let mut variables = client_environment(&layout, &ClientLimits::NONE, &gpus);
        variables.extend(visible_devices(&gpus));
        let mut victim = trainer(&["--memory", "2G"], &variables);
        let mut neighbour = trainer(&["--memory", "2G"], &variables);
        eventually("two clients", || control.clients().is_ok_and(|clients| clients.len() == 2));

        let pid = victim.0.id();
        let clients = control.clients().expect("a list");
        let ours: Vec<(u32, u32)> =
            clients.into_iter().filter(|&(_, client)| client == pid).collect();
        assert_eq!(ours.len(), 1);
        // Without the polite first step, so that the server has to let it go.
        let plan = cancel_plan(&[pid], &ours, None);
        let waiter = std::thread::spawn(move || victim.0.wait().map(|status| status.code()));
        let left = control.cancel(&plan, &[pid]).expect("it ends");
        assert_eq!(left, Vec::<u32>::new());
        waiter.join().expect("no panic").expect("it was waited for");
        assert!(neighbour.0.try_wait().expect("a state").is_none(), "the neighbour lives");
        let rest = control.clients().expect("a list");
        assert_eq!(rest.iter().map(|&(_, client)| client).collect::<Vec<_>>(), [neighbour.0.id()]);
        drop(neighbour);
        control.quit().expect("it ends");
        eventually("the daemon is gone", || !control.is_running());
    });
}
