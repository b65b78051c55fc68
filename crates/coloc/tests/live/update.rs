//! Tasks that are changed while they wait, which of them goes first, and what is told of tasks that ended.

use super::home::{Home, text};

#[test]
fn a_waiting_task_is_changed_and_one_that_runs_only_in_name() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let runs = home.submit(&["--exclusive", "--", "sleep", "60"]);
    home.wait_for_state(runs, "running");
    let waits = home.submit(&["--gpu-mem", "30G", "-a", "1-2", "--", "true"]);
    home.run(&["update", &waits.to_string(), "--gpu-mem", "12G", "-t", "1:00:00", "-J", "new"]);
    let changed = |home: &Home| {
        let task = home.show(waits);
        assert_eq!(task["name"], "new");
        assert_eq!(
            (task["gpu_mem_bytes"].as_u64(), &task["time_limit_s"]),
            (Some(12 << 30), &3600.0.into())
        );
        assert_eq!(
            home.show(waits + 1)["gpu_mem_bytes"].as_u64(),
            Some(30 << 30),
            "its sister is not"
        );
    };
    changed(&home);
    // A task that is to begin at once, and waits for a GPU already, goes on waiting.
    for (flag, value) in [("--begin", "now"), ("--after", "none"), ("--gpu-kind", "any")] {
        home.run(&["update", &waits.to_string(), flag, value]);
        assert_eq!(home.state(waits), "pending", "{flag}");
    }
    changed(&home);
    home.wait_for("the scheduler", |home| home.run(&["why", &waits.to_string()]).contains("GPU 0"));
    let why = home.run(&["why", &waits.to_string()]);
    assert!(why.contains("GPU 0"), "the scheduler has it still: {why}");
    let refused = home.try_run(&["update", &runs.to_string(), "--gpu-mem", "5G"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("while it runs"), "{}", text(&refused.stderr));
    home.run(&["update", &runs.to_string(), "--name", "busy"]);
    assert_eq!(home.show(runs)["name"], "busy");
    let refused = home.try_run(&["update", &waits.to_string(), "--gpu-mem", "41G"]);
    assert!(
        text(&refused.stderr).contains("the largest GPU here has"),
        "{}",
        text(&refused.stderr)
    );
    assert_eq!(home.try_run(&["update", &waits.to_string()]).status.code(), Some(2), "what?");
    home.kill();
    home.boot();
    changed(&home);
    home.run(&["cancel", &runs.to_string()]);
    home.wait_for_state(waits, "completed");
    assert!(home.story(waits).contains("updated: name \"new\", time limit"));
}

#[test]
fn a_higher_priority_goes_first() {
    for queue in ["fifo", "best-effort", "backfill"] {
        let home = Home::new(&["--emulate", "1xA100-40GB", "--queue", queue]);
        let order = home.path().join("order");
        let blocker = home.submit(&["--exclusive", "--", "sleep", "60"]);
        home.wait_for_state(blocker, "running");
        let submit = |name: &str, flags: &[&str]| {
            let script = format!("echo {name} >> {}", order.display());
            let mut words = vec!["--exclusive"];
            words.extend(flags);
            words.extend(["--", "sh", "-c", &script]);
            home.submit(&words)
        };
        submit("nice", &["--nice", "10"]);
        submit("plain", &[]);
        let raised = submit("raised", &["--priority", "-3"]);
        submit("urgent", &["--priority", "5"]);
        home.run(&["update", &raised.to_string(), "--priority", "1"]);
        home.run(&["cancel", &blocker.to_string()]);
        assert!(home.try_run(&["wait", "2-5"]).status.success());
        let order = std::fs::read_to_string(&order).expect("they ran");
        assert_eq!(order, "urgent\nraised\nplain\nnice\n", "{queue}");
    }
}

#[test]
fn history_tells_of_those_that_ended() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let good = home.submit(&["--", "true"]);
    let bad = home.submit(&["-J", "bad", "--", "sh", "-c", "exit 3"]);
    home.wait_for_state(good, "completed");
    home.wait_for_state(bad, "failed");
    home.submit(&["--hold", "--", "true"]);
    let history = home.json(&["history", "--since", "1h"]);
    let tasks = history["tasks"].as_array().expect("tasks");
    assert_eq!((history["schema"].as_u64(), tasks.len()), (Some(1), 2));
    let row = home.run(&["history"]).lines().find(|line| line.contains("bad")).map(str::to_owned);
    let row = row.expect("its row");
    assert!(row.contains("failed") && row.contains(" 3 ") && row.ends_with("ago"), "{row}");
    home.wait_for("a moment later", |home| {
        home.json(&["history", "--since", "0.001s"])["tasks"].as_array().is_some_and(Vec::is_empty)
    });
}
