//! Having to go: preemption, time limits and cancels, and what a task can make of its last seconds.

use super::home::{Home, text};
use std::time::{Duration, Instant};

/// Runs until it is told to go, and then leaves as a training script does that has saved its work.
const SAVES: &str = "trap 'echo saved; exit 0' TERM; test $COLOC_RESTART_COUNT -gt 0 && exit 0; \
                     echo ready; while :; do sleep 0.05; done";

fn by_remaining_time() -> Home {
    Home::new(&["--emulate", "1xA100-40GB", "--queue", "srtf", "--share", "exclusive"])
}

#[test]
fn whoever_saves_its_work_and_says_0_when_preempted_comes_back() {
    let home = by_remaining_time();
    let long = home.submit(&["-t", "60", "--", "bash", "-c", SAVES]);
    home.wait_for("it is at work", |home| home.run(&["logs", &long.to_string()]).contains("ready"));
    let short = home.submit(&["-t", "1", "--", "true"]);
    home.wait_for_state(short, "completed");
    home.wait_for_state(long, "completed");
    let task = home.show(long);
    assert_eq!((task["attempts"].as_u64(), task["preemptions"].as_u64()), (Some(2), Some(1)));
}

#[test]
fn a_time_limit_is_one_whatever_the_task_says_at_its_end() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["-t", "1s", "--", "bash", "-c", SAVES]);
    home.wait_for_state(id, "timed_out");
}

#[test]
fn a_warning_comes_as_long_before_as_was_asked_for() {
    let home = by_remaining_time();
    let script = "trap 'date +%s%N' USR1; trap 'date +%s%N; exit 0' TERM; \
                  test $COLOC_RESTART_COUNT -gt 0 && exit 0; echo ready; while :; do sleep 0.02; done";
    let long = home.submit(&["-t", "60", "--signal", "USR1@1", "--", "bash", "-c", script]);
    let log = home.show(long)["log"].as_str().expect("a log").to_owned();
    let words = || std::fs::read_to_string(&log).unwrap_or_default();
    home.wait_for("it is at work", |_| words().contains("ready"));
    home.submit(&["-t", "1", "--", "true"]);
    home.wait_for_state(long, "completed");
    let at: Vec<u128> = words().lines().filter_map(|line| line.parse().ok()).collect();
    let [warned, told] = at[..] else { panic!("{}", words()) };
    assert!(told - warned >= Duration::from_millis(900).as_nanos(), "{}", words());
}

#[test]
fn whoever_was_cancelled_cannot_be_requeued() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "2"]);
    let deaf = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    let number = home.submit(&["--", "bash", "-c", deaf]);
    let id = number.to_string();
    home.wait_for("it is at work", |home| home.run(&["logs", &id]).contains("ready"));
    home.run(&["cancel", &id]);
    let refused = home.try_run(&["requeue", &id]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("it was cancelled"), "{}", text(&refused.stderr));
    home.wait_for_state(number, "cancelled");
}

#[test]
fn a_cancel_does_not_wait_for_what_a_requeue_waits_for() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let stays = "trap 'echo heard' USR1; echo ready; while :; do sleep 0.05; done";
    let number = home.submit(&["-t", "10m", "--signal", "USR1@280", "--", "bash", "-c", stays]);
    let id = number.to_string();
    home.wait_for("it is at work", |home| home.run(&["logs", &id]).contains("ready"));
    home.run(&["requeue", &id]);
    home.wait_for("it heard", |home| home.run(&["logs", &id]).contains("heard"));
    assert!(home.run(&["queue"]).contains("is being requeued"), "{}", home.run(&["queue"]));
    let asked = Instant::now();
    home.run(&["cancel", &id]);
    home.wait_for_state(number, "cancelled");
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
}

#[test]
fn a_task_that_requeues_itself_when_it_hears_its_signal_is_back_at_once() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let script = format!(
        "trap '{} requeue $COLOC_TASK_ID' USR1; test $COLOC_RESTART_COUNT -gt 0 && exit 0; \
         while :; do sleep 0.05; done",
        env!("CARGO_BIN_EXE_coloc")
    );
    let asked = Instant::now();
    let id = home.submit(&["-t", "60s", "--signal", "B:USR1@58", "--", "bash", "-c", &script]);
    home.wait_for_state(id, "completed");
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    assert_eq!(home.show(id)["attempts"].as_u64(), Some(2), "{}", home.story(id));
    // Asked for from outside, it hears its signal first, and the requeue in its trap says that it has saved its work.
    let id = home.submit(&["-t", "10m", "--signal", "B:USR1@280", "--", "bash", "-c", &script]);
    home.wait_for_state(id, "running");
    std::thread::sleep(Duration::from_millis(500));
    home.run(&["requeue", &id.to_string()]);
    home.wait_for_state(id, "completed");
}

