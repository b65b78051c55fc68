//! GPUs that are lost, drivers that are reloaded, calls that hang: tasks start again elsewhere, nothing is started where
//! nothing can run, and everybody is told.

use super::home::{Home, coloc, text};
use serde_json::Value;

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");
/// Longer than any test, by the scaled clock.
const LONG: &str = "36000";

/// Something beside the daemon that uses the same emulated driver.
fn beside(home: &Home, words: &[&str]) -> std::process::Output {
    let emulated = home.path().join("state/emulated");
    coloc()
        .args(words)
        .env("COLOC_EMU_DIR", &emulated)
        .env("COLOC_SOCKET", home.socket())
        .env("LD_LIBRARY_PATH", emulated.join("lib"))
        .output()
        .expect("it runs")
}

fn fault(home: &Home, words: &[&str]) {
    let all: Vec<&str> = ["emu", "fault"].iter().chain(words).copied().collect();
    assert!(beside(home, &all).status.success(), "{words:?}");
}

fn train(home: &Home, seconds: &str) -> u32 {
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
fn works_on(home: &Home, id: u32, gpu: u32) -> bool {
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
        lost["refusals"].to_string().contains("is lost or out of service")
    });
    let gpus: Value =
        serde_json::from_slice(&beside(&home, &["gpus", "--json"]).stdout).expect("JSON");
    assert!(gpus["gpus"][gpu as usize]["error"].to_string().contains("lost"), "{gpus}");
    let doctor = text(&beside(&home, &["doctor"]).stdout);
    assert!(doctor.contains(&format!("GPU {gpu}: the GPU is lost")), "{doctor}");
    fault(&home, &["restore", &gpu.to_string()]);
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
