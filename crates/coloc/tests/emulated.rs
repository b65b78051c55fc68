//! `coloc emu` as people use it: commands, tools and trainers on emulated GPUs.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::Workspace;

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");

/// A fleet for one test, with its environment.
struct Fleet {
    workspace: Workspace,
    variables: Vec<(String, String)>,
}

impl Fleet {
    fn start(spec: &str, options: &[&str]) -> Self {
        let workspace = Workspace::with(&[]);
        let folder = workspace.path().join("fleet");
        let output = Command::new(COLOC)
            .args(["emu", "start", "--fleet", spec, "--dir"])
            .arg(&folder)
            .args(options)
            .output()
            .expect("the binary");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let line = |line: &str| {
            let (name, value) = line.strip_prefix("export ")?.split_once('=')?;
            Some((name.to_owned(), value.trim_matches('\'').to_owned()))
        };
        let variables = text(&output.stdout).lines().filter_map(line).collect();
        Fleet { workspace, variables }
    }

    fn path(&self) -> &Path {
        self.workspace.path()
    }

    /// A command on the fleet; tools are found by their names.
    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let tool = self.path().join("fleet/bin").join(program);
        let program = if tool.exists() { tool } else { program.into() };
        let mut command = Command::new(program);
        command.args(arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.env("CUDA_MPS_PIPE_DIRECTORY", self.path().join("mps"));
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Output {
        self.command(program, arguments).output().expect("a program that starts")
    }

    /// What a command that succeeds prints.
    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.run(program, arguments);
        assert!(output.status.success(), "{program} {arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn tell_mps(&self, line: &str) -> String {
        use std::io::Write;
        let mut control = self.command("nvidia-cuda-mps-control", &[]);
        let mut child =
            control.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool");
        // Without a daemon the tool ends before it has read anything.
        let _ = writeln!(child.stdin.take().expect("piped"), "{line}");
        text(&child.wait_with_output().expect("ours").stdout).trim().to_owned()
    }

    fn show(&self) -> serde_json::Value {
        serde_json::from_str(&self.ask(COLOC, &["emu", "show", "--json"])).expect("JSON")
    }

    fn train(&self, arguments: &[&str]) -> Trainer {
        let arguments = [&["emu", "train"], arguments].concat();
        let mut command = self.command(COLOC, &arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Trainer(child.expect("the binary"))
    }

    fn used_mib(&self, gpu: usize) -> u64 {
        self.show()["gpus"][gpu]["memory_used_bytes"].as_u64().expect("bytes") >> 20
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Whoever is still on it ends with it; the test itself may have stopped it.
        let _ = self.command(COLOC, &["emu", "stop"]).output();
    }
}

/// A trainer that does not outlive its test.
struct Trainer(Child);

impl Trainer {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(sent.expect("kill").success());
    }

    fn end(mut self) -> (Option<i32>, String, String) {
        let read = |stream: Option<Box<dyn std::io::Read>>| {
            stream.map_or_else(String::new, |mut stream| {
                let mut all = String::new();
                std::io::Read::read_to_string(&mut stream, &mut all).expect("text");
                all
            })
        };
        let stdout = read(self.0.stdout.take().map(|s| Box::new(s) as Box<dyn std::io::Read>));
        let stderr = read(self.0.stderr.take().map(|s| Box::new(s) as Box<dyn std::io::Read>));
        (self.0.wait().expect("ours").code(), stdout, stderr)
    }
}

impl Drop for Trainer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_runs_on_the_fleet_and_its_exit_code_is_ours() {
    let run = |script: &str| {
        let fleet = ["emu", "run", "--fleet", "2xV100-16GB,1xT4-16GB", "--", "sh", "-c", script];
        Command::new(COLOC).args(fleet).output().expect("the binary")
    };
    let listed = run("nvidia-smi -L && echo $COLOC_EMU_DIR");
    let printed = text(&listed.stdout);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert_eq!(printed.matches("Tesla V100-SXM2-16GB").count(), 2, "{printed}");
    assert_eq!(printed.matches("Tesla T4").count(), 1, "{printed}");
    let folder = printed.lines().last().expect("the fleet's directory");
    assert!(!Path::new(folder).exists(), "{folder} was left behind");
    assert_eq!(run("exit 7").status.code(), Some(7));
    assert_eq!(run("kill -9 $$").status.code(), Some(137));
}

#[test]
fn a_signal_to_the_runner_reaches_the_command() {
    let script = "trap 'echo got it; exit 3' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = Command::new(COLOC)
        .args(["emu", "run", "--fleet", "1xT4-16GB", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    assert_eq!(lines.next().expect("a line").expect("text"), "ready");
    let killed = Command::new("kill").arg(child.id().to_string()).status().expect("kill");
    assert!(killed.success());
    assert_eq!(lines.next().expect("a line").expect("text"), "got it");
    assert_eq!(child.wait().expect("ours").code(), Some(3));
}

#[test]
fn a_command_starts_with_no_signal_held_back() {
    let arguments = ["emu", "run", "--fleet", "1xT4-16GB", "--", "cat", "/proc/self/status"];
    let output = Command::new(COLOC).args(arguments).output().expect("the binary");
    let status = text(&output.stdout);
    let held = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).expect("a mask");
    assert_eq!(held.trim(), "0000000000000000");
}

#[test]
fn what_cannot_be_emulated_is_refused() {
    for (spec, says) in [
        ("1xCPU", "CPU has no NVIDIA driver"),
        ("500xT4-16GB", "at most 128 GPUs"),
        ("4xB200", "unknown GPU model"),
    ] {
        let arguments = ["emu", "run", "--fleet", spec, "--", "true"];
        let output = Command::new(COLOC).args(arguments).output().expect("the binary");
        assert!(!output.status.success());
        assert!(text(&output.stderr).contains(says), "{}", text(&output.stderr));
    }
    let alone = Command::new(COLOC).args(["emu", "show"]).env_remove("COLOC_EMU_DIR").output();
    let complaint = text(&alone.expect("the binary").stderr);
    assert!(complaint.contains("coloc emu run"), "{complaint}");
}

#[test]
fn a_trainer_dies_of_memory_in_pytorchs_words() {
    let fleet = Fleet::start("1xV100-16GB", &["--time-scale", "100"]);
    let neighbour = fleet.train(&["--memory", "10G", "--seconds", "100000"]);
    wait_until("the neighbour's plateau", || fleet.used_mib(0) == 10 << 10);
    let (code, log, complaint) = fleet.train(&["--memory", "8G"]).end();
    assert_eq!(code, Some(1), "{log}");
    let pid = neighbour.0.id();
    for expected in [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 16.00 GiB",
        &format!("Process {pid} has 10.00 GiB memory in use."),
    ] {
        assert!(complaint.contains(expected), "{complaint}");
    }
    assert_eq!(fleet.used_mib(0), 10 << 10, "the dead hold nothing");
}

#[test]
fn a_stopped_clock_shows_settled_trainers() {
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    let (first, second) = (fleet.show(), fleet.show());
    assert_eq!(first, second);
    assert!(first["gpus"][0]["power_w"].as_f64() > Some(200.0));
    drop(trainer);
    wait_until("an idle GPU", || fleet.used_mib(0) == 0);
}

#[test]
fn checkpoints_carry_a_training_over() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let file = fleet.path().join("checkpoint.json");
    let name = file.to_str().expect("text");
    let arguments = ["--profile", "resnet", "--checkpoint", name, "--auto-resume"];
    let first = fleet.train(&arguments);
    wait_until("work", || fleet.used_mib(0) == 3934);
    first.signal("USR1");
    wait_until("the checkpoint", || file.exists());
    let early = std::fs::read_to_string(&file).expect("a checkpoint");
    first.signal("TERM");
    let (code, log, _) = first.end();
    assert_eq!(code, Some(143));
    let saved = log.lines().filter(|line| line.starts_with("checkpoint ")).count();
    assert_eq!(saved, 2, "{log}");
    let late = std::fs::read_to_string(&file).expect("a checkpoint");
    assert_ne!(early, late, "work went on after SIGUSR1");
    // The rest goes faster, and starts where the first run ended.
    fleet.ask(COLOC, &["emu", "clock", "--time-scale", "2000"]);
    let (code, log, complaint) = fleet.train(&arguments).end();
    assert_eq!(code, Some(0), "{complaint}");
    assert!(!log.contains("from 0.0 %"), "{log}");
    assert!(log.contains("progress 100%") && log.contains("done"), "{log}");
}

#[test]
fn a_task_takes_the_time_that_its_neighbours_leave_it() {
    let fleet = Fleet::start("2xA100-40GB", &["--time-scale", "100"]);
    let speed = || {
        let picture = fleet.show();
        let processes = picture["gpus"][0]["processes"].as_array().expect("processes").clone();
        processes.iter().map(|p| p["speed"].as_f64().expect("a speed")).collect::<Vec<_>>()
    };
    let _long = fleet.train(&["--profile", "vgg", "--seconds", "1000000"]);
    wait_until("the first", || speed() == [1.0]);
    let second = fleet.train(&["--profile", "vgg", "--seconds", "100"]);
    wait_until("the second", || speed().len() == 2);
    let shared = speed();
    assert!(shared.iter().all(|speed| (0.4..0.8).contains(speed)), "{shared:?}");
    let start = Instant::now();
    let (code, ..) = second.end();
    assert_eq!(code, Some(0));
    // A hundred seconds of work at this speed, a hundred times faster; starting up took a little of it.
    let expected = 1.0 / shared[0];
    let took = start.elapsed().as_secs_f64();
    assert!((expected * 0.8..expected * 1.3 + 2.0).contains(&took), "{took} s, not {expected} s");
    wait_until("solitude", || speed() == [1.0]);
}

#[test]
fn full_utilization_can_mean_an_idle_device() {
    let fleet = Fleet::start("1xA100-40GB", &[]);
    let _mix = fleet.train(&["--mix", "tiny-kernels"]);
    wait_until("work", || fleet.show()["gpus"][0]["gract"] == 1.0);
    let query = ["--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"];
    assert_eq!(fleet.ask("nvidia-smi", &query).trim(), "100");
    let watched = fleet.ask("dcgmi", &["dmon", "-e", "1001,1002", "-c", "1"]);
    assert!(watched.contains("GPU 0     1.000       0.030"), "{watched}");
    let process = fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!((process["gract"].clone(), process["smact"].clone()), (1.0.into(), 0.03.into()));
}

#[test]
fn mps_limits_its_clients_and_takes_them_along() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    assert_eq!(fleet.tell_mps("get_server_list"), "");
    fleet.ask("nvidia-cuda-mps-control", &["-d"]);
    assert_eq!(fleet.tell_mps("set_default_active_thread_percentage 25"), "25.0");
    fleet.tell_mps("set_default_device_pinned_mem_limit 0 4G");
    assert_eq!(fleet.tell_mps("get_default_device_pinned_mem_limit 0"), "4G");
    let client = fleet.train(&["--profile", "vgg", "--memory", "3G", "--seconds", "1000000"]);
    wait_until("the client", || fleet.used_mib(0) == 3 << 10);
    let process = fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!(process["mps"], true);
    assert!(process["speed"].as_f64() < Some(0.6), "a quarter of the SMs: {process}");
    let (code, _, complaint) = fleet.train(&["--memory", "5G"]).end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("CUDA out of memory"), "{complaint}");
    let server = fleet.tell_mps("get_server_list");
    let clients = fleet.tell_mps(&format!("get_client_list {server}"));
    assert_eq!(clients, client.0.id().to_string());
    fleet.tell_mps(&format!("terminate_client {server} {clients}"));
    let (code, _, complaint) = client.end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("terminated by MPS"), "{complaint}");
    fleet.tell_mps("quit");
    wait_until("the daemon's end", || {
        fleet.tell_mps("get_server_list").is_empty()
            && !Path::new(&format!("/proc/{server}")).exists()
    });
}

