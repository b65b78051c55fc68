//! What a dashboard asks: attempts and decisions as data, series, the timeline, lists in parts, logs that go on, and what would have been.

use super::home::{Home, text};
use super::http::ask;
use serde_json::{Value, json};
use std::time::Duration;

fn get(home: &Home, path: &str) -> Value {
    let answer = ask(home, &format!("GET {path}"), "", b"");
    assert!(answer.status == 200 || answer.status == 202, "{path}: {}", text(&answer.body));
    answer.json()
}

#[test]
fn what_ran_is_told_as_data() {
    let home =
        Home::new(&["--emulate", "2xA100-40GB", "--share", "exclusive", "--time-scale", "10"]);
    let first = home.submit(&["--", "sh", "-c", "echo begins; sleep 3; echo ends"]);
    let second = home.submit(&["--gpus", "2", "--", "true"]);
    home.wait_for_state(first, "running");
    let waiting = get(&home, &format!("/v1/tasks/{second}"));
    assert_eq!(waiting["reason_code"], "gpus", "{waiting}");
    // A follower hears all of it, and the answer ends with the attempt.
    let log = ask(&home, &format!("GET /v1/tasks/{first}/log?follow=true"), "", b"");
    assert_eq!(text(&log.body), "begins\nends\n", "{}", log.head);
    home.wait_for_state(second, "completed");
    let tail = ask(&home, &format!("GET /v1/tasks/{first}/log?offset=-5"), "", b"");
    assert_eq!(text(&tail.body), "ends\n");
    let shown = get(&home, &format!("/v1/tasks/{first}"));
    let attempt = &shown["attempts_list"][0];
    assert_eq!((&attempt["number"], &attempt["outcome"]), (&json!(1), &json!("completed")));
    assert!(attempt["ended_s"].as_f64() > attempt["started_s"].as_f64(), "{attempt}");
    let decisions = &get(&home, &format!("/v1/tasks/{second}"))["decisions"];
    let (first_one, last) = (&decisions[0], decisions.as_array().and_then(|all| all.last()));
    assert_eq!((&first_one["kind"], &first_one["reason_code"]), (&json!("waits"), &json!("gpus")));
    let refusal = &first_one["gpus"][0]["refusals"][1];
    assert_eq!((&refusal["rule"], &refusal["short"]), (&json!("occupied"), &json!(1.0)));
    let last = last.expect("it was started");
    assert_eq!((&last["kind"], &last["chosen"]), (&json!("starts"), &json!([0, 1])));
    let line = get(&home, "/v1/timeline");
    let attempts = line["attempts"].as_array().expect("attempts");
    let tasks: Vec<&Value> = attempts.iter().map(|attempt| &attempt["task"]).collect();
    assert_eq!(tasks, [&json!(first), &json!(second)], "{line}");
    home.wait_for("samples", |home| {
        let series = get(home, "/v1/series?of=gpu:0,gpu:1&points=50");
        let power = &series["series"][1]["columns"]["power_w"];
        power.as_array().is_some_and(|all| all.iter().any(|value| value.as_f64() > Some(1.0)))
    });
    let wrong = ask(&home, "GET /v1/series?of=node:1", "", b"");
    assert_eq!(wrong.status, 400, "{}", text(&wrong.body));
}

#[test]
fn a_follower_hears_of_output_when_it_is_written() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let words = "for n in 1 2 3 4 5 6 7 8 9; do date +%s.%N; sleep 0.15; done";
    let own = home.path().join("own.out");
    let id = home.submit(&["--hold", "-o", own.to_str().expect("text"), "--", "sh", "-c", words]);
    let path = format!("GET /v1/tasks/{id}/log?follow=true");
    let late = std::thread::scope(|threads| {
        let follower = threads.spawn(|| lines_with_delays(&home, &path));
        home.run(&["release", &id.to_string()]);
        follower.join().expect("it follows")
    });
    assert_eq!(late.len(), 9, "each line once: {late:?}");
    let mut sorted = late.clone();
    sorted.sort_by(f64::total_cmp);
    // Looking every 200 ms, the middle one would be 100 ms late.
    assert!(sorted[4] < 0.08, "{late:?}");
}

/// Reads a stream of lines, each the time at which it was written; says how late each came.
fn lines_with_delays(home: &Home, question: &str) -> Vec<f64> {
    use std::io::{BufRead as _, BufReader, Write as _};
    let mut socket = std::os::unix::net::UnixStream::connect(home.socket()).expect("a socket");
    write!(socket, "{question} HTTP/1.1\r\nhost: coloc\r\nconnection: close\r\n\r\n")
        .expect("asked");
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("now");
    let lines = BufReader::new(socket).lines().map(|line| line.expect("text"));
    // Lengths of chunks are shorter, and heads are words.
    let times = lines.filter_map(|line| line.parse::<f64>().ok().filter(|at| *at > 1e9));
    times.map(|at| now().as_secs_f64() - at).collect()
}

