//! What one user may have of a daemon, and that others do not notice when a user wants more.

use crate::live::home::{Home, text};
use crate::live::http::{Reply, ask_over};
use crate::live::users::{as_nobody, shared_home, submit_as_nobody};
use rustix::process::{Gid, Uid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const NOBODY: u32 = 65_534;
const EMULATED: [&str; 2] = ["--emulate", "1xA100-40GB"];

/// Does something as another user, in a thread whose identity is its own.
fn by_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let (gid, uid) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
            set_thread_res_gid(gid, gid, gid).expect("root may");
            set_thread_res_uid(uid, uid, uid).expect("root may");
            work()
        });
        thread.join().expect("no panic")
    })
}

fn connect(home: &Home) -> UnixStream {
    let stream = UnixStream::connect(home.socket()).expect("a place");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
    stream
}

fn ask_as_nobody(home: &Home, line: &str, body: &[u8]) -> Reply {
    by_nobody(|| ask_over(connect(home), line, "", body))
}

fn said(reply: &Reply) -> String {
    reply.json()["error"].as_str().expect("a reason").to_owned()
}

#[test]
fn connections_of_one_user() {
    let arguments = [&EMULATED[..], &["--max-user-connections", "5"]].concat();
    let Some(home) = shared_home(&arguments) else { return };
    let held: Vec<UnixStream> = by_nobody(|| (0..5).map(|_| connect(&home)).collect());
    home.wait_for("a refusal", |home| ask_as_nobody(home, "GET /v1/status", b"").status == 429);
    let reply = ask_as_nobody(&home, "GET /v1/status", b"");
    assert_eq!(reply.json()["code"], "over_limit");
    assert!(said(&reply).contains("5 connections"), "{}", said(&reply));
    let refused = as_nobody(&home, &["queue"]);
    assert!(text(&refused.stderr).contains("5 connections"), "{}", text(&refused.stderr));
    let roots: Vec<UnixStream> = (0..20).map(|_| connect(&home)).collect();
    assert!(home.try_run(&["queue"]).status.success(), "an administrator has as many as it takes");
    drop((held, roots));
    home.wait_for("a place", |home| as_nobody(home, &["queue"]).status.success());
}

/// Half-sent bodies: 40 connections that would have 640 MB together.
#[test]
fn bytes_in_flight_of_one_user() {
    let Some(home) = shared_home(&EMULATED) else { return };
    let before = home.resident();
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: coloc\r\ncontent-type: application/json\r\n\
                content-length: 16000000\r\n\r\n";
    let piece = vec![b' '; 1 << 20];
    let streams: Vec<(UnixStream, String)> = by_nobody(|| {
        let streams = (0..40).map(|_| {
            let mut stream = connect(&home);
            let _ = stream.write_all(head.as_bytes());
            for _ in 0..15 {
                if stream.write_all(&piece).is_err() {
                    break;
                }
            }
            // A request that is taken is not answered: the last megabyte is missing.
            stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a limit");
            let mut answer = [0; 2048];
            let length = stream.read(&mut answer).unwrap_or(0);
            (stream, text(&answer[..length]))
        });
        streams.collect()
    });
    let refused = streams.iter().filter(|(_, answer)| answer.contains("over_limit")).count();
    assert!(refused >= 30, "{refused} of 40 were refused");
    let grown = home.resident().saturating_sub(before);
    assert!(grown < 200 << 20, "{} MiB more", grown >> 20);
    let began = Instant::now();
    assert!(home.try_run(&["run", "--", "true"]).status.success(), "others notice nothing");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    drop(streams);
    home.wait_for("room again", |home| {
        as_nobody(home, &["submit", "--hold", "--", "true"]).status.success()
    });
    home.wait_for("memory that is given back", |home| {
        home.resident().saturating_sub(before) < 40 << 20
    });
}