#[test]
fn a_mig_device_is_used_by_its_uuid() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    fleet.ask("nvidia-smi", &["-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-cgi", "9,9", "-C"]);
    let refused = fleet.run("nvidia-smi", &["mig", "-cgi", "19"]);
    assert_eq!(refused.status.code(), Some(23), "{}", text(&refused.stderr));
    let picture = fleet.show();
    let uuid = picture["gpus"][0]["mig_devices"][1]["uuid"].as_str().expect("a UUID").to_owned();
    let mut command =
        fleet.command(COLOC, &["emu", "train", "--profile", "vgg", "--seconds", "100000"]);
    command.env("CUDA_VISIBLE_DEVICES", &uuid).stdout(Stdio::null());
    let _trainer = Trainer(command.spawn().expect("the binary"));
    wait_until("the plateau", || {
        fleet.show()["gpus"][0]["mig_devices"][1]["memory_used_bytes"] == 6684u64 << 20
    });
    assert_eq!(fleet.show()["gpus"][0]["mig_devices"][0]["memory_used_bytes"], 0);
    let busy = fleet.run("nvidia-smi", &["mig", "-dci"]);
    assert_eq!(busy.status.code(), Some(19), "{}", text(&busy.stderr));
    assert_eq!(fleet.run("nvidia-smi", &["-mig", "0"]).status.code(), Some(19));
}

