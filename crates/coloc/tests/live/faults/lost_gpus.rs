//! GPUs that are lost, drivers that are reloaded, calls that hang: tasks start again elsewhere, nothing is started
//! where nothing can run, and every user is told.

use crate::live::home::{Home, coloc, text};
use serde_json::Value;

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");
/// Longer than any test, by the scaled clock.
pub(super) const LONG: &str = "36000";

/// Something beside the daemon that uses the same emulated driver.
pub(super) fn beside(home: &Home, words: &[&str]) -> std::process::Output {
    let emulated = home.path().join("state/emulated");
    coloc()
        .args(words)
        .env("COLOC_EMU_DIR", &emulated)
        .env("COLOC_SOCKET", home.socket())
        .env("LD_LIBRARY_PATH", emulated.join("lib"))
        .output()
        .expect("it runs")
}

pub(super) fn fault(home: &Home, words: &[&str]) {
    let all: Vec<&str> = ["emu", "fault"].iter().chain(words).copied().collect();
    assert!(beside(home, &all).status.success(), "{words:?}");
}

pub(super) fn train(home: &Home, seconds: &str) -> u32 {
    home.submit(&[
        "--exclusive",
        "--",
        COLOC,
        "emu",
        "train",
        "--memory",
        "4G",
        "--seconds",
        seconds,
    ])
}

/// It holds memory on this GPU.
pub(super) fn works_on(home: &Home, id: u32, gpu: u32) -> bool {
    let task = home.show(id);
    let here = task["gpu_ids"].as_array().is_some_and(|gpus| gpus.contains(&gpu.into()));
    here && task["state"] == "running" && task["peak_bytes"].as_u64() > Some(1 << 30)
}

#[test]
fn a_task_whose_gpu_is_lost_starts_again_on_another() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "20"]);
    let id = train(&home, LONG);
    home.wait_for("work", |home| works_on(home, id, 0) || works_on(home, id, 1));
    let gpu = home.show(id)["gpu_ids"][0].as_u64().expect("a GPU") as u32;
    let other = 1 - gpu;
    fault(&home, &["lost", &gpu.to_string()]);
    home.wait_for("work elsewhere", |home| works_on(home, id, other));
    let story = home.story(id);
    assert!(story.contains(&format!("GPU {gpu} was lost under it; it starts again")), "{story}");
    assert_eq!(home.show(id)["attempts"], 2);
    // Another one finds no GPU, and is told why.
    let next = train(&home, LONG);
    home.wait_for("a reason", |home| {
        let why = home.json(&["why", &next.to_string()]);
        let gpus = why["gpus"].as_array().expect("GPUs").clone();
        let lost = gpus.iter().find(|seen| seen["gpu"] == gpu).expect("it is told");
        lost["refusals"].to_string().contains("is lost")
    });
    let gpus: Value =
        serde_json::from_slice(&beside(&home, &["gpus", "--json"]).stdout).expect("JSON");
    assert!(gpus["gpus"][gpu as usize]["error"].to_string().contains("lost"), "{gpus}");
    let doctor = text(&beside(&home, &["doctor"]).stdout);
    assert!(doctor.contains(&format!("GPU {gpu}: the GPU is lost")), "{doctor}");
    fault(&home, &["restore", &gpu.to_string()]);
    // It fell off the bus: an administrator says when it is to be trusted again.
    home.wait_for("its return", |home| home.json(&["gpus"])["gpus"][gpu as usize]["lost"] == false);
    let shown = home.json(&["gpus"])["gpus"][gpu as usize].clone();
    assert_eq!(shown["drain_reason"], "XID 79 (fallen off the bus)");
    assert_eq!(home.state(next), "pending");
    home.run(&["resume", "--gpu", &gpu.to_string()]);
    home.wait_for("work on the one that is back", |home| works_on(home, next, gpu));
    assert_eq!(home.show(next)["attempts"], 1);
}

#[test]
fn tasks_wait_while_the_driver_is_reloaded() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let id = train(&home, LONG);
    home.wait_for("work", |home| works_on(home, id, 0));
    fault(&home, &["unload"]);
    home.wait_for("the end of its attempt", |home| home.state(id) == "pending");
    let next = train(&home, "10");
    assert!(home.story(id).contains("was lost under it"), "{}", home.story(id));
    let doctor = text(&beside(&home, &["doctor"]).stdout);
    assert!(doctor.contains("kernel module is not loaded"), "{doctor}");
    assert_eq!(home.show(next)["attempts"], 0, "nothing is started without a driver");
    fault(&home, &["load"]);
    home.wait_for("work", |home| works_on(home, id, 0));
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(next, "completed");
}

