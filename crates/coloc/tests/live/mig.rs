//! `--share mig`: every task has an instance of its own, which the daemon makes and takes away.

use super::home::{Home, coloc, text};
use serde_json::Value;

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");

/// Longer than any test, by the scaled clock.
const LONG: &str = "36000";

/// A training that takes `memory` and says that it needs `said`.
fn train(home: &Home, said: &str, memory: &str, extra: &[&str]) -> u32 {
    let words = ["--gpu-mem", said, "--", COLOC, "emu", "train", "--memory", memory];
    home.submit(&words.iter().chain(extra).copied().collect::<Vec<_>>())
}

/// The emulated GPUs behind the daemon's back.
fn fleet(home: &Home) -> Value {
    let output = coloc()
        .args(["emu", "show", "--json"])
        .env("COLOC_EMU_DIR", home.path().join("state/emulated"))
        .output()
        .expect("it runs");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn gpus(home: &Home) -> Vec<Value> {
    fleet(home)["gpus"].as_array().expect("GPUs").clone()
}

/// The names of the instances on a GPU, sorted.
fn instances(gpu: &Value) -> Vec<String> {
    let devices = gpu["mig_devices"].as_array().expect("devices").iter();
    let mut names: Vec<String> =
        devices.map(|device| device["name"].as_str().expect("a name").to_owned()).collect();
    names.sort_unstable();
    names
}

fn has_instance(home: &Home, id: u32, size: &str) -> bool {
    home.story(id).contains(&format!("MIG instance {size}@"))
}

#[test]
fn tasks_run_side_by_side_on_instances_and_leave_none_behind() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "60", "--share", "mig"]);
    assert_eq!(gpus(&home)[0]["mig"], false, "nothing is partitioned before somebody needs it");
    let half = train(&home, "15G", "15G", &["--sm", "0.2", "--seconds", LONG]);
    // It keeps 0.4 of a board's SMs busy all the time, and gets a slice with 14 of 108.
    let busy = ["--gpu-active", "1", "--sm", "0.4", "--dram", "0.01", "--seconds", LONG];
    let small = train(&home, "4G", "4G", &busy);
    let quarter = train(&home, "9G", "9G", &["--sm", "0.1", "--seconds", LONG]);
    home.wait_for("three at work", |home| {
        let gpu = &gpus(home)[0];
        let processes = gpu["processes"].as_array().expect("processes");
        processes.len() == 3
            && processes.iter().all(|process| process["speed"].as_f64() > Some(0.0))
    });
    let gpu = &gpus(&home)[0];
    assert_eq!(gpu["mig"], true);
    assert_eq!(instances(gpu).len(), 3, "{gpu}");
    assert!(has_instance(&home, half, "4g"), "{}", home.story(half));
    assert!(has_instance(&home, small, "1g"), "{}", home.story(small));
    for device in gpu["mig_devices"].as_array().expect("devices") {
        assert!(device["memory_used_bytes"].as_u64() <= device["memory_total_bytes"].as_u64());
    }
    // A slice with a third of the SMs that a task keeps busy runs it at a third of the speed.
    let expected = 14.0 / 108.0 / 0.4;
    let processes = gpu["processes"].as_array().expect("processes");
    let seen = |process: &Value| process["speed"].as_f64().expect("a speed");
    assert!(processes.iter().any(|p| (seen(p) - expected).abs() < 0.02), "{expected}: {gpu}");
    home.run(&["cancel", "all"]);
    for id in [small, half, quarter] {
        home.wait_for_state(id, "cancelled");
    }
    // They are kept for the next, but not for ever; the mode goes when the daemon does.
    home.wait_for("no instance", |home| instances(&gpus(home)[0]).is_empty());
    home.stop();
    assert_eq!(gpus(&home)[0]["mig"], false, "MIG is off as it was");
}