#[test]
fn a_hung_trainer_ignores_everything_but_the_end() {
    let fleet = Fleet::start("1xA100-40GB", &["--time-scale", "100"]);
    let mut trainer = fleet.train(&["--profile", "resnet"]);
    wait_until("work", || fleet.used_mib(0) > 0);
    fleet.ask(COLOC, &["emu", "fault", "hang", &trainer.0.id().to_string()]);
    let process = || fleet.show()["gpus"][0]["processes"][0].clone();
    assert_eq!((process()["hung"].clone(), process()["speed"].clone()), (true.into(), 0.0.into()));
    trainer.signal("TERM");
    std::thread::sleep(Duration::from_millis(300));
    assert!(trainer.0.try_wait().expect("ours").is_none(), "it hangs");
    fleet.ask(COLOC, &["emu", "fault", "lost", "0"]);
    let (code, _, complaint) = trainer.end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("the GPU was lost"), "{complaint}");
}

/// The text between the first pair of these tags.
fn within<'a>(xml: &'a str, tag: &str) -> &'a str {
    let inside = xml
        .split_once(&format!("<{tag}>"))
        .and_then(|(_, rest)| rest.split_once(&format!("</{tag}>")));
    inside.unwrap_or_else(|| panic!("no {tag} in {xml}")).0
}