#[test]
fn a_driver_that_hangs_holds_up_nobody() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let id = train(&home, LONG);
    home.wait_for("work", |home| works_on(home, id, 0));
    fault(&home, &["nvml-delay", "3000"]);
    let plain = home.submit(&["--hold", "--", "true"]);
    assert_eq!((home.state(id).as_str(), home.state(plain).as_str()), ("running", "pending"));
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    fault(&home, &["nvml-delay", "0"]);
    home.run(&["release", &plain.to_string()]);
    home.wait_for_state(plain, "completed");
}

#[test]
fn an_emulated_driver_whose_state_is_cut_off_ends_no_daemon() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let id = train(&home, LONG);
    home.wait_for("work", |home| works_on(home, id, 0));
    let file = home.path().join("state/emulated/fleet.state");
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("it is ours");
    file.set_len(0).expect("it is ours");
    // Without a driver the GPU is lost; the task, which has none either, waits for another.
    home.wait_for("the loss", |home| home.json(&["gpus", "--host", ""])["gpus"][0]["lost"] == true);
    home.wait_for("the end of its attempt", |home| home.state(id) == "pending");
    let plain = home.submit(&["--hold", "--", "true"]);
    assert_eq!(home.state(plain), "pending", "the daemon answers");
}

#[test]
fn a_gpu_that_is_lost_over_a_restart_mixes_no_tasks_up() {
    let mut home = Home::new(&["--emulate", "2xA100-40GB", "--grace", "0.3"]);
    let ran = home.path().join("ran");
    let script = format!(
        "echo start $COLOC_ATTEMPT $CUDA_VISIBLE_DEVICES >> {0}; sleep 4; echo end $COLOC_ATTEMPT >> {0}",
        ran.display()
    );
    let submit = || home.submit(&["--exclusive", "--", "sh", "-c", &script]);
    let (lost, fine) = (submit(), submit());
    let said = || std::fs::read_to_string(&ran).unwrap_or_default();
    home.wait_for("both", |_| said().lines().count() == 2);
    let on = |home: &Home, id: u32| home.show(id)["gpu_ids"][0].as_u64().expect("a GPU");
    let (lost, fine) = if on(&home, lost) == 0 { (lost, fine) } else { (fine, lost) };
    let fault = crate::live::home::coloc()
        .args(["emu", "fault", "lost", "0"])
        .env("COLOC_EMU_DIR", home.path().join("state/emulated"))
        .status();
    assert!(fault.expect("it runs").success());
    home.kill();
    home.boot();
    home.wait_for_state(fine, "completed");
    home.wait_for_state(lost, "completed");
    let (fine, lost) = (home.show(fine), home.show(lost));
    assert_eq!(fine["attempts"], 1, "{}", said());
    assert_eq!(lost["attempts"], 2, "{}", said());
    // The second attempt came after the first of the other on the only GPU that was left.
    let order: Vec<String> = said().lines().map(str::to_owned).collect();
    assert_eq!(order.len(), 5, "{order:?}");
    assert!(order[3].starts_with("start"), "{order:?}");
}

#[test]
fn a_gpu_that_was_lost_over_a_restart_takes_tasks_when_it_is_back() {
    let mut home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "20"]);
    let gpus = |home: &Home| home.json(&["gpus"])["gpus"].as_array().cloned().unwrap_or_default();
    let uuid = gpus(&home)[0]["uuid"].as_str().expect("a name").to_owned();
    fault(&home, &["lost", "0"]);
    home.wait_for("its drain", |home| gpus(home)[0]["drained"] == true);
    home.stop();
    home.boot();
    assert_eq!(gpus(&home).len(), 1, "it is not there");
    let runs = train(&home, LONG);
    home.wait_for("work on the other", |home| works_on(home, runs, 0));
    let waits = train(&home, LONG);
    fault(&home, &["restore", "0"]);
    home.wait_for("its return", |home| gpus(home).len() == 2);
    let back = gpus(&home)[1].clone();
    assert_eq!(back["uuid"], uuid.as_str());
    // What was known of it before counts still.
    assert_eq!(back["drain_reason"], "XID 79 (fallen off the bus)", "{back}");
    assert_eq!(home.state(waits), "pending");
    home.run(&["resume", "--gpu", "1"]);
    home.wait_for("work on it", |home| works_on(home, waits, 1));
    assert_eq!(home.show(runs)["attempts"], 1, "who ran goes on");
    // A restart finds both where they are, whatever the numbers are then.
    home.kill();
    home.boot();
    home.wait_for("both", |home| [runs, waits].iter().all(|&id| home.state(id) == "running"));
    assert_eq!(home.show(runs)["attempts"], 1);
    assert_eq!(home.show(waits)["attempts"], 1);
    let on = |id: u32| {
        let gpu = home.show(id)["gpu_ids"][0].as_u64().expect("a GPU") as usize;
        gpus(&home)[gpu]["uuid"].as_str().expect("a name").to_owned()
    };
    assert_eq!(on(waits), uuid);
    assert_ne!(on(runs), uuid);
}
