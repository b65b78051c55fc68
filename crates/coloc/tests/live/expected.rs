//! When tasks will start and end, against when they do.

use super::home::{Home, text};
use super::http::ask;
use serde_json::Value;

fn at(task: &Value, field: &str) -> f64 {
    task[field].as_f64().unwrap_or_else(|| panic!("{field} in {task}"))
}

fn basis(task: &Value) -> &str {
    task["expected_basis"].as_str().unwrap_or_else(|| panic!("a basis in {task}"))
}

#[test]
fn a_waiting_task_starts_when_it_was_expected_to() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--share", "exclusive"]);
    // What the past shows: such a task takes about two seconds.
    let before = home.submit(&["--", "sleep", "2"]);
    home.wait_for_state(before, "completed");
    let runs = home.submit(&["--", "sleep", "2"]);
    let next = home.submit(&["-t", "0:03", "--", "sleep", "60"]);
    let last = home.submit(&["--", "true"]);
    home.wait_for_state(runs, "running");
    let expected = home.show(next);
    assert_eq!(expected["state"], "pending", "{expected}");
    assert!(basis(&expected).contains("time limit"), "{expected}");
    let timeline = ask(&home, "GET /v1/timeline", "", b"").json();
    let waiting = timeline["waiting"].as_array().expect("waiting").iter();
    let places: Vec<_> = waiting.map(|w| (w["task"].as_u64(), w["gpus"].to_string())).collect();
    let on_gpu_0 = |task: u32| (Some(u64::from(task)), "[0]".to_owned());
    assert_eq!(places, [on_gpu_0(next), on_gpu_0(last)], "where they will start");
    let table = home.run(&["queue", "--expected"]);
    assert!(table.contains("END") && table.contains("by history"), "{table}");
    let after = home.show(last);
    let text = home.run(&["show", &last.to_string()]);
    assert!(text.contains("Expected") && text.contains("no time limit and no history"), "{text}");
    home.wait_for_state(last, "completed");
    let (next, last) = (home.show(next), home.show(last));
    // What was forecast follows from what was known then, however busy the machine is.
    let (before, runs) = (home.show(before), home.show(runs));
    let run = at(&before, "ended_s") - at(&before, "started_s");
    let start = at(&expected, "expected_start_s");
    assert!((start - (at(&runs, "started_s") + run)).abs() < 0.1, "{expected}");
    assert!((at(&expected, "expected_end_s") - start - 3.0).abs() < 0.1, "{expected}");
    // What came is that, but for the moments that processes need to start and to go.
    for (what, foreseen, seen) in [
        ("start", at(&expected, "expected_start_s"), at(&next, "started_s")),
        ("end", at(&expected, "expected_end_s"), at(&next, "ended_s")),
        ("start of the last", at(&after, "expected_start_s"), at(&last, "started_s")),
    ] {
        assert!((foreseen - seen).abs() < 5.0, "{what}: {foreseen} expected, {seen} seen");
    }
    assert!(after["expected_end_s"].is_null(), "nobody knows how long it takes: {after}");
    assert!(last["expected_start_s"].is_null() && last["expected_basis"].is_null(), "{last}");
}

/// By the memory contract the first of a kind has a GPU to itself until it has settled, not until its end.
#[test]
fn siblings_are_expected_when_the_first_of_their_kind_has_settled() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20", "--contract", "on"]);
    let program = env!("CARGO_BIN_EXE_coloc");
    let train = ["emu", "train", "--memory", "4G", "--sm", "0.3", "--seconds", "20000"];
    let words = [&["-t", "600", "--", program], &train[..]].concat();
    let [first, second] = [home.submit(&words), home.submit(&words)];
    home.wait_for_state(first, "running");
    let (runs, waits) = (home.show(first), home.show(second));
    let start = at(&waits, "expected_start_s");
    assert!(start > at(&runs, "started_s"), "{waits}");
    assert!(start + 60.0 < at(&runs, "expected_end_s"), "{waits} {runs}");
    let told = format!("once task {first}, the first of its kind, is seen to train");
    assert!(basis(&waits).contains(&told), "{waits}");
    home.wait_for_state(second, "running");
    assert_eq!(home.state(first), "running", "beside it");
}

#[test]
fn what_nobody_can_know_is_said_and_not_invented() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--share", "exclusive"]);
    let endless = home.submit(&["--", "sleep", "60"]);
    let behind = home.submit(&["-t", "1", "--", "true"]);
    let held = home.submit(&["--hold", "-t", "1", "--", "true"]);
    home.wait_for_state(endless, "running");
    let task = home.show(behind);
    assert!(task["expected_start_s"].is_null(), "{task}");
    assert_eq!(basis(&task), format!("unknown: task {endless} has no time limit and no history"));
    assert_eq!(basis(&home.show(held)), "unknown: it is held");
    assert!(basis(&home.show(endless)).contains("end unknown"));
    let refused = home.try_run(&["show", "999"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("no task 999"));
}

#[test]
fn a_task_after_the_start_of_another_is_expected_by_its_start() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--share", "exclusive"]);
    let runs = home.submit(&["-t", "60", "--", "sleep", "60"]);
    home.wait_for_state(runs, "running");
    let later = home.submit(&["-d", &format!("after:{runs}+10"), "-t", "1", "--", "true"]);
    let expected = at(&home.show(later), "expected_start_s");
    let start = at(&home.show(runs), "started_s") + 600.0;
    assert!((expected - start).abs() < 1.0, "{expected} instead of {start}");
    let held = home.submit(&["--hold", "--", "true"]);
    let behind = home.submit(&["-d", &format!("after:{held}"), "-t", "1", "--", "true"]);
    let task = home.show(behind);
    assert!(task["expected_start_s"].is_null(), "{task}");
    assert_eq!(basis(&task), format!("unknown: it waits for the start of task {held}"));
    // One that has not started is expected to start when a GPU is free.
    let last = home.submit(&["-t", "60", "--", "sleep", "60"]);
    let waits = home.submit(&["-t", "60", "--", "sleep", "60"]);
    home.wait_for_state(last, "running");
    let behind = home.submit(&["-d", &format!("after:{waits}+90"), "-t", "1", "--", "true"]);
    let start = at(&home.show(waits), "expected_start_s") + 5400.0;
    let expected = at(&home.show(behind), "expected_start_s");
    assert!((expected - start).abs() < 1.0, "{expected} instead of {start}");
}

#[test]
fn a_task_after_one_of_several_is_expected_by_the_first_end() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--share", "exclusive"]);
    let long = home.submit(&["-t", "60", "--", "sleep", "60"]);
    let short = home.submit(&["-t", "10", "--", "sleep", "60"]);
    home.wait_for_state(long, "running");
    home.wait_for_state(short, "running");
    let either = format!("afterok:{long}?afterany:{short}");
    let later = home.submit(&["-d", &either, "-t", "1", "--", "true"]);
    let (expected, end) =
        (at(&home.show(later), "expected_start_s"), at(&home.show(short), "started_s") + 600.0);
    assert!((expected - end).abs() < 1.0, "{expected} instead of {end}");
    let badly = format!("afternotok:{long}?afternotok:{short}");
    let never = home.submit(&["-d", &badly, "-t", "1", "--", "true"]);
    let why = "unknown: it starts only if one of several tasks does not end well";
    assert_eq!(basis(&home.show(never)), why);
}