#[test]
fn every_size_has_an_end() {
    let Some(home) = shared_home(&EMULATED) else { return };
    let spec = |field: &str, value: serde_json::Value| {
        let mut spec = json!({ "name": "a", "command": ["true"], "directory": "/", "gpus": 1 });
        spec[field] = value;
        json!({ "spec": spec, "held": true }).to_string()
    };
    let long = |length: usize| json!("x".repeat(length));
    for (field, value, word) in [
        ("name", long(100_000), "255"),
        ("output", long(5_000), "4096"),
        ("errors", long(5_000), "4096"),
        ("directory", json!(format!("/{}", "x".repeat(5_000))), "4096"),
        ("command", json!(["x".repeat(5 << 20)]), "may have"),
        ("environment", json!([["A", "x".repeat(5 << 20)]]), "may have"),
        ("environment", json!(vec![("", ""); 160_000]), "may have"),
        ("environment", json!(vec![("", ""); 400_000]), "500000 values"),
        ("after", json!(vec![json!({"task": 1, "when": "afterok"}); 2_000]), "1000"),
        ("gpu_kinds", json!(vec!["a"; 1_000]), "16 kinds"),
        ("estimator", long(300), "255"),
        ("time_limit", json!(u64::MAX), "hundred years"),
        ("estimate", json!({"peak": 1, "bound": 1, "sm": 7.0}), "0 to 1"),
        ("warning", json!({"signal": 4711, "before": 1}), "1 to 64"),
    ] {
        let reply = ask_as_nobody(&home, "POST /v1/tasks", spec(field, value).as_bytes());
        assert_eq!(reply.status, 422, "{field}: {}", said(&reply));
        assert!(said(&reply).contains(word), "{field}: {}", said(&reply));
    }
    let id = submit_as_nobody(&home, &["--hold", "--", "true"]);
    let change = |ids: Vec<u32>, change: serde_json::Value| {
        let body = json!({ "ids": ids, "change": change }).to_string();
        ask_as_nobody(&home, "POST /v1/tasks/change", body.as_bytes())
    };
    let reply = change(vec![id; 10_001], json!("cancel"));
    assert_eq!((reply.status, reply.json()["code"].as_str()), (422, Some("invalid")));
    assert!(said(&reply).contains("10000 tasks"), "{}", said(&reply));
    let reply = change(vec![id], json!({"update": {"name": "x".repeat(300)}}));
    assert!(text(&reply.body).contains("255"), "{}", text(&reply.body));
    let reply = change(vec![id], json!({"update": [null, null]}));
    assert_eq!(reply.status, 422);
    assert_eq!(change(vec![id; 10_000], json!("hold")).status, 200);
    let detail = as_nobody(&home, &["show", &id.to_string(), "--json"]);
    assert!(text(&detail.stdout).contains("\"name\": \"true\""), "{}", text(&detail.stdout));
}

#[test]
fn tasks_of_one_user() {
    let arguments = [&EMULATED[..], &["--max-user-tasks", "10"]].concat();
    let Some(mut home) = shared_home(&arguments) else { return };
    let array = submit_as_nobody(&home, &["--hold", "-a", "1-9", "--", "true"]);
    let refused = |home: &Home, words: &[&str]| {
        let all = [&["submit", "--hold"][..], words, &["--", "true"]].concat();
        let output = as_nobody(home, &all);
        let said = text(&output.stderr);
        !output.status.success() && said.contains("may have 10") && said.contains("cancel")
    };
    assert!(refused(&home, &["-a", "1-2"]));
    submit_as_nobody(&home, &["--hold", "--", "true"]);
    assert!(refused(&home, &[]));
    home.submit(&["--hold", "--", "true"]);
    home.stop();
    home.boot();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("it is ours");
    assert!(refused(&home, &[]), "they are counted after a restart too");
    let ids = format!("{array}-{}", array + 4);
    assert!(as_nobody(&home, &["cancel", &ids]).status.success());
    submit_as_nobody(&home, &["--hold", "-a", "1-5", "--", "true"]);
    assert!(refused(&home, &[]));
}

#[test]
fn room_in_the_journal_of_one_user() {
    let bounds = ["--max-user-journal", "4M", "--max-spec", "2M"];
    let Some(mut home) = shared_home(&[&EMULATED[..], &bounds].concat()) else { return };
    let submit = |home: &Home| {
        let environment = json!([["A", "x".repeat(1 << 20)]]);
        let spec = json!({ "name": "a", "command": ["true"], "directory": "/", "gpus": 1,
            "environment": environment });
        let body = json!({ "spec": spec, "held": true }).to_string();
        ask_as_nobody(home, "POST /v1/tasks", body.as_bytes())
    };
    for _ in 0..3 {
        assert_eq!(submit(&home).status, 200);
    }
    let refused = submit(&home);
    assert_eq!((refused.status, refused.json()["code"].as_str()), (429, Some("over_limit")));
    assert!(said(&refused).contains("--max-user-journal"), "{}", said(&refused));
    // What a change makes of a submission takes the place of the old one.
    assert!(as_nobody(&home, &["cancel", "3"]).status.success());
    for name in ["b", "c", "d", "e"] {
        let update = json!({ "ids": [1], "change": { "update": { "name": name } } }).to_string();
        let reply = ask_as_nobody(&home, "POST /v1/tasks/change", update.as_bytes());
        assert_eq!(reply.json()["done"], json!([1]), "{name}: {}", text(&reply.body));
    }
    assert_eq!(submit(&home).status, 200);
    home.stop();
    home.boot();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("it is ours");
    assert_eq!(submit(&home).status, 429, "it is counted after a restart too");
    assert_eq!(submit_root(&home), 200, "others have room");
    assert!(as_nobody(&home, &["cancel", "1", "2"]).status.success());
    home.wait_for("room again", |home| submit(home).status == 200);
    let journal = std::fs::metadata(home.path().join("state/journal.db")).expect("a journal");
    assert!(journal.len() < 16 << 20, "{} bytes", journal.len());
}

