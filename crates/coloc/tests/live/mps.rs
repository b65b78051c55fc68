//! Tasks that share a GPU under MPS: held to what they said, ended in good order, and never too many.

use super::home::Home;
use super::users::{shared_home, submit_as_nobody};

const COLOC: &str = env!("CARGO_BIN_EXE_coloc");
/// Longer than any test, by the scaled clock.
const LONG: &str = "360000";

const POLICY: [&str; 9] = [
    "--time-scale",
    "50",
    "--queue",
    "best-effort",
    "--place",
    "magm",
    "--share",
    "mps",
    "--share-blind",
];

/// A program that does not hear SIGTERM, with a client of MPS as its child.
const DEAF: &str = "trap '' TERM; \"$@\" & while :; do sleep 0.05; done";
const LET_GO: &str = "context is destroyed";

fn home_on(fleet: &str) -> Home {
    Home::new(&[&["--emulate", fleet][..], &POLICY].concat())
}

fn train<'a>(words: &[&'a str], extra: &[&'a str]) -> Vec<&'a str> {
    // Light, so that activity keeps no task out.
    [words, &[COLOC, "emu", "train", "--sm", "0.01", "--gpu-active", "0.05"], extra].concat()
}

/// Trains for as long as the test lasts.
fn keep_on(home: &Home, words: &[&str], memory: &str) -> u32 {
    let id = home.submit(&train(words, &["--memory", memory, "--seconds", LONG]));
    home.wait_for("memory", |home| home.show(id)["peak_bytes"].as_u64() > Some(1 << 30));
    id
}

fn gpu_memory(home: &Home, id: u32) -> String {
    home.show(id)["enforcement"]["gpu_memory"].as_str().expect("it is told").to_owned()
}

/// Takes the variable away by which a client asks for its own limit.
const FORGETFUL: [&str; 3] = ["env", "-u", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"];

#[test]
fn the_server_holds_a_task_that_takes_its_own_limit_away() {
    let home = home_on("1xA100-40GB");
    let words = [&["--gpu-mem", "4G", "--on-oom", "fail", "--"][..], &FORGETFUL].concat();
    let liar = home.submit(&train(&words, &["--memory", "12G", "--seconds", "1000"]));
    home.wait_for_state(liar, "out_of_memory");
    assert_eq!(gpu_memory(&home, liar), "mps_pinned_limit: 4.0 GiB, for each of its processes");

    // A server has one limit, that of the largest who may come: the smaller one is held by its word alone, and told so.
    let small = keep_on(&home, &["--gpu-mem", "4G", "--"], "3G");
    assert!(gpu_memory(&home, small).starts_with("mps_pinned_limit: 4.0 GiB"));
    let large = keep_on(&home, &["--gpu-mem", "10G", "--"], "9G");
    assert!(gpu_memory(&home, large).starts_with("mps_pinned_limit: 10.0 GiB"));
    let now = gpu_memory(&home, small);
    assert!(now.starts_with("mps_environment: 4.0 GiB"), "{now}");
    assert!(now.ends_with("its server refuses above 10.0 GiB"), "{now}");
    let liar = home.submit(&train(&words, &["--memory", "12G", "--seconds", "1000"]));
    home.wait_for_state(liar, "out_of_memory");

    // No task can be held to less than one that said nothing.
    let open = keep_on(&home, &["--"], "2G");
    assert!(gpu_memory(&home, open).starts_with("none: it did not say"));
    let now = gpu_memory(&home, large);
    assert!(now.ends_with("its server has no limit"), "{now}");
    for id in [small, large, open] {
        assert_eq!(home.show(id)["attempts"], 1);
    }
}

#[test]
fn a_restarted_daemon_knows_what_its_servers_clients_may_have() {
    let mut home = home_on("1xA100-40GB");
    let large = keep_on(&home, &["--gpu-mem", "10G", "--"], "9G");
    home.kill();
    home.boot();
    let small = keep_on(&home, &["--gpu-mem", "4G", "--"], "3G");
    let now = gpu_memory(&home, small);
    assert!(now.ends_with("its server refuses above 10.0 GiB"), "{now}");
    home.run(&["cancel", &large.to_string()]);
    home.wait_for_state(large, "cancelled");
    let next = keep_on(&home, &["--gpu-mem", "4G", "--"], "2G");
    assert!(gpu_memory(&home, next).starts_with("mps_pinned_limit: 4.0 GiB"));
    assert!(gpu_memory(&home, small).starts_with("mps_pinned_limit: 4.0 GiB"));
}

#[test]
fn another_users_task_is_held_by_a_server_of_its_own() {
    let flags = [&["--emulate", "1xA100-40GB"][..], &POLICY].concat();
    let Some(home) = shared_home(&flags) else { return };
    let roots = keep_on(&home, &["--gpu-mem", "10G", "--"], "2G");
    let words = [&["--gpu-mem", "4G", "--on-oom", "fail", "--"][..], &FORGETFUL].concat();
    let theirs = submit_as_nobody(&home, &train(&words, &["--memory", "12G", "--seconds", "1000"]));
    home.wait_for_state(theirs, "out_of_memory");
    assert_eq!(gpu_memory(&home, theirs), "mps_pinned_limit: 4.0 GiB, for each of its processes");
    assert!(gpu_memory(&home, roots).starts_with("mps_pinned_limit: 10.0 GiB"));
}

#[test]
fn the_server_lets_go_of_a_client_before_it_is_killed() {
    let flags = ["--emulate", "1xA100-40GB", "--grace", "0.2"];
    let home = Home::new(&[&flags[..], &POLICY].concat());
    let neighbour = keep_on(&home, &["--gpu-mem", "3G", "--"], "2G");
    let deaf = ["--", "sh", "-c", DEAF, "sh"];
    let cancelled = keep_on(&home, &deaf, "2G");
    home.run(&["cancel", &cancelled.to_string()]);
    home.wait_for_state(cancelled, "cancelled");
    let late = keep_on(&home, &[&["-t", "2m"][..], &deaf].concat(), "2G");
    home.wait_for_state(late, "timed_out");
    for id in [cancelled, late] {
        let words = home.run(&["logs", &id.to_string()]);
        assert!(words.contains(LET_GO), "{words}");
    }

    // A control daemon that never answers keeps no task from ending, and no client from asking.
    let stuck = keep_on(&home, &deaf, "2G");
    let control = home.path().join("state/emulated/bin/nvidia-cuda-mps-control");
    let kept = control.with_extension("kept");
    std::fs::rename(&control, &kept).expect("a tool");
    std::fs::write(&control, "#!/bin/sh\nexec sleep 600\n").expect("a tool");
    let run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&control, run).expect("a tool");
    home.run(&["cancel", &stuck.to_string()]);
    home.wait_for_state(stuck, "cancelled");
    assert!(!home.run(&["logs", &stuck.to_string()]).contains(LET_GO));
    // Another limit would have to be told. Its server is there, and has it as a client all the same.
    let say = ["sh", "-c", "test -n \"$CUDA_MPS_PIPE_DIRECTORY\" && echo a client"];
    let next = home.submit(&[&["--gpu-mem", "4G", "--"], &say[..]].concat());
    home.wait_for("its patience to be tried", |home| {
        ["launching", "completed"].contains(&home.state(next).as_str())
    });
    let reason = home.show(next)["reason"].clone();
    assert!(reason.as_str().is_none_or(|why| why.contains("has not answered yet")), "{reason}");
    home.wait_for_state(next, "completed");
    assert_eq!(home.run(&["logs", &next.to_string()]), "a client\n");
    let story = home.story(next);
    assert!(story.contains("MPS does not limit it, only its environment"), "{story}");
    // It is left alone from now on.
    let other = home.submit(&["--gpu-mem", "5G", "--", "true"]);
    home.wait_for_state(other, "completed");
    assert_eq!(home.show(neighbour)["attempts"], 1);
    std::fs::rename(&kept, &control).expect("a tool");
}

#[test]
fn tasks_whose_control_daemon_is_killed_start_again() {
    let home = home_on("1xA100-40GB");
    let tasks = [keep_on(&home, &["--"], "2G"), keep_on(&home, &["--"], "3G")];
    let uid = rustix::process::geteuid().as_raw();
    let daemons = home.path().join(format!("state/mps/{uid}"));
    let daemon = std::fs::read_dir(daemons).expect("daemons").flatten().next().expect("a daemon");
    let pid = daemon.path().join("pipe/nvidia-cuda-mps-control.pid");
    let pid = std::fs::read_to_string(pid).expect("a PID");
    let killed = std::process::Command::new("kill").args(["-KILL", pid.trim()]).status();
    assert!(killed.expect("kill runs").success());
    for id in tasks {
        home.wait_for("its next attempt", |home| {
            let task = home.show(id);
            task["attempts"] == 2 && task["state"] == "running"
        });
        let story = home.story(id);
        assert!(story.contains("its MPS server ended under it; it starts again"), "{story}");
    }
    // A failure of its own is one.
    home.run(&["cancel", "all"]);
    let id = home.submit(&["--", "false"]);
    home.wait_for_state(id, "failed");
}

#[test]
fn one_more_than_mps_takes_waits_and_is_told_why() {
    // A P100 takes 16 clients. One task has two processes, and so room is for fourteen more.
    let home = home_on("1xP100-16GB");
    let two = "\"$@\" & \"$@\"";
    let double = keep_on(&home, &["--gpu-mem", "2G", "--", "sh", "-c", two, "sh"], "600M");
    let small = ["--gpu-mem", "500M", "-a", "1-15", "--"];
    let first = home.submit(&train(&small, &["--memory", "450M", "--seconds", LONG]));
    let running = |home: &Home| {
        let tasks = home.json(&["queue"])["tasks"].as_array().expect("tasks").clone();
        tasks.iter().filter(|task| task["state"] == "running").count()
    };
    home.wait_for("fifteen tasks", |home| running(home) == 15);
    let last = first + 14;
    home.wait_for("a reason", |home| {
        home.run(&["why", &last.to_string()]).contains("has 16 clients of MPS, and takes 16")
    });
    assert_eq!(home.state(last), "pending");
    home.run(&["cancel", &double.to_string()]);
    home.wait_for_state(last, "running");
    let task = home.show(last);
    assert_eq!((task["attempts"].as_u64(), task["ooms"].as_u64()), (Some(1), Some(0)));
}

/// What a task says and its enforcement.
fn words_and_holds(home: &Home, words: &[&str]) -> (String, serde_json::Value) {
    let id = home.submit(words);
    home.wait_for_state(id, "completed");
    (home.run(&["logs", &id.to_string()]), home.show(id)["enforcement"].clone())
}

#[test]
fn a_share_of_the_sms_is_a_limit_under_mps_and_nowhere_else() {
    let home = home_on("1xA100-40GB");
    let say = ["--sm-percent", "30", "--", "sh", "-c", "echo $CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"];
    let (words, holds) = words_and_holds(&home, &say);
    assert_eq!(words, "30\n");
    assert_eq!(holds["sms"], "mps: 30 % of the SMs, by its environment");
    assert_eq!(holds["mps"]["threads_percent"], 30);
    let streams = Home::new(&["--emulate", "1xA100-40GB", "--share", "streams"]);
    let (words, holds) = words_and_holds(&streams, &say);
    assert_eq!(words, "\n");
    assert_eq!(holds["sms"], "none: SMs are limited under MPS only");
    let refused = streams.try_run(&["submit", "--sm-percent", "0", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_framework_is_told_what_it_may_hold() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--share", "streams"]);
    let say = "echo $XLA_PYTHON_CLIENT_MEM_FRACTION $COLOC_GPU_MEMORY_FRACTION";
    let of = |flags: &[&str]| words_and_holds(&home, &[flags, &["--", "sh", "-c", say]].concat());
    let (words, holds) = of(&["--gpu-mem", "8G", "--framework", "jax"]);
    assert_eq!(words, "0.2000 0.2000\n");
    let memory = holds["gpu_memory"].as_str().expect("it is told");
    assert!(memory.starts_with("framework_cap: 8.0 GiB"), "{memory}");
    // No variable caps PyTorch, so nothing is said to; its script may want to know.
    let (words, holds) = of(&["--gpu-mem", "8G", "--framework", "pytorch"]);
    assert_eq!(words, "0.2000\n");
    let memory = holds["gpu_memory"].as_str().expect("it is told");
    assert!(memory.starts_with("watchdog: 8.0 GiB"), "{memory}");
    let (words, holds) = of(&["--framework", "jax"]);
    assert_eq!(
        (words.trim(), &holds["gpu_memory"]),
        ("", &"none: it did not say what it needs".into())
    );
}
