//! What a task gets, and what is told of it.

use super::home::{Home, text};

#[test]
fn a_task_runs_and_its_words_are_kept() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let id = home.submit(&["-J", "hello", "--", "sh", "-c", "echo to you; echo and me >&2; env"]);
    assert!(home.try_run(&["wait", &id.to_string()]).status.success());
    let log = home.run(&["logs", &id.to_string()]);
    assert!(log.starts_with("to you\nand me\n"), "{log}");
    for variable in
        ["CUDA_VISIBLE_DEVICES=GPU-", "CUDA_DEVICE_ORDER=PCI_BUS_ID", "SLURM_JOB_NAME=hello"]
    {
        assert!(log.contains(variable), "{variable} is not in\n{log}");
    }
    let task = home.show(id);
    assert_eq!((task["state"].as_str(), task["exit_code"].as_i64()), (Some("completed"), Some(0)));
    assert_eq!(task["schema"], 1);
    let listed = home.json(&["queue"]);
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(0), "it has ended");
    let listed = home.json(&["queue", "--all"]);
    assert_eq!(listed["tasks"][0]["id"], id);
}

#[test]
fn an_attached_task_gives_its_exit_code() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let output = home.try_run(&["run", "--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "out\n"));
    let missing = home.try_run(&["run", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(2), "{}", text(&missing.stderr));
    assert!(text(&missing.stderr).contains("there is no program /no/such/program"));
    let missing = home.try_run(&["run", "--force", "--", "/no/such/program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stdout).contains("cannot start /no/such/program"));
    let late = home.try_run(&["run", "-t", "1s", "--", "sleep", "60"]);
    assert_eq!(late.status.code(), Some(124), "{}", text(&late.stderr));
}

#[test]
fn the_whole_tree_goes_when_a_task_is_cancelled() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "0.3"]);
    let mark = home.path().join("mark");
    // A child in a session of its own that ignores the polite signal, and a parent that does too.
    let script = format!(
        "trap '' TERM; setsid sh -c \"trap '' TERM; echo \\$\\$ > {0}; sleep 100\" & wait",
        mark.display()
    );
    let id = home.submit(&["--", "sh", "-c", &script]);
    home.wait_for("the child", |_| std::fs::read_to_string(&mark).is_ok_and(|t| t.ends_with('\n')));
    let child = std::fs::read_to_string(&mark).expect("it was written").trim().to_owned();
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
    let gone = |_: &Home| !std::path::Path::new(&format!("/proc/{child}/stat")).exists();
    home.wait_for("the child's end", gone);
}

#[test]
fn a_failure_is_tried_again_as_often_as_was_said() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--retry", "2", "--", "false"]);
    home.wait_for_state(id, "failed");
    assert_eq!(home.show(id)["attempts"], 3);
    assert!(home.story(id).contains("failed (exit code 1)"));
}

/// A task that fails at once must not keep the daemon busy: pauses between its tries grow.
#[test]
fn tries_of_a_task_that_fails_at_once_have_pauses_that_grow() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let began = std::time::Instant::now();
    let id = home.submit(&["--retry", "1000", "--", "false"]);
    // After 1 s and 2 s; the next comes after 4 s.
    home.wait_for("its third try", |home| home.show(id)["attempts"] == 3);
    assert!(began.elapsed() >= std::time::Duration::from_millis(2900), "{:?}", began.elapsed());
    let waits = "waits for its next try, 4 s after the start of the last: it has failed 3 times";
    home.wait_for("its next pause", |home| home.show(id)["reason"] == waits);
    assert_eq!(home.json(&["why", &id.to_string()])["summary"], waits);
    // A restart does not cut it short.
    home.kill();
    home.boot();
    home.wait_for("its fourth try", |home| home.show(id)["attempts"] == 4);
    assert!(began.elapsed() >= std::time::Duration::from_millis(6900), "{:?}", began.elapsed());
    home.run(&["cancel", &id.to_string()]);
    home.wait_for_state(id, "cancelled");
}

#[test]
fn a_task_of_a_limited_array_that_runs_again_does_not_wait_for_itself() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let script = "test $COLOC_RESTART_COUNT -gt 0";
    let first = home.submit(&["-a", "1-2%1", "--retry", "1", "--", "sh", "-c", script]);
    for id in [first, first + 1] {
        home.wait_for_state(id, "completed");
        assert_eq!(home.show(id)["attempts"], 2);
    }
}
