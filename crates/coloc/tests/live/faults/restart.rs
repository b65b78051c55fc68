//! What was acknowledged is never lost, and nothing runs twice, however the daemon ends.

use crate::live::home::{Home, coloc, text};
use std::path::Path;

/// A task that leaves a line in a file each time it runs.
fn count(file: &Path, then: &str) -> String {
    format!("echo ran >> {}; {then}", file.display())
}

fn times(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

#[test]
fn tasks_are_where_they_were_after_a_kill() {
    let mut home = Home::new(&["--emulate", "2xA100-40GB"]);
    let files: Vec<_> = (0..4).map(|n| home.path().join(format!("ran{n}"))).collect();
    let go = home.path().join("go");
    let until = format!("while ! test -e {}; do sleep 0.02; done", go.display());
    let runs = home.submit(&["--exclusive", "--", "sh", "-c", &count(&files[0], &until)]);
    let fails = count(&files[1], "sleep 0.3; exit 3");
    let ends = home.submit(&["--exclusive", "--", "sh", "-c", &fails]);
    let waits =
        home.submit(&["--gpus", "2", "--exclusive", "--", "sh", "-c", &count(&files[2], "true")]);
    let held = home.submit(&["--hold", "--", "sh", "-c", &count(&files[3], "true")]);
    home.wait_for("both run", |_| times(&files[0]) == 1 && times(&files[1]) == 1);
    home.kill();
    // One ends while no daemon looks.
    std::thread::sleep(std::time::Duration::from_millis(600));
    home.boot();
    home.wait_for_state(ends, "failed");
    assert_eq!(home.show(ends)["exit_code"], 3);
    assert_eq!((home.state(runs).as_str(), home.state(held).as_str()), ("running", "pending"));
    assert_eq!(home.state(waits), "pending", "its GPUs are still in use");
    assert!(home.story(runs).contains("found running after a restart"));
    std::fs::write(&go, "").expect("a file");
    home.wait_for_state(runs, "completed");
    home.wait_for_state(waits, "completed");
    home.run(&["release", &held.to_string()]);
    home.wait_for_state(held, "completed");
    for file in &files {
        assert_eq!(times(file), 1, "{}", file.display());
    }
}

#[test]
fn a_training_outlives_the_daemon_on_its_gpu() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let id = home.submit(&[
        "--gpu-mem",
        "9G",
        "--",
        coloc,
        "emu",
        "train",
        "--memory",
        "8G",
        "--seconds",
        "60",
    ]);
    home.wait_for("its memory", |home| home.show(id)["peak_bytes"].as_u64() > Some(7 << 30));
    home.kill();
    home.boot();
    home.wait_for_state(id, "completed");
    assert_eq!(home.show(id)["attempts"], 1);
    assert!(home.run(&["logs", &id.to_string()]).contains("progress 100%"));
}

#[test]
fn a_directory_keeps_its_emulated_gpus() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.stop();
    let other = crate::live::home::coloc()
        .args(["daemon", "--emulate", "2xA100-40GB", "--state"])
        .arg(home.path().join("state"))
        .output()
        .expect("it runs");
    assert_eq!(other.status.code(), Some(2));
    assert!(crate::live::home::text(&other.stderr).contains("has other emulated GPUs"));
}

#[test]
fn one_daemon_a_directory() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let second = crate::live::home::coloc()
        .args(["daemon", "--emulate", "1xA100-40GB", "--state"])
        .arg(home.path().join("state"))
        .arg("--socket")
        .arg(home.path().join("other"))
        .output()
        .expect("it runs");
    assert_eq!(second.status.code(), Some(1));
    assert!(crate::live::home::text(&second.stderr).contains("another daemon uses"));
    home.run(&["queue"]);
}

#[test]
fn a_requeue_that_was_acknowledged_survives_the_daemon() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "0.3"]);
    let file = home.path().join("ran");
    // The second run ends; the first one does not want to go.
    let script = format!(
        "trap '' TERM; echo ran >> {0}; test $(wc -l < {0}) -ge 2 || while :; do sleep 0.02; done",
        file.display()
    );
    let id = home.submit(&["--", "bash", "-c", &script]);
    home.wait_for("a run", |_| times(&file) == 1);
    home.run(&["requeue", &id.to_string()]);
    home.kill();
    home.boot();
    home.wait_for_state(id, "completed");
    assert_eq!(times(&file), 2, "{}", home.story(id));
}

#[test]
fn tasks_of_a_narrow_array_come_back_after_a_failure() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let first = home.submit(&["-a", "1-2%1", "--retry", "1", "--", "false"]);
    home.wait_for_state(first, "failed");
    home.wait_for_state(first + 1, "failed");
    assert_eq!(home.show(first)["attempts"], 2);
}

#[test]
fn what_ended_tasks_of_an_array_had_is_kept_when_the_others_are_changed() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let first = home.submit(&["--hold", "-a", "1-2", "--", "true"]);
    home.run(&["release", &first.to_string()]);
    home.wait_for_state(first, "completed");
    home.run(&["update", &(first + 1).to_string(), "--name", "other"]);
    assert_eq!(home.show(first)["state"], "completed");
    home.kill();
    home.boot();
    assert_eq!(home.state(first), "completed");
    home.run(&["release", &(first + 1).to_string()]);
    home.wait_for_state(first + 1, "completed");
}

/// A journal that was put back does not know which tasks were started since. They go on unwatched.
#[test]
fn tasks_that_a_journal_does_not_know_are_not_killed() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.wait_for_state(home.submit(&["--", "true"]), "completed");
    let backup = home.path().join("backup");
    let state = home.path().join("state");
    let about = |words: &[&str]| {
        let done = coloc().arg("state").args(words).arg("--state").arg(&state).output();
        let done = done.expect("it runs");
        assert!(done.status.success(), "{}", text(&done.stderr));
        text(&done.stdout)
    };
    about(&["backup", backup.to_str().expect("a path")]);
    let unknown = home.submit(&["--gpu-mem", "1G", "--", "sh", "-c", "echo $$; exec sleep 600"]);
    let pid = |home: &Home| home.run(&["logs", &unknown.to_string()]).trim().to_owned();
    home.wait_for("its process", |home| !pid(home).is_empty());
    let pid = pid(&home);
    home.kill();
    let told = about(&["restore", backup.to_str().expect("a path")]);
    assert!(told.contains("go on unwatched"), "{told}");
    home.boot();
    assert!(!home.try_run(&["show", &unknown.to_string()]).status.success(), "it is not known");
    let process = std::path::PathBuf::from(format!("/proc/{pid}"));
    assert!(process.exists(), "it goes on");
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.expect("it runs").success());
}
