//! Small things that are told as they are.

use super::home::{Home, coloc, text};
use std::process::Output;

fn run_in(home: &Home, arguments: &[&str]) -> Output {
    let mut program = coloc();
    program.args(arguments).env("COLOC_SOCKET", home.socket()).current_dir(home.path());
    program.output().expect("it runs")
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    for output in [&[][..], &["-o", "out.txt"]] {
        let words = [&["run", "-D", "/no/such/place"], output, &["--", "true"]].concat();
        let attached = run_in(&home, &words);
        assert_eq!(attached.status.code(), Some(127), "{}", text(&attached.stderr));
        let said = text(&attached.stderr);
        assert!(
            said.contains("cannot start in /no/such/place: there is no such directory"),
            "{said}"
        );
    }
}

#[test]
fn only_what_is_held_is_released() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--", "sleep", "60"]);
    home.submit(&["--hold", "--", "true"]);
    home.wait_for_state(1, "running");
    let named = home.try_run(&["release", "1"]);
    assert_eq!((named.status.code(), text(&named.stdout).as_str()), (Some(1), ""));
    assert!(text(&named.stderr).contains("task 1 is running, and not held"));
    assert_eq!(home.run(&["release", "all"]), "Released 2\n");
}

#[test]
fn names_in_paths_are_filled_in() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let user = coloc_daemon_user();
    let waited = run_in(
        &home,
        &["submit", "-W", "--mem", "1G", "-J", "a/b", "-o", "%u-%N-%j-%x-%%.out", "--", "true"],
    );
    assert!(waited.status.success(), "{}", text(&waited.stderr));
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let host = host.split('.').next().unwrap_or(&host);
    let file = format!("{user}-{host}-1-a_b-%.out");
    assert!(home.path().join(&file).is_file(), "{file}");
    let shown = home.run(&["show", "1"]);
    let memory = shown.lines().find(|line| line.starts_with("Host memory")).expect("a line");
    assert!(memory.contains("asked 1.00 GiB") || memory.contains("at most 1"), "{memory}");
}

/// The user who runs this test.
fn coloc_daemon_user() -> String {
    let output = std::process::Command::new("id").arg("-un").output().expect("id runs");
    text(&output.stdout).trim().to_owned()
}

#[test]
fn a_daemon_that_is_there_already_is_said_to_be_there() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let state = home.path().join("state");
    for fleet in ["1xA100-40GB", "2xA100-40GB"] {
        let second = coloc().args(["daemon", "--emulate", fleet, "--state"]).arg(&state).output();
        let said = text(&second.expect("it runs").stderr);
        assert!(said.contains("another daemon uses") && !said.contains("remove"), "{said}");
        assert!(!said.contains("listening at"), "{said}");
    }
    // A variable is no request to ask a daemon.
    let past = coloc().args(["whatif", "--state"]).arg(&state).env("COLOC_SOCKET", "/x").output();
    let said = text(&past.expect("it runs").stderr);
    assert!(said.contains("has run and ended"), "{said}");
}

#[test]
fn a_state_directory_may_be_named_from_where_one_is() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let socket = place.path().join("socket");
    let mut daemon = coloc()
        .args(["daemon", "--emulate", "1xA100-40GB", "--state", "state", "--socket"])
        .arg(&socket)
        .current_dir(place.path())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the daemon starts");
    let ask = |words: &[&str]| coloc().args(words).env("COLOC_SOCKET", &socket).output();
    while !ask(&["queue"]).expect("it runs").status.success() {
        assert!(daemon.try_wait().expect("ours").is_none(), "the daemon ended");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    ask(&["submit", "--gpu-mem", "1G", "--", "true"]).expect("it runs");
    let ended = ask(&["wait", "1"]).expect("it runs");
    let told = text(&ended.stderr) + &text(&ended.stdout);
    daemon.kill().expect("it is ours");
    daemon.wait().expect("it ends");
    assert!(ended.status.success(), "{told}");
}

#[test]
fn a_drain_and_a_hold_are_told_as_reasons() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let runs = home.submit(&["--gpu-mem", "30G", "--", "sleep", "600"]);
    let waits = home.submit(&["--gpu-mem", "30G", "--", "true"]);
    home.wait_for_state(runs, "running");
    home.run(&["drain"]);
    let reason = |home: &Home, id: u32| home.show(id)["reason"].as_str().unwrap_or("").to_owned();
    assert!(reason(&home, waits).contains("draining"), "{}", reason(&home, waits));
    assert!(home.run(&["why", &waits.to_string()]).contains("draining"));
    home.run(&["hold", &waits.to_string()]);
    assert!(reason(&home, waits).starts_with("held"), "{}", reason(&home, waits));
    home.run(&["cancel", &runs.to_string()]);
    assert!(home.run(&["queue", "--all"]).contains("held"));
}

