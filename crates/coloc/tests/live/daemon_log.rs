//! The daemon's log: what happened to which task, and which user asked for it.

use super::home::Home;
use super::users::{shared_home, submit_as_nobody};
use serde_json::Value;

fn lines(home: &Home) -> Vec<String> {
    let log = std::fs::read_to_string(home.path().join("daemon.log")).expect("a log");
    log.lines().map(str::to_owned).collect()
}

#[test]
fn json_lines_tell_what_happens_to_a_task() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--log-format", "json"]);
    let id = home.submit(&["--gpu-mem", "1G", "--", "true"]);
    home.wait_for_state(id, "completed");
    let of_task = |home: &Home| -> Vec<Value> {
        let all = lines(home).into_iter().map(|line| serde_json::from_str(&line).expect("JSON"));
        all.filter(|line: &Value| line["task"] == id).collect()
    };
    home.wait_for("its end in the log", |home| {
        of_task(home).last().is_some_and(|line| line["message"] == "completed")
    });
    let told = of_task(&home);
    assert_eq!(told[0]["message"], "submitted");
    assert!(told[1]["message"].as_str().expect("text").contains("launched on GPU 0"), "{told:?}");
    let uid = rustix::process::geteuid().as_raw();
    let end = told.last().expect("a line");
    assert_eq!((&end["level"], &end["uid"]), (&Value::from("INFO"), &Value::from(uid)));
    assert_eq!((&end["attempt"], &end["state"]), (&Value::from(1), &Value::from("completed")));
}

#[test]
fn who_cancelled_the_task_of_another_user_is_told() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let id = submit_as_nobody(&home, &["--", "sleep", "60"]);
    home.wait_for_state(id, "running");
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    let story = home.run(&["show", &id.to_string()]);
    assert!(story.contains("is cancelled, by root"), "{story}");
    let has = |line: &String| line.contains("is cancelled, by root") && line.contains("uid=65534");
    home.wait_for("it in the log", |home| lines(home).iter().any(has));
}

#[test]
fn a_quiet_log_has_what_matters_alone() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--log-level", "warn"]);
    let id = home.submit(&["--", "true"]);
    home.wait_for_state(id, "completed");
    assert_eq!(lines(&home), Vec::<String>::new());
}

#[test]
fn a_log_that_nobody_reads_does_not_stop_the_daemon() {
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("socket");
    let mut daemon = super::home::coloc()
        .args(["daemon", "--emulate", "1xA100-40GB", "--state"])
        .arg(place.path().join("state"))
        .arg("--socket")
        .arg(&socket)
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let run = |arguments: &[&str]| {
        let ran = super::home::coloc().args(arguments).env("COLOC_SOCKET", &socket).output();
        ran.expect("it runs").status.success()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !run(&["queue"]) {
        assert!(std::time::Instant::now() < deadline, "the daemon answers");
    }
    // Held tasks have a line each when they come and when they go: more than a pipe of 64 KiB takes.
    for _ in 0..4 {
        assert!(run(&["submit", "--hold", "--array", "0-999", "--", "true"]));
        assert!(run(&["cancel", "all"]));
    }
    assert!(run(&["queue"]), "it answers still");
    daemon.kill().expect("it is ours");
    daemon.wait().expect("it ends");
}