fn submit_root(home: &Home) -> u16 {
    let spec = json!({ "name": "a", "command": ["true"], "directory": "/", "gpus": 1 });
    let body = json!({ "spec": spec, "held": true }).to_string();
    ask_over(connect(home), "POST /v1/tasks", "", body.as_bytes()).status
}

/// The command line splits what is too much for one request.
#[test]
fn an_honest_array_and_its_end() {
    let home = Home::new(&EMULATED);
    home.submit(&["--hold", "-a", "1-25000", "--", "true"]);
    let said = home.run(&["update", "1-25000", "--name", "other"]);
    assert_eq!(said, "Updated 1-25000\n");
    assert_eq!(home.show(25_000)["name"], "other");
    assert_eq!(home.run(&["cancel", "1-12500"]), "Cancelled 1-12500\n");
    assert_eq!(home.run(&["cancel", "all"]), "Cancelled 12501-25000\n");
    assert_eq!(home.json(&["queue"])["tasks"].as_array().map(Vec::len), Some(0));
}

/// Forty thousand that each look for the task of their name before them, among fifty thousand of other names.
#[test]
fn singletons_among_many_keep_nobody_waiting() {
    let Some(home) = shared_home(&EMULATED) else { return };
    submit_as_nobody(&home, &["--hold", "-J", "a", "-a", "1-20000", "--", "true"]);
    let last = submit_as_nobody(&home, &["-J", "b", "--hold", "--", "true"]);
    let array = ["-J", "b", "-d", "singleton", "-a", "1-20000", "--", "true"];
    let first = submit_as_nobody(&home, &array);
    let began = Instant::now();
    assert!(home.try_run(&["run", "--", "true"]).status.success());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    let reason = home.show(first + 19_999)["reason"].clone();
    assert_eq!(reason, format!("waits for task {last} to end"));
    assert!(as_nobody(&home, &["cancel", &last.to_string()]).status.success());
    home.wait_for("the first of them", |home| home.state(first) != "pending");
    assert!(as_nobody(&home, &["cancel", "all"]).status.success());
}

/// Changes of thousands of tasks at once: others wait for a part of one of them.
#[test]
fn heavy_requests_of_one_user_have_one_turn_at_a_time() {
    let Some(home) = shared_home(&EMULATED) else { return };
    let first = submit_as_nobody(&home, &["--hold", "-a", "1-5000", "--", "true"]);
    let ids: Vec<u32> = (first..first + 5000).collect();
    let body = |n: i32| {
        let change = json!({ "update": { "priority": -n } });
        json!({ "ids": ids, "change": change }).to_string()
    };
    std::thread::scope(|scope| {
        let ask = |n: i32| ask_as_nobody(&home, "POST /v1/tasks/change", body(n).as_bytes());
        let all: Vec<_> = (1..=4).map(|n| scope.spawn(move || ask(n))).collect();
        // While they are dealt with, one after the other, another user asks.
        let mut answered = 0;
        while all.iter().any(|one| !one.is_finished()) {
            assert_eq!(ask_over(connect(&home), "GET /v1/status", "", b"").status, 200);
            answered += 1;
        }
        // A user who waits for all of them is answered once or twice.
        assert!(answered >= 6, "{answered} answers to others");
        assert!(all.into_iter().all(|one| one.join().is_ok_and(|reply| reply.status == 200)));
    });
    assert!(as_nobody(&home, &["cancel", "all"]).status.success());
}

