//! Which task goes when: held tasks, dependencies, arrays, and why a task waits.

use super::home::{Home, text};

#[test]
fn a_waiting_task_says_what_is_short_on_each_gpu() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    for _ in 0..2 {
        home.submit(&["--gpu-mem", "30G", "--", "sleep", "60"]);
    }
    let third = home.submit(&["--gpu-mem", "30G", "--", "true"]);
    home.wait_for("two run", |home| home.state(1) == "running" && home.state(2) == "running");
    let why = home.run(&["why", &third.to_string()]);
    assert!(why.contains("needs 30.0 GiB, 10.0 GiB available: 20.0 GiB short"), "{why}");
    home.run(&["cancel", "1"]);
    home.wait_for_state(third, "completed");
}

#[test]
fn held_tasks_wait_until_they_are_released() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--hold", "--", "true"]);
    let after = home.submit(&["-d", &format!("afterok:{id}"), "--", "true"]);
    let never = home.submit(&["-d", &format!("afternotok:{id}"), "--", "true"]);
    home.wait_for("a reason", |home| home.show(after)["reason"].as_str().is_some());
    assert_eq!(home.state(id), "pending");
    assert!(home.run(&["why", &id.to_string()]).contains("held"));
    home.run(&["release", &id.to_string()]);
    home.wait_for_state(id, "completed");
    home.wait_for_state(after, "completed");
    home.wait_for_state(never, "cancelled");
}

#[test]
fn an_array_runs_as_many_at_once_as_was_said() {
    let home = Home::new(&["--emulate", "4xA100-40GB"]);
    let marks = home.path().join("marks");
    std::fs::create_dir(&marks).expect("a directory");
    let script = format!(
        "m={}; touch $m/$SLURM_ARRAY_TASK_ID; ls $m | wc -l; sleep 0.05; rm $m/$SLURM_ARRAY_TASK_ID",
        marks.display()
    );
    home.submit(&["-a", "1-12%3", "--", "sh", "-c", &script]);
    assert!(home.try_run(&["wait", "1-12"]).status.success());
    for id in 1..=12 {
        let at_once: u32 = home.run(&["logs", &id.to_string()]).trim().parse().expect("a number");
        assert!(at_once <= 3, "{at_once} of the array at once");
    }
}

#[test]
fn a_running_task_cannot_be_held_but_requeued() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--", "sh", "-c", "test $COLOC_RESTART_COUNT = 1 || sleep 60"]);
    home.wait_for_state(id, "running");
    let refused = home.try_run(&["hold", &id.to_string()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("only a task that waits"));
    home.run(&["requeue", &id.to_string()]);
    home.wait_for_state(id, "completed");
}

#[test]
fn a_daemon_that_drains_starts_nothing_new_until_it_resumes() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let runs = home.submit(&["--exclusive", "--", "sleep", "60"]);
    home.wait_for_state(runs, "running");
    let held = home.submit(&["--hold", "--", "true"]);
    assert!(home.run(&["drain"]).contains("1 still run"));
    let refused = home.try_run(&["submit", "--", "true"]);
    assert!(text(&refused.stderr).contains("draining"));
    home.run(&["release", &held.to_string()]);
    home.run(&["cancel", &runs.to_string()]);
    assert!(home.run(&["drain", "--wait"]).contains("nothing runs"));
    assert_eq!(home.state(held), "pending");
    home.run(&["resume"]);
    home.wait_for_state(held, "completed");
}