/// Every tag that is opened is closed, in order.
fn assert_well_formed(xml: &str) {
    let mut open = Vec::new();
    for tag in xml.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag) {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{xml}");
        } else if !tag.starts_with(['?', '!']) {
            open.extend(tag.split_whitespace().next());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn nvidia_smi_tells_everything_as_text_and_as_xml() {
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let _trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    fleet.ask("nvidia-smi", &["-i", "1", "-mig", "1"]);
    fleet.ask("nvidia-smi", &["mig", "-i", "1", "-cgi", "9,19", "-C"]);
    let log = fleet.ask("nvidia-smi", &["-q", "-x"]);
    assert_well_formed(&log);
    let gpus: Vec<&str> = log.split("<gpu id=").skip(1).collect();
    assert_eq!((gpus.len(), within(&log, "attached_gpus")), (2, "2"));
    let query = |field: &str| {
        let query = format!("--query-gpu={field}");
        fleet.ask("nvidia-smi", &["-i", "0", &query, "--format=csv,noheader"]).trim().to_owned()
    };
    let power = within(gpus[0], "gpu_power_readings");
    for (found, field) in [
        (within(within(gpus[0], "fb_memory_usage"), "used"), "memory.used"),
        (within(gpus[0], "gpu_util"), "utilization.gpu"),
        (within(power, "power_draw"), "power.draw"),
        (within(power, "current_power_limit"), "power.limit"),
        (within(gpus[0], "uuid"), "uuid"),
        (within(gpus[0], "sm_clock"), "clocks.sm"),
    ] {
        assert_eq!(found, query(field), "{field}");
    }
    assert_eq!(within(gpus[0], "gpu_temp"), format!("{} C", query("temperature.gpu")));
    let process = within(gpus[0], "process_info");
    assert_eq!((within(process, "type"), within(process, "used_memory")), ("C", "6684 MiB"));
    assert_eq!(
        (within(gpus[0], "mig_devices"), within(gpus[1], "current_mig")),
        ("None", "Enabled")
    );
    let devices: Vec<&str> = gpus[1].split("<mig_device>").skip(1).collect();
    let totals: Vec<&str> = devices.iter().map(|device| within(device, "total")).collect();
    assert_eq!(totals, ["19968 MiB", "4864 MiB"]);
    assert_eq!(within(gpus[1], "gpu_util"), "N/A");
    let text = fleet.ask("nvidia-smi", &["-q"]);
    for line in [
        "    Product Name                          : NVIDIA A100-SXM4-40GB",
        "        Used                              : 6684 MiB",
        "        GPU Current Temp                  : ",
        "            Used GPU Memory               : 6684 MiB",
        "    MIG Device\n        Index                             : 0",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let file = fleet.path().join("log.xml");
    fleet.ask("nvidia-smi", &["-q", "-x", "-f", file.to_str().expect("text")]);
    assert_well_formed(&std::fs::read_to_string(&file).expect("it was written"));
}

#[test]
fn the_exporter_speaks_prometheus() {
    use std::io::{Read, Write};
    let fleet = Fleet::start("2xA100-40GB", &["--freeze"]);
    let _trainer = fleet.train(&["--profile", "vgg"]);
    wait_until("the plateau", || fleet.used_mib(0) == 6684);
    let mut command = fleet.command(COLOC, &["emu", "exporter", "--listen", "127.0.0.1:0"]);
    let mut exporter = Trainer(command.stdout(Stdio::piped()).spawn().expect("the binary"));
    let mut line = String::new();
    let stdout = exporter.0.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("its address");
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let get = |path: &str| {
        let mut stream = std::net::TcpStream::connect(address.expect("an address")).expect("open");
        // In pieces, some of which may come after the answer: that must not cost the answer.
        for piece in ["GET ", path, " HTTP/1.1\r\nHost: x\r\n\r\n"] {
            stream.write_all(piece.as_bytes()).expect("open");
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    };
    let metrics = get("/metrics");
    let value = |name: &str, gpu: &str| {
        let start = format!("{name}{{gpu=\"{gpu}\"");
        let line = metrics.lines().find(|line| line.starts_with(&start)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok())
    };
    assert_eq!(value("DCGM_FI_PROF_SM_ACTIVE", "0"), Some(0.73), "{metrics}");
    assert_eq!(value("DCGM_FI_PROF_SM_ACTIVE", "1"), Some(0.0));
    assert_eq!(value("DCGM_FI_DEV_FB_USED", "0"), Some(6684.0));
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    assert!(get("/metrics HTTP/1.1\r\n\r\ngarbage").starts_with("HTTP/1.1"));
}

#[test]
fn an_installation_finds_its_libraries_and_a_lone_binary_says_what_is_missing() {
    let workspace = Workspace::with(&[]);
    let (bin, lib) = (workspace.path().join("bin"), workspace.path().join("lib/coloc"));
    for folder in [&bin, &lib] {
        std::fs::create_dir_all(folder).expect("writable");
    }
    let binary = bin.join("coloc");
    std::fs::copy(COLOC, &binary).expect("a copy of the binary");
    let run = || {
        let arguments = ["emu", "run", "--fleet", "1xT4-16GB", "--", "nvidia-smi", "-L"];
        Command::new(&binary).args(arguments).output().expect("the copy")
    };
    let alone = run();
    assert_eq!(alone.status.code(), Some(1));
    let complaint = text(&alone.stderr);
    assert!(
        complaint.contains("libcoloc_emu_nvml.so") && complaint.contains("cargo build"),
        "{complaint}"
    );
    let built = Path::new(COLOC).parent().expect("a folder").join("deps");
    for file in ["libcoloc_emu_nvml.so", "libcoloc_emu_cuda.so"] {
        std::fs::copy(built.join(file), lib.join(file)).expect("built");
    }
    let whole = run();
    assert!(text(&whole.stdout).contains("Tesla T4"), "{}", text(&whole.stderr));
}

#[test]
fn nobody_stays_on_a_fleet_that_is_gone() {
    let fleet = Fleet::start("1xT4-16GB", &[]);
    let trainer = fleet.train(&["--memory", "1G"]);
    wait_until("work", || fleet.used_mib(0) > 0);
    fleet.ask("nvidia-cuda-mps-control", &["-d"]);
    let pid_file = fleet.path().join("mps/nvidia-cuda-mps-control.pid");
    let daemon = std::fs::read_to_string(pid_file).expect("the daemon's id");
    fleet.ask(COLOC, &["emu", "stop"]);
    let (code, _, complaint) = trainer.end();
    assert_eq!(code, Some(1));
    assert!(complaint.contains("the emulated fleet is gone"), "{complaint}");
    let stat = format!("/proc/{daemon}/stat");
    wait_until("the daemon's end", || {
        std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "))
    });
}
