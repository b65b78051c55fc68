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