#[test]
fn out_of_memory_is_read_where_the_output_goes() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let output = home.path().join("out-%j.txt").display().to_string();
    let train = [coloc, "emu", "train", "--memory", "20G", "--seconds", "20"];
    let words = [&["-o", &output, "--gpu-mem", "1G", "--"], &train[..]].concat();
    let id = home.submit(&words);
    home.wait_for_state(id, "completed");
    assert!(home.show(id)["ooms"].as_u64() >= Some(1), "{}", home.story(id));
    let log = home.show(id)["log"].as_str().expect("a log").to_owned();
    assert!(log.ends_with(&format!("out-{id}.txt")), "{log}");
    assert!(home.run(&["logs", &id.to_string()]).contains("CUDA out of memory"));
}

#[test]
fn output_that_cannot_be_written_is_a_failure_that_says_so() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--force", "-o", "/nonexistent/out", "--", "true"]);
    home.wait_for_state(id, "failed");
    assert_eq!(home.show(id)["exit_code"], 127);
    assert!(home.story(id).contains("cannot write the output to /nonexistent/out"));
    let id = home.submit(&["--force", "--", "/nonexistent/program"]);
    home.wait_for_state(id, "failed");
    assert!(home.story(id).contains("cannot start /nonexistent/program"), "{}", home.story(id));
}

#[test]
fn a_warning_before_the_beginning_is_refused() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let refused = home.try_run(&["submit", "-t", "5s", "--signal", "USR1@60", "--", "true"]);
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("60 s before a time limit of 5 s"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn a_task_submitted_inside_a_task_has_a_name_of_its_own() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let inner = home.path().join("inner");
    let script =
        format!("{} run -- sh -c 'env > {}'", env!("CARGO_BIN_EXE_coloc"), inner.display());
    let words = ["-a", "7", "--gpu-mem", "2G", "--", "sh", "-c", &script];
    let id = home.submit(&[&["--export", "ALL,COLOC_TOKEN=secret"], &words[..]].concat());
    home.wait_for_state(id, "completed");
    let variables = std::fs::read_to_string(inner).expect("the inner task ran");
    for theirs in ["ARRAY", "PINNED_DEVICE_MEM_LIMIT", "COLOC_TOKEN"] {
        assert!(!variables.contains(theirs), "{variables}");
    }
    assert!(variables.contains(&format!("COLOC_TASK_ID={}", id + 1)), "{variables}");
}

#[test]
fn to_wait_for_an_array_is_to_wait_for_all_of_it() {
    let home = Home::new(&["--emulate", "4xA100-40GB"]);
    let go = home.path().join("go");
    let script = format!(
        "test $SLURM_ARRAY_TASK_ID = 1 || while ! test -e {}; do sleep 0.02; done",
        go.display()
    );
    let array = home.submit(&["-a", "1-3", "--", "sh", "-c", &script]);
    let after = home.submit(&["-d", &format!("afterok:{array}"), "--", "true"]);
    home.wait_for_state(array, "completed");
    assert_eq!(home.state(after), "pending");
    std::fs::write(&go, "").expect("a file");
    home.wait_for_state(after, "completed");
    let refused = home.try_run(&["submit", "-d", "9999", "--", "true"]);
    assert!(text(&refused.stderr).contains("never was"), "{}", text(&refused.stderr));
}

#[test]
fn whoever_follows_a_task_hears_all_of_its_attempts() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let script = "echo attempt $COLOC_RESTART_COUNT; test $COLOC_RESTART_COUNT = 2";
    let ran = home.try_run(&["run", "--retry", "2", "--", "sh", "-c", script]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(text(&ran.stdout), "attempt 0\nattempt 1\nattempt 2\n");
    assert_eq!(home.run(&["logs", "1"]), "attempt 2\n");
    assert_eq!(home.run(&["logs", "--attempt", "1", "1"]), "attempt 0\n");
}

#[test]
fn a_long_output_is_followed_through_its_turned_over_logs() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    // 76 MB, and a log is turned over at 64 MiB.
    let ran = home.try_run(&[
        "run",
        "--",
        "sh",
        "-c",
        "yes 0123456789abcdefghi | head -n 3800000; echo END",
    ]);
    assert!(ran.status.success(), "{}", text(&ran.stderr));
    assert_eq!(ran.stdout.len(), 3_800_000 * 20 + 4, "{}", text(&ran.stderr));
    assert!(ran.stdout.ends_with(b"END\n"));
}
