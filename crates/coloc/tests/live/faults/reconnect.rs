//! A client that stays with a task stays through restarts of the daemon.

use crate::live::home::{Home, coloc, text};
use crate::live::http::ask;
use serde_json::{Value, json};
use std::io::{BufRead as _, Read as _};
use std::process::{Child, Stdio};

/// The program, talking to a home's daemon while the test goes on.
fn beside(home: &Home, arguments: &[&str]) -> Child {
    let mut program = coloc();
    program.args(arguments).env("COLOC_SOCKET", home.socket());
    program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

fn hear(program: &mut Child, words: &str) {
    let mut heard = vec![0; words.len()];
    program.stdout.as_mut().expect("a pipe").read_exact(&mut heard).expect("its words");
    assert_eq!(text(&heard), words);
}

/// Waits until so many clients are connected to the daemon, no more and no fewer: one that has just left may be counted
/// for another moment, and one that comes and goes must not be taken for one that is to stay.
fn wait_for_guests(home: &Home, guests: usize) {
    home.wait_for("they ask", |home| {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
        let socket = home.socket().to_string_lossy().into_owned();
        // The listener has a line too.
        sockets.lines().filter(|line| line.ends_with(&socket)).count() == guests + 1
    });
}

#[test]
fn run_wait_logs_and_watch_outlive_a_daemon_that_is_started_again() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let go = home.path().join("go");
    let script = format!(
        "echo one; while ! test -e {}; do sleep 0.02; done; echo two; exit 7",
        go.display()
    );
    let mut run = beside(&home, &["run", "--", "sh", "-c", &script]);
    hear(&mut run, "one\n");
    let mut logs = beside(&home, &["logs", "-f", "1"]);
    hear(&mut logs, "one\n");
    wait_for_guests(&home, 2);
    let waits = beside(&home, &["wait", "1", "--json"]);
    wait_for_guests(&home, 3);
    let format = ["--watch=0.1", "--all", "--noheader", "-o", "%T;"];
    let mut watch = beside(&home, &[&["queue"], &format[..]].concat());
    hear(&mut watch, "RUNNING;\n");
    home.kill();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    home.boot();
    std::fs::write(&go, "").expect("a file");
    let mut lists = std::io::BufReader::new(watch.stdout.take().expect("a pipe")).lines();
    assert!(lists.any(|line| line.is_ok_and(|line| line == "FAILED;")), "it ended too early");
    assert!(lists.next().is_some(), "it goes on");
    watch.kill().expect("it is ours");
    let told = text(&watch.wait_with_output().expect("it ends").stderr);
    assert!(told.contains("the daemon is back"), "{told}");
    let run = run.wait_with_output().expect("it ends");
    let said = text(&run.stderr);
    assert_eq!((run.status.code(), text(&run.stdout).as_str()), (Some(7), "two\n"), "{said}");
    assert!(said.contains("trying again for") && said.contains("the daemon is back"), "{said}");
    let logs = logs.wait_with_output().expect("it ends");
    assert_eq!((logs.status.code(), text(&logs.stdout).as_str()), (Some(0), "two\n"));
    let waits = waits.wait_with_output().expect("it ends");
    assert_eq!(waits.status.code(), Some(7), "{}", text(&waits.stderr));
}

#[test]
fn a_daemon_that_stays_away_has_an_exit_code_of_its_own() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--hold", "--", "true"]);
    wait_for_guests(&home, 0);
    let waits = beside(&home, &["wait", "--reconnect", "1s", "1"]);
    let mut follows = beside(&home, &["logs", "-f", "--reconnect", "0", "1"]);
    wait_for_guests(&home, 2);
    home.kill();
    let waits = waits.wait_with_output().expect("it ends");
    let said = text(&waits.stderr);
    assert_eq!(waits.status.code(), Some(122), "{said}");
    assert!(said.contains("looked for it for 1.0 s"), "{said}");
    assert_eq!(follows.wait().expect("it ends").code(), Some(1), "it was not to look");
    let never = coloc().args(["wait", "1"]).env("COLOC_SOCKET", home.socket()).output();
    assert_eq!(never.expect("it runs").status.code(), Some(1), "nobody was there to begin with");
}

#[test]
fn a_submission_that_is_sent_again_is_not_a_second_one() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let nightly = ["--hold", "--key", "nightly", "-a", "1-3", "--", "true"];
    let first = home.submit(&nightly);
    assert_eq!(home.submit(&nightly), first);
    home.kill();
    home.boot();
    assert_eq!(home.submit(&nightly), first, "a restart remembers");
    let other = home.submit(&["--hold", "--key", "other", "--", "true"]);
    assert_eq!(other, first + 3);
    assert_eq!(home.submit(&["--hold", "--", "true"]), other + 1);
    assert_eq!(home.submit(&["--hold", "--", "true"]), other + 2, "keys of their own");
    home.run(&["sweep", "--grid", "a=1,2", "--key", "s", "--hold", "--", "echo", "{a}"]);
    assert_eq!(home.json(&["show", "last"])["id"], other + 4);
    let wrong = home.try_run(&["submit", "--key", "", "--", "true"]);
    assert!(text(&wrong.stderr).contains("1 to 200 bytes"), "{}", text(&wrong.stderr));
}

/// A held task, as another program would send it.
fn submission(more: &Value) -> Vec<u8> {
    let mut body = json!({
        "spec": { "name": "x", "command": ["true"], "directory": "/", "gpus": 1 }, "held": true,
    });
    for (key, value) in more.as_object().into_iter().flatten() {
        match key.as_str() {
            "script" | "sm_percent" => body["spec"][key] = value.clone(),
            _ => body[key] = value.clone(),
        }
    }
    body.to_string().into_bytes()
}

#[test]
fn one_key_is_one_submission_however_many_send_it_at_once() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let body = submission(&json!({ "key": "the same" }));
    std::thread::scope(|scope| {
        let send = || ask(&home, "POST /v1/tasks", "", &body).json()["ids"].clone();
        let all: Vec<_> = (0..12).map(|_| scope.spawn(send)).collect();
        for sent in all {
            assert_eq!(sent.join().expect("an answer"), json!([1]));
        }
    });
    assert_eq!(home.json(&["queue"])["tasks"].as_array().map(Vec::len), Some(1));
}

#[test]
fn odd_submissions_are_refused_with_a_word() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let long = "x".repeat(3 << 20);
    for (more, word) in [
        (json!({ "key": "" }), "1 to 200 bytes"),
        (json!({ "key": "k".repeat(201) }), "1 to 200 bytes"),
        (json!({ "key": "a\nb" }), "control characters"),
        (json!({ "script": "echo no interpreter" }), "first line must be #!"),
        (json!({ "script": "#!\n/bin/sh" }), "first line must be #!"),
        (json!({ "script": format!("#!/bin/sh\n{long}") }), "at most 2 MiB"),
        (json!({ "sm_percent": 0 }), "from 1 to 100 percent"),
        (json!({ "sm_percent": 101 }), "from 1 to 100 percent"),
    ] {
        let reply = ask(&home, "POST /v1/tasks", "", &submission(&more));
        let said = reply.json();
        assert_eq!((reply.status, &said["code"]), (422, &json!("invalid")), "{word}");
        assert!(said["error"].as_str().is_some_and(|error| error.contains(word)), "{said}");
    }
    assert_eq!(home.json(&["queue"])["tasks"], json!([]));
}