#[test]
fn lists_come_in_parts_and_compressed() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--hold", "-a", "1-5", "--", "true"]);
    let part = get(&home, "/v1/tasks?limit=2&after=1&fields=id,reason_code&state=pending");
    let rows = json!([{ "id": 2, "reason_code": "held" }, { "id": 3, "reason_code": "held" }]);
    assert_eq!(part["tasks"], rows);
    assert_eq!(get(&home, "/v1/tasks?state=running")["tasks"], json!([]));
    let all = get(&home, "/v1/tasks?all=true&limit=1&after=4&fields=id");
    assert_eq!(all["tasks"], json!([{ "id": 5 }]));
    for wrong in ["state=asleep", "fields=colour", "limit=0"] {
        let refused = ask(&home, &format!("GET /v1/tasks?{wrong}"), "", b"");
        assert_eq!(refused.status, 400, "{wrong}");
    }
    let packed = ask(&home, "GET /v1/tasks", "accept-encoding: gzip\r\n", b"");
    assert!(packed.head.contains("content-encoding: gzip"), "{}", packed.head);
    assert_eq!(packed.body[..2], [0x1f, 0x8b], "gzip");
}

#[test]
fn the_past_is_played_on_a_thread_of_its_own() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "10"]);
    let nothing = json!({ "policies": ["exclusive"] }).to_string();
    let answer = |home: &Home, line: &str, body: &str| loop {
        let answer = ask(home, line, "", body.as_bytes());
        if answer.status != 202 {
            break answer;
        }
        assert!(answer.json()["job"].is_string(), "{}", text(&answer.body));
        std::thread::sleep(Duration::from_millis(20));
    };
    let early = answer(&home, "POST /v1/whatif", &nothing);
    assert_eq!(early.status, 422, "nothing has run: {}", text(&early.body));
    let task = home.submit(&["--", "sleep", "1"]);
    home.wait_for_state(task, "completed");
    let body = json!({ "policies": ["exclusive", "coloc:oracle"], "since_s": 1.0 }).to_string();
    let played = answer(&home, "POST /v1/whatif", &body).json();
    assert_eq!(played["rows"].as_array().map(Vec::len), Some(2), "{played}");
    assert_eq!(played["rows"][0]["tasks"][0]["id"], task, "{played}");
    assert!(played["agreement"].as_f64() > Some(0.2), "{played}");
    let saved = answer(&home, "GET /v1/savings", "").json();
    let user = &saved["by_user"][0];
    assert_eq!((&saved["tasks"], &user["tasks"]), (&json!(1), &json!(1)), "{saved}");
    assert_eq!(user["exclusive_gpu_h"], saved["by_day"][0]["exclusive_gpu_h"], "{saved}");
    assert!(user["exclusive_gpu_h"].as_f64() > Some(0.0), "{saved}");
    let said = saved["assumptions"].to_string();
    assert!(said.contains("a task's part of the hours is its SM activity"), "{said}");
    let wrong = answer(&home, "POST /v1/whatif", r#"{"policies": ["guess"]}"#);
    assert_eq!(wrong.status, 422);
    assert_eq!(answer(&home, "GET /v1/whatif/999", "").status, 404);
    // Of the answers so far, those to other policies are found by their number, and savings are not.
    let found =
        (1..=9).filter(|job| answer(&home, &format!("GET /v1/whatif/{job}"), "").status != 404);
    assert_eq!(found.count(), 2, "nothing had run, and two policies");
}

#[test]
fn tasks_that_ended_have_the_neighbours_that_they_had() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let train = ["--gpu-mem", "10G", "--", coloc, "emu", "train", "--memory", "8G", "--sm", "0.2"];
    let short = home.submit(&[&train[..], &["--seconds", "60"]].concat());
    let long = home.submit(&[&train[..], &["--seconds", "4000"]].concat());
    home.wait_for_state(short, "completed");
    let beside = |task: u32| {
        let shown = get(&home, &format!("/v1/tasks/{task}"));
        let all = shown["neighbours"].as_array().expect("neighbours").clone();
        assert!(all.iter().all(|n| n["until_s"].as_f64() > n["since_s"].as_f64()), "{shown}");
        all.iter().map(|n| n["id"].as_u64().expect("an id") as u32).collect::<Vec<_>>()
    };
    let alone = home.submit(&["--hold", "--", "true"]);
    home.run(&["cancel", &alone.to_string()]);
    assert_eq!(beside(short), [long], "it still runs");
    home.run(&["cancel", &long.to_string()]);
    home.wait_for_state(long, "cancelled");
    assert_eq!(beside(long), [short], "both have ended");
    assert!(beside(alone).is_empty(), "it never ran");
}