/// What blocks a task is named where users look first.
#[test]
fn a_queue_names_the_quota_and_the_limit_of_an_array() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--quota", "*=1"]);
    let sleeps = ["--gpu-mem", "1G", "--", "sleep", "60"];
    home.submit(&[&["-a", "1-3%1"], &sleeps[..]].concat());
    home.wait_for_state(1, "running");
    let over = home.submit(&sleeps);
    home.wait_for("its reason", |home| {
        home.run(&["queue", "-j", &over.to_string()]).contains("the quota of user")
    });
    assert!(home.run(&["why", &over.to_string()]).contains("1 GPUs: 1 in use, 1 wanted"));
    let queue = home.run(&["queue"]);
    let array = queue.lines().find(|line| line.starts_with("1-3 [1-3]")).expect("one line");
    assert!(array.contains("1 R, 2 PD") && array.contains("(array limit: 1 of it"), "{queue}");
    assert_eq!(home.run(&["queue", "-r", "--noheader"]).lines().count(), 4);
    assert_eq!(home.json(&["queue"])["tasks"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_dependency_on_an_array_names_the_array() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let fails_second = "test $COLOC_ARRAY_INDEX != 2";
    let held = home.submit(&["-H", "-a", "1-3", "--gpu-mem", "1G", "--", "sh", "-c", fails_second]);
    let after = home.submit(&["-d", &format!("afterok:{held}"), "--", "true"]);
    let reason = |home: &Home| home.show(after)["reason"].as_str().unwrap_or_default().to_owned();
    home.wait_for("its reason", |home| reason(home) == "waits for array 1 to end");
    home.run(&["release", "1-2"]);
    home.wait_for("its reason", |home| reason(home).ends_with("now for task 3 of it"));
    home.run(&["release", "3"]);
    home.wait_for_state(after, "cancelled");
    assert!(reason(&home).contains("task 2 did not end"), "{}", reason(&home));
}

#[test]
fn why_of_an_ended_task_says_how_it_ended() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let fails = home.submit(&["--gpu-mem", "1G", "--", "sh", "-c", "exit 3"]).to_string();
    home.wait_for_state(1, "failed");
    let told = home.run(&["why", &fails]);
    assert!(told.starts_with("Task 1 is failed: ") && told.contains("on GPU 0"), "{told}");
    assert!(told.contains('3'), "{told}");
    assert_eq!(home.json(&["why", &fails])["task"]["state"], "failed");
    assert_eq!(home.try_run(&["why", "99"]).status.code(), Some(1));
}

#[test]
fn the_last_lines_of_a_log_and_an_attempt_that_never_was() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--gpu-mem", "1G", "--", "seq", "1", "2000"]).to_string();
    home.wait_for_state(1, "completed");
    assert_eq!(home.run(&["logs", "-n", "2", &id]), "1999\n2000\n");
    assert_eq!(home.run(&["logs", "-f", "-n", "1", &id]), "2000\n");
    let never = home.try_run(&["logs", "--attempt", "99", &id]);
    assert_eq!(never.status.code(), Some(1));
    assert!(text(&never.stderr).contains("no attempt 99: it was started once"));
}

#[test]
fn a_key_of_another_command_and_what_is_not_there_are_refused() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let first = home.submit(&["--key", "a", "--gpu-mem", "1G", "--", "true"]);
    assert_eq!(home.submit(&["--key", "a", "--gpu-mem", "1G", "--", "true"]), first);
    let refused = |words: &[&str], why: &str, code: i32| {
        let output = home.try_run(&[&["submit"], words].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
    };
    refused(&["--key", "a", "--", "false"], "this key belongs to task 1, which runs another", 1);
    refused(&["nosuch.sh"], "there is no script nosuch.sh here", 2);
    refused(&["--", "bash", "nosuch.sh"], "there is no script nosuch.sh", 2);
    refused(&["-o", "no/such/%j.out", "--", "true"], "is not there: make it with mkdir -p", 2);
    refused(&["--gpu-mem", "12", "--", "true"], "12 GiB are 12G", 1);
    assert_eq!(home.json(&["queue", "--all"])["tasks"].as_array().map(Vec::len), Some(1));
}
