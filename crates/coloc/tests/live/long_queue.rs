//! As many tasks as one user may have: they are taken, listed, found again after a restart, and cost what they should.

use super::home::{Home, text};
use super::http::{ask, ask_over};
use super::users::{as_nobody, shared_home, submit_as_nobody};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const MOST: usize = 100_000;
/// What a daemon with all of them may have.
const MEMORY: u64 = 250 << 20;

fn listed(home: &Home) -> usize {
    let table = ask(home, "GET /v1/tasks", "accept: text/tab-separated-values\r\n", b"");
    // The first line is a header.
    text(&table.body).lines().count() - 1
}

/// What the journal takes on the disk.
fn journal_size(home: &Home) -> u64 {
    let files = ["journal.db", "journal.db-wal"].map(|name| home.path().join("state").join(name));
    files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|meta| meta.len()).sum()
}

/// Does something, and tells the longest time that a list of another user took meanwhile.
fn while_another_asks<T>(home: &Home, work: impl FnOnce() -> T) -> (T, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                let asked = Instant::now();
                assert_eq!(ask(home, "GET /v1/tasks?mine=true", "", b"").status, 200);
                longest = longest.max(asked.elapsed());
                std::thread::sleep(Duration::from_millis(5));
            }
            longest
        });
        let done = work();
        over.store(true, Ordering::Relaxed);
        (done, other.join().expect("it asks"))
    })
}

/// A daemon that is killed while it takes an array has all of it afterwards, or nothing.
#[test]
fn an_array_is_whole_or_not_there() {
    const TASKS: usize = 6_000;
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let indices: Vec<usize> = (0..TASKS).collect();
    let spec = json!({ "name": "a", "command": ["true"], "directory": "/", "gpus": 1 });
    for (round, wait_ms) in [0, 30, 100].into_iter().enumerate() {
        let array = json!({ "indices": indices });
        let key = format!("key {round}");
        let body = json!({ "spec": spec, "held": true, "key": key, "array": array }).to_string();
        let (request, stream) = (body.clone(), UnixStream::connect(home.socket()));
        let stream = stream.expect("a place");
        let sender = std::thread::spawn(move || {
            ask_over(stream, "POST /v1/tasks", "", request.as_bytes()).status
        });
        std::thread::sleep(Duration::from_millis(wait_ms));
        home.kill();
        let acknowledged = sender.join().expect("no panic") == 200;
        home.boot();
        let there = listed(&home) - round * TASKS;
        assert!(there == TASKS || (there == 0 && !acknowledged), "{there} after {wait_ms} ms");
        // Sent again, it is there once.
        let again = ask(&home, "POST /v1/tasks", "", body.as_bytes());
        assert_eq!(again.json()["ids"].as_array().map(Vec::len), Some(TASKS));
        assert_eq!(listed(&home), (round + 1) * TASKS);
    }
}

/// To cancel many takes several turns, in which no task takes the place of another that is gone.
#[test]
fn none_of_many_starts_while_all_are_cancelled() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "0.2"]);
    let first = home.submit(&["--exclusive", "-a", "1-3000", "--", "sleep", "600"]);
    home.wait_for_state(first, "running");
    let ids: Vec<u32> = (first..first + 3000).collect();
    let body = json!({ "ids": ids, "change": "cancel" }).to_string();
    let cancelled = ask(&home, "POST /v1/tasks/change", "", body.as_bytes());
    assert_eq!(cancelled.json()["done"].as_array().map(Vec::len), Some(3000));
    home.wait_for("their end", |home| listed(home) == 0);
    let ended = home.json(&["queue", "--all"]);
    let ended = ended["tasks"].as_array().expect("tasks");
    let started = ended.iter().filter(|task| task["attempts"] != 0).count();
    assert_eq!((ended.len(), started), (3000, 1), "only the first of them");
}

#[test]
fn a_hundred_thousand_tasks() {
    let Some(mut home) = shared_home(&["--emulate", "2xA100-40GB"]) else { return };
    let submit = || submit_as_nobody(&home, &["--hold", "-a", "1-100000", "--", "true"]);
    let (first, longest) = while_another_asks(&home, submit);
    assert!(longest < Duration::from_secs(3), "another user waited for {longest:?}");
    let size = journal_size(&home);
    assert!(size < 8 << 20, "tasks that do not differ are written down once: {size} bytes");
    let refused = as_nobody(&home, &["submit", "--hold", "--", "true"]);
    assert!(text(&refused.stderr).contains("may have 100000"), "{}", text(&refused.stderr));
    let other = home.submit(&["--hold", "--", "true"]);
    assert_eq!(other as usize, first as usize + MOST);
    assert_eq!(listed(&home), MOST + 1);
    let theirs = ask(&home, "GET /v1/tasks?mine=true", "", b"").json();
    assert_eq!(
        theirs["tasks"].as_array().map(Vec::len),
        Some(1),
        "of many, the few that are asked for"
    );
    assert!(home.resident() < MEMORY, "{} MiB", home.resident() >> 20);
    home.stop();
    home.boot();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).expect("ours");
    assert_eq!(listed(&home), MOST + 1);
    assert!(home.resident() < MEMORY, "{} MiB", home.resident() >> 20);
    let cancelled = as_nobody(&home, &["cancel", "all"]);
    assert_eq!(text(&cancelled.stdout), format!("Cancelled {first}-{MOST}\n"));
    assert_eq!(listed(&home), 1);
    submit_as_nobody(&home, &["--hold", "-a", "1-100000", "--", "true"]);
    assert!(as_nobody(&home, &["cancel", "all"]).status.success());
}