/// A crowd that has every place it can get: administrators have some of their own.
#[test]
fn places_are_kept_for_administrators() {
    if !rustix::process::geteuid().is_root() {
        return crate::live::home::skipped("only root can be two users");
    }
    // 256 connections beside the files that the daemon needs for itself.
    let few_files = ["sh", "-c", "ulimit -n 448; exec \"$@\""];
    let arguments = [&EMULATED[..], &["--max-user-connections", "1000"]].concat();
    let home = Home::within(&few_files, &arguments);
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(), open).expect("the directory is ours");
    let listen = || {
        let mut stream = connect(&home);
        stream.write_all(b"GET /v1/events HTTP/1.1\r\nhost: coloc\r\n\r\n").expect("sent");
        let mut first = [0; 12];
        stream.read_exact(&mut first).is_ok_and(|()| first.ends_with(b"200")).then_some(stream)
    };
    let crowd: Vec<UnixStream> = by_nobody(|| (0..300).map_while(|_| listen()).collect());
    assert!(crowd.len() < 256, "{} connections of one crowd", crowd.len());
    let refused = ask_as_nobody(&home, "GET /v1/status", b"");
    assert_eq!(refused.status, 503);
    assert!(
        said(&refused).contains("all connections of the daemon are taken"),
        "{}",
        said(&refused)
    );
    let roots: Vec<UnixStream> = (0..24).filter_map(|_| listen()).collect();
    assert_eq!(roots.len(), 24, "those that are kept");
    assert!(home.try_run(&["queue"]).status.success());
    drop(crowd);
    home.wait_for("a place", |home| as_nobody(home, &["queue"]).status.success());
}

#[test]
fn retries_and_indices_have_bounds() {
    let home = Home::new(&EMULATED);
    let submit = |more: serde_json::Value| {
        let mut body = json!({ "held": true,
            "spec": { "name": "a", "command": ["true"], "directory": "/", "gpus": 1 } });
        if let Some(retries) = more.get("retries") {
            body["spec"]["retries"] = retries.clone();
        }
        if let Some(indices) = more.get("indices") {
            body["array"] = json!({ "indices": indices });
        }
        ask_over(connect(&home), "POST /v1/tasks", "", body.to_string().as_bytes())
    };
    assert_eq!(submit(json!({ "retries": 1000 })).status, 200);
    for (wrong, why) in [
        (json!({ "retries": 1001 }), "run again at most 1000 times"),
        (json!({ "retries": u32::MAX }), "run again at most 1000 times"),
        (json!({ "indices": [1, 1] }), "two tasks of an array have the same index"),
        (json!({ "indices": [7, 3, 9, 3] }), "two tasks of an array have the same index"),
    ] {
        let refused = submit(wrong.clone());
        assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("invalid")), "{wrong}");
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
    assert_eq!(submit(json!({ "indices": [7, 3, 9] })).status, 200);
    // What was submitted with few cannot have more later, whether it waits or runs.
    let runs = home.submit(&["--", "sleep", "600"]);
    home.wait_for_state(runs, "running");
    for id in [1, runs] {
        let more = home.try_run(&["update", &id.to_string(), "--retry", "1001"]);
        assert!(text(&more.stderr).contains("at most 1000 times"), "{}", text(&more.stderr));
    }
    assert_eq!(home.json(&["queue"])["tasks"].as_array().map(Vec::len), Some(5));
}

/// However many signals for all processes of a task are sent, one thread looks for the processes.
#[test]
fn signals_for_all_processes_are_sent_by_one_thread() {
    let home = Home::new(&EMULATED);
    let id = home.submit(&["--", "sleep", "600"]);
    home.wait_for_state(id, "running");
    let body = json!({ "ids": [id], "change": { "signal": { "signal": 18, "full": true } } });
    let body = body.to_string();
    let threads = || {
        let all = std::fs::read_dir(format!("/proc/{}/task", home.pid())).expect("it lives");
        let names = all.flatten().map(|thread| std::fs::read_to_string(thread.path().join("comm")));
        names.filter(|name| name.as_ref().is_ok_and(|name| name == "signal\n")).count()
    };
    let most = std::thread::scope(|scope| {
        let send = || {
            let send = |_| ask_over(connect(&home), "POST /v1/tasks/change", "", body.as_bytes());
            assert!((0..20).map(send).all(|reply| reply.status == 200));
        };
        let senders: Vec<_> = (0..16).map(|_| scope.spawn(send)).collect();
        let mut most = 0;
        while senders.iter().any(|sender| !sender.is_finished()) {
            most = threads().max(most);
        }
        most
    });
    assert!(most <= 1, "{most} threads");
    home.wait_for("the end of the thread", |_| threads() == 0);
    // Each of them arrives.
    let kill = body.replace("18", "9");
    assert_eq!(ask_over(connect(&home), "POST /v1/tasks/change", "", kill.as_bytes()).status, 200);
    home.wait_for("its end", |home| home.state(id) == "failed");
}
