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
