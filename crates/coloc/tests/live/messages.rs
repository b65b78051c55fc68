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
