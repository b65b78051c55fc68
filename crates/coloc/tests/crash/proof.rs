//! The checks of the crash test fail when they should: what a faulty daemon would say, and what its programs would write.

use super::checks::Seen;
use super::leftover;
use super::model::{After, Asked, Submission, Task, When};
use super::program::{Ledger, Manner, Program, Work};
use super::report::Sort;
use super::setup::SETUPS;
use serde_json::{Value, json};
use std::process::Command;
use std::time::{Duration, Instant};

/// One task with the id 1.
fn task(work: Work) -> Task {
    let submission = Submission {
        name: "exclusive-groups-0-1".to_owned(),
        body: Value::Null,
        program: Program { work, manner: Manner::Dies },
        retries: 0,
        indices: Vec::new(),
        limit_ms: None,
        priority: 2,
        held: false,
        after: None,
    };
    submission.tasks(&[1]).remove(0)
}

fn works() -> Task {
    task(Work::Succeed { millis: 1 })
}

fn told(state: &str, exit_code: Option<i32>) -> Value {
    json!({"id": 1, "name": "exclusive-groups-0-1", "priority": 2, "state": state,
           "exit_code": exit_code, "attempts": 1})
}

/// What is found, with the tasks as they are known afterwards.
fn found(task: &mut Task, told: &[Value], ledger: &str) -> Option<Sort> {
    let ledger = Ledger::of(ledger);
    let seen = Seen::new(told, &ledger, SETUPS[0]);
    let strangers = seen.strangers(std::iter::once(&*task));
    let faults = seen.check(std::slice::from_mut(task));
    faults.into_iter().chain(strangers).map(|fault| fault.sort).next()
}

const RAN: &str = "S 1 1 100 5.00 /\nE 1 1 100 5.50 0\n";

#[test]
fn a_good_daemon_is_not_accused() {
    assert_eq!(found(&mut works(), &[told("completed", Some(0))], RAN), None);
    assert_eq!(found(&mut works(), &[told("running", None)], "S 1 1 100 5.00 /\n"), None);
    let fails = "S 1 1 100 5.00 /\nE 1 1 100 5.50 3\n";
    let mut task = task(Work::Fail { millis: 1 });
    assert_eq!(found(&mut task, &[told("failed", Some(3))], fails), None);
}

#[test]
fn what_is_lost_is_seen() {
    assert_eq!(found(&mut works(), &[], ""), Some(Sort::Lost));
    let mut other = told("pending", None);
    other["priority"] = json!(3);
    assert_eq!(found(&mut works(), &[other], ""), Some(Sort::Lost));
    let ghost = "S 9 1 100 5.00 /\n";
    assert_eq!(found(&mut works(), &[told("pending", None)], ghost), Some(Sort::Lost));
}

#[test]
fn what_is_doubled_is_seen() {
    let running = [told("running", None)];
    let doubled = |ledger: &str| found(&mut works(), &running, ledger) == Some(Sort::Doubled);
    assert!(doubled("S 1 1 100 5.00 /\nS 1 1 101 5.10 /\n"), "one attempt, two programs");
    assert!(doubled("S 1 1 100 5.00 /\nS 1 2 101 5.10 /\nE 1 1 100 5.50 3\n"), "at once");
    assert!(doubled("S 1 1 100 5.00 /\nS 1 2 101 5.10 /\nO 1 2 101 6.10 100\n"), "met");
    assert!(doubled(&format!("{RAN}S 1 2 101 6.00 /\n")), "again after its end");
    let mut task = works();
    assert_eq!(found(&mut task, &[told("completed", Some(0))], RAN), None);
    assert_eq!(found(&mut task, &[told("pending", None)], RAN), Some(Sort::Doubled));
    let mut stranger = told("pending", None);
    stranger["id"] = json!(2);
    let both = [told("pending", None), stranger];
    assert_eq!(
        found(&mut works(), &both, ""),
        Some(Sort::Doubled),
        "a submission that counted twice"
    );
}

#[test]
fn wrong_verdicts_are_seen() {
    let wrong = |mut task: Task, state: &str, code: Option<i32>, ledger: &str| {
        found(&mut task, &[told(state, code)], ledger) == Some(Sort::Wrong)
    };
    let started = "S 1 1 100 5.00 /\n";
    assert!(wrong(works(), "failed", Some(143), started));
    assert!(wrong(works(), "lost", None, started));
    assert!(wrong(works(), "cancelled", None, started), "nobody wanted that");
    assert!(wrong(works(), "completed", Some(0), ""), "it never ran");
    let saved = "S 1 1 100 5.00 /\nT 1 1 100 5.10\nL 1 1 100 5.10\n";
    assert!(wrong(works(), "completed", Some(0), saved), "it left because it was told to");
    assert!(wrong(task(Work::Never), "failed", Some(143), started));
    let retried = Task { retries: 2, ..task(Work::Fail { millis: 1 }) };
    assert!(wrong(retried, "failed", Some(3), "S 1 1 100 5.00 /\nE 1 1 100 5.50 3\n"));
    let held = Task { held: super::model::OneOf::surely(true), ..works() };
    assert!(wrong(held, "running", None, started));
    let after = Some(After { tasks: vec![1], when: When::NotOk });
    assert!(wrong(Task { after, ..works() }, "completed", Some(0), RAN));
}

#[test]
fn debts_are_seen() {
    let owes = |task: &Task| {
        let ledger = Ledger::of("S 1 1 100 5.00 /\n");
        let told = [told("running", None)];
        Seen::new(&told, &ledger, SETUPS[0]).owed(std::iter::once(task)).len() == 1
    };
    assert!(!owes(&works()));
    assert!(owes(&Task { cancel: Asked::Acknowledged, ..works() }));
    assert!(owes(&Task { requeued_from: vec![1], ..works() }));
}

#[test]
fn processes_that_are_left_are_seen() {
    let place = tempfile::tempdir().expect("a directory");
    let mut left =
        Command::new("sleep").arg("60").env("HOME", place.path()).spawn().expect("it runs");
    // A program that has just begun has no environment to be read for a moment.
    let deadline = Instant::now() + Duration::from_secs(30);
    while !super::processes::processes(place.path()).iter().any(|(pid, _)| *pid == left.id()) {
        assert!(Instant::now() < deadline, "a process that was left is not seen");
        std::thread::sleep(Duration::from_millis(5));
    }
    super::processes::end_all(place.path());
    left.wait().expect("it is ours");
    assert!(super::processes::processes(place.path()).is_empty());
    assert!(leftover::groups(&Ledger::of(RAN)).is_empty(), "not in a group of coloc's");
}
