//! What ended tasks leave is kept for a while.

use super::home::{Home, text};

#[test]
fn logs_of_ended_tasks_go_after_their_time_and_no_others() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--keep-logs", "2s"]);
    let runs = home.path().join("state/runs");
    let lives = home.submit(&["--gpu-mem", "1G", "--", "sh", "-c", "echo alive; exec sleep 600"]);
    let script = home.path().join("job.sh");
    std::fs::write(&script, "#!/bin/sh\necho hello\n").expect("a script");
    let ended = home.submit(&["--gpu-mem", "1G", script.to_str().expect("text")]);
    let never = home.submit(&["--hold", "--", "true"]);
    home.run(&["cancel", &never.to_string()]);
    home.wait_for_state(ended, "completed");
    home.wait_for("its time to be over", |_| !runs.join(format!("{ended}.1")).exists());
    home.wait_for("a word of it", |home| home.story(ended).contains("was removed"));
    let task = home.show(ended);
    assert_eq!((&task["state"], &task["log_removed"]), (&"completed".into(), &true.into()));
    assert!(home.run(&["show", &ended.to_string()]).contains(", removed"));
    let logs = home.try_run(&["logs", &ended.to_string()]);
    assert_eq!((logs.status.code(), logs.stdout.len()), (Some(1), 0));
    assert!(text(&logs.stderr).contains("is gone"), "{}", text(&logs.stderr));
    assert_eq!(home.show(never)["log_removed"], false);
    assert_eq!(home.run(&["logs", &lives.to_string()]), "alive\n");
    assert!(runs.join(format!("{lives}.1/log")).exists());
    let live = home.json(&["config", "show", "--live"]);
    assert_eq!((&live["keep_logs_s"], &live["keep_logs_bytes"]), (&2.0.into(), &().into()));
}

/// The clock says 40 days later than what has passed since the last daemon: nothing goes because of that.
#[test]
fn a_clock_far_ahead_removes_nothing_and_is_told() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let clock = home.path().join("state/clock.json");
    home.wait_for("the time on the disk", |_| clock.exists());
    let id = home.submit(&["--", "echo", "kept"]);
    home.wait_for_state(id, "completed");
    home.stop();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days_ago = now.expect("after 1970").as_millis() - 40 * 86_400_000;
    std::fs::write(&clock, format!("{{\"time_ms\":{days_ago}}}")).expect("it is ours");
    home.boot();
    let log = home.path().join("daemon.log");
    home.wait_for("a word", |_| {
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        said.contains("the clock is 40 days ahead of the time that has passed")
    });
    assert_eq!(home.run(&["logs", &id.to_string()]), "kept\n");
}