#[test]
fn a_task_that_is_too_large_for_its_instance_gets_a_larger_one() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50", "--share", "mig"]);
    let neighbour = train(&home, "4G", "4G", &["--sm", "0.1", "--seconds", LONG]);
    let liar = train(&home, "4G", "9G", &["--sm", "0.1", "--seconds", "20"]);
    home.wait_for_state(liar, "completed");
    let story = home.story(liar);
    assert!(story.contains("ran out of GPU memory"), "{story}");
    assert!(story.contains("(4.8 GiB)") && story.contains("(9.6 GiB)"), "{story}");
    let neighbour = home.show(neighbour);
    assert_eq!((&neighbour["state"], &neighbour["attempts"]), (&"running".into(), &1.into()));
}

#[test]
fn instances_outlive_a_daemon_with_their_tasks_and_not_longer() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "60", "--share", "mig"]);
    let long = train(&home, "9G", "9G", &["--sm", "0.1", "--seconds", LONG]);
    let short = train(&home, "4G", "4G", &["--sm", "0.1", "--seconds", LONG]);
    home.wait_for("both at work", |home| {
        let gpu = &gpus(home)[0];
        let processes = gpu["processes"].as_array().expect("processes");
        let large = |process: &Value| process["memory_bytes"].as_u64() > Some(6 << 30);
        processes.len() == 2 && processes.iter().any(large)
    });
    home.kill();
    assert_eq!(instances(&gpus(&home)[0]).len(), 2, "nobody takes them from who is in them");
    // One ends while no daemon looks.
    let processes = gpus(&home)[0]["processes"].as_array().expect("processes").clone();
    let smaller = processes.iter().min_by_key(|process| process["memory_bytes"].as_u64());
    let pid = smaller.expect("a process")["pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.expect("kill runs").success());
    home.wait_for("one at work", |home| {
        gpus(home)[0]["processes"].as_array().expect("processes").len() == 1
    });
    home.boot();
    home.wait_for_state(short, "failed");
    // What it left is found and goes; the other is not disturbed.
    home.wait_for("one instance", |home| instances(&gpus(home)[0]).len() == 1);
    let next = train(&home, "15G", "15G", &["--sm", "0.1", "--seconds", "20"]);
    home.wait_for_state(next, "completed");
    assert_eq!(home.state(long), "running");
    assert_eq!(home.show(long)["attempts"], 1);
    home.run(&["cancel", &long.to_string()]);
    home.wait_for("no instance", |home| instances(&gpus(home)[0]).is_empty());
}

#[test]
fn a_gpu_that_somebody_uses_is_not_partitioned_and_says_so() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20", "--share", "mig"]);
    let emulated = home.path().join("state/emulated");
    let mut stranger = coloc()
        .args(["emu", "train", "--memory", "2G", "--seconds", "36000"])
        .env("COLOC_EMU_DIR", &emulated)
        .env("LD_LIBRARY_PATH", emulated.join("lib"))
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it runs");
    home.wait_for("a stranger", |home| {
        gpus(home)[0]["processes"].as_array().expect("processes").len() == 1
    });
    let id = train(&home, "4G", "4G", &["--seconds", "10"]);
    home.wait_for("a reason", |home| {
        let why = home.json(&["why", &id.to_string()]).to_string();
        why.contains("needs a MIG instance") || home.story(id).contains("MIG mode can be changed")
    });
    assert_eq!(gpus(&home)[0]["mig"], false);
    stranger.kill().expect("ours");
    stranger.wait().expect("it ends");
    home.wait_for_state(id, "completed");
    assert_eq!(home.show(id)["attempts"], 1, "waiting for a GPU is no attempt");
}

#[test]
fn gpus_without_mig_and_tasks_on_several_gpus_are_refused_with_the_reason() {
    let place = tempfile::tempdir().expect("a directory");
    let output = coloc()
        .args(["daemon", "--emulate", "1xV100-16GB", "--share", "mig", "--state"])
        .arg(place.path().join("state"))
        .arg("--socket")
        .arg(place.path().join("socket"))
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("GPU 0 is a V100-16GB") && said.contains("--share mps"), "{said}");
    let home = Home::new(&["--emulate", "2xA100-40GB", "--share", "mig"]);
    let gang = home.try_run(&["submit", "--gpus", "2", "--", "true"]);
    assert!(text(&gang.stderr).contains("ask for one GPU"), "{}", text(&gang.stderr));
}
