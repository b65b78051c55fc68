//! Commands on a fleet: how they run and end, what is refused, and what is left behind.

use super::fleet::{COLOC, Fleet, text, wait_until};
use crate::support::Workspace;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

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
    if cfg!(debug_assertions) {
        assert_eq!(alone.status.code(), Some(1));
        let complaint = text(&alone.stderr);
        assert!(
            complaint.contains("libcoloc_emu_nvml.so") && complaint.contains("cargo build"),
            "{complaint}"
        );
    } else {
        // A release has them inside.
        assert!(text(&alone.stdout).contains("Tesla T4"), "{}", text(&alone.stderr));
    }
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

#[test]
fn a_fleet_is_not_started_over_another() {
    let fleet = Fleet::start("1xT4-16GB", &[]);
    let place = fleet.path().join("fleet").display().to_string();
    let again = fleet.run(COLOC, &["emu", "start", "--fleet", "2xT4-16GB", "--dir", &place]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("holds a fleet already"), "{}", text(&again.stderr));
    assert_eq!(fleet.show()["gpus"].as_array().map(Vec::len), Some(1));
}
