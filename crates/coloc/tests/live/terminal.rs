//! `coloc run --pty`, `attach` and `shell`: terminals that tasks run on.

use super::home::{Home, coloc, text};
use super::remote::Remote;
use super::screen::Screen;
use super::users::{as_nobody, shared_home};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

/// A shell that reads no files of its user's.
const BASH: [&str; 5] = ["run", "--pty", "--", "bash", "--norc"];

fn detach(screen: &mut Screen) {
    screen.types("\x10\x11");
    assert_eq!(screen.code(), Some(0), "{}", screen.shown());
    assert!(screen.is_usual(), "the terminal is as it was");
}

#[test]
fn a_terminal_has_job_control_a_size_and_a_way_out_and_back() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let mut screen = Screen::of(&home, &BASH);
    screen.wait_for("$ ");
    assert!(!screen.is_usual(), "keys go to the task");
    screen.types("stty size; [ -t 0 ] && [ -t 2 ] && echo a ter''minal\r");
    screen.wait_for("24 80");
    screen.wait_for("a terminal");
    screen.resize(33, 111);
    // The size arrives by a signal of its own.
    screen.types("until [ \"$(stty size)\" = '33 111' ]; do sleep 0.1; done; echo re''sized\r");
    screen.wait_for("resized");
    screen.types("sleep 1000\r");
    home.wait_for("a child", |_| is_running("sleep 1000"));
    screen.types("\x03");
    screen.types("echo code $?\r");
    screen.wait_for("code 130");
    screen.types("sleep 1001\r");
    home.wait_for("a child", |_| is_running("sleep 1001"));
    screen.types("\x1a");
    screen.wait_for("Stopped");
    screen.types("kill %1; echo remember''ed\r");
    screen.wait_for("remembered");
    detach(&mut screen);
    screen.wait_for("coloc attach 1");
    assert_eq!(home.state(1), "running");

    let mut back = Screen::of(&home, &["attach", "1"]);
    back.wait_for("remembered");
    let mut looks = Screen::of(&home, &["attach", "--read-only", "1"]);
    looks.wait_for("remembered");
    looks.types("exit 9\r");
    back.types("echo both''see\r");
    back.wait_for("bothsee");
    looks.wait_for("bothsee");
    back.types("exit 7\r");
    assert_eq!((back.code(), looks.code()), (Some(7), Some(7)));
    assert!(back.is_usual() && looks.is_usual());
    home.wait_for_state(1, "failed");
    let log = home.run(&["logs", "1"]);
    assert!(log.contains("remembered") && log.contains("bothsee"), "{log}");
    let story = home.story(1);
    assert!(!story.contains("a client"), "one's own terminal is no news: {story}");
}

fn is_running(command: &str) -> bool {
    let found = std::process::Command::new("pgrep").args(["-fx", command]).output();
    !found.expect("pgrep runs").stdout.is_empty()
}

#[test]
fn a_terminal_outlives_its_client_and_its_daemon() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let mut screen = Screen::of(&home, &BASH);
    screen.wait_for("$ ");
    screen.types("x=kept; echo re''ady\r");
    screen.wait_for("ready");
    screen.kill();
    let mut screen = Screen::of(&home, &["attach", "1"]);
    screen.types("echo $x by the shim\r");
    screen.wait_for("kept by the shim");
    home.kill();
    screen.wait_for("trying again");
    assert!(screen.is_usual(), "while there is no daemon, Ctrl-C leaves");
    home.boot();
    screen.wait_for("is back");
    screen.types("echo $x through a restart\r");
    screen.wait_for("kept through a restart");
    // What is printed while no daemon is there is not lost.
    screen.types("(sleep 1; echo la''ter) &\r");
    screen.wait_for("[1]");
    home.kill();
    screen.wait_for("trying again");
    home.boot();
    screen.wait_for("later");
    screen.types("exit 3\r");
    assert_eq!(screen.code(), Some(3), "{}", screen.shown());
    assert!(screen.is_usual());
}

#[test]
fn a_terminal_is_its_owners() {
    let Some(home) = shared_home(&["--emulate", "2xA100-40GB"]) else { return };
    let within = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut theirs = coloc();
    theirs.args(BASH).env("COLOC_SOCKET", home.socket()).env("HOME", "/nonexistent");
    let mut theirs = Screen::with(&within, theirs);
    theirs.wait_for("$ ");
    theirs.types("id -u; stat -c '%u %a' $(tty); echo me > $(tty)\r");
    theirs.wait_for("65534");
    theirs.wait_for("65534 600");
    theirs.wait_for("me");
    let roots = home.submit(&["--", "sleep", "1000"]).to_string();
    home.wait_for_state(2, "running");
    for (uid, task) in [("65534", roots.as_str()), ("1", roots.as_str()), ("1", "1")] {
        for words in [vec!["attach", "--read-only", task], vec!["exec", task, "--", "id"]] {
            let output = std::process::Command::new("setpriv")
                .args([&format!("--reuid={uid}"), &format!("--regid={uid}"), "--clear-groups"])
                .arg(coloc().get_program())
                .args(&words)
                .env("COLOC_SOCKET", home.socket())
                .env("HOME", "/nonexistent")
                .output()
                .expect("setpriv runs");
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{uid} {words:?}: {said}");
            assert!(
                said.contains("belongs to another user") || said.contains("has no terminal"),
                "{uid} {words:?}: {said}"
            );
            assert_eq!(text(&output.stdout), "", "{uid} {words:?}");
        }
    }
    let socket = home.path().join("state/runs/1.1/visits");
    let meta = std::fs::symlink_metadata(&socket).expect("a socket");
    assert!(meta.file_type().is_socket());
    assert_eq!((meta.uid(), meta.mode() & 0o777), (0, 0o600), "only the daemon connects");

    let who = as_nobody(&home, &["exec", "1", "--", "sh", "-c", "id -u; id -g; id -G"]);
    assert_eq!(text(&who.stdout), "65534\n65534\n65534\n", "{}", text(&who.stderr));
    let by_root = home.run(&["exec", "1", "--", "id", "-u"]);
    assert_eq!(by_root, "65534\n", "an administrator's command runs as the task's user");
    let mut root = Screen::of(&home, &["attach", "1"]);
    root.types("echo helped''out\r");
    theirs.wait_for("helpedout");
    let story = home.story(1);
    assert!(story.contains("a client came to its terminal, by root"), "{story}");
    assert!(story.contains("a command runs beside it: id -u, by root"), "{story}");
    theirs.types("exit\r");
    assert_eq!((theirs.code(), root.code()), (Some(0), Some(0)));
}

#[test]
fn a_shell_that_waits_says_why_and_is_given_up_by_ctrl_c() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--grace", "600"]);
    let first = home.submit(&["--exclusive", "-t", "10", "--", "sleep", "1000"]).to_string();
    home.wait_for_state(1, "running");
    let mut screen = Screen::of(&home, &["shell", "--exclusive"]);
    screen.wait_for("task 2 waits: ");
    screen.wait_for("expected to start");
    screen.types("\x03");
    assert_eq!(screen.code(), Some(130), "{}", screen.shown());
    screen.wait_for("task 2 is cancelled");
    assert_eq!(home.state(2), "cancelled");
    let mut screen = Screen::of(&home, &["shell", "--exclusive", "-J", "mine"]);
    screen.wait_for("task 3 waits: ");
    home.run(&["cancel", &first]);
    screen.types("echo $COLOC_TASK_ID $COLOC_TASK_NAME $0 here; exit\r");
    screen.wait_for("3 mine");
    assert_eq!(screen.code(), Some(0), "{}", screen.shown());
    let mut screen = Screen::with(&["env", "SHELL=/bin/bash"], {
        let mut command = coloc();
        command.arg("shell").env("COLOC_SOCKET", home.socket());
        command
    });
    screen.types("echo re''ady\r");
    screen.wait_for("ready");
    home.run(&["cancel", "4"]);
    assert_eq!(screen.code(), Some(125), "a shell goes with its terminal: {}", screen.shown());
}

#[test]
fn what_has_no_terminal_is_told_what_to_do() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--", "sleep", "1000"]);
    home.wait_for_state(1, "running");
    for (words, code, said) in [
        (vec!["attach", "--read-only", "1"], 1, "`coloc logs -f 1` shows its output"),
        (vec!["attach", "1"], 2, "standard input is not a terminal"),
        (vec!["run", "--pty", "--", "true"], 2, "standard input is not a terminal"),
        (vec!["shell"], 2, "standard input is not a terminal"),
        (vec!["exec", "--pty", "1", "--", "true"], 2, "standard input is not a terminal"),
        (vec!["attach", "--read-only", "99"], 1, "there is no task 99"),
        (vec!["exec", "99", "--", "true"], 1, "there is no task 99"),
        (vec!["exec", "1-3", "--", "true"], 2, "one task is to be named"),
        (vec!["run", "--detach-keys", "hyper-x", "--pty", "--", "true"], 2, "are no keys"),
    ] {
        let output = home.try_run(&words);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert!(told.contains(said), "{words:?}: {told}");
    }
    let mut array = Screen::of(&home, &["run", "--pty", "-a", "1-2", "--", "true"]);
    assert_eq!(array.code(), Some(2));
    array.wait_for("one terminal shows one task");
}

#[test]
fn a_terminal_is_shown_elsewhere_until_its_token_ends() {
    let remote = Remote::new(&[]);
    let token = remote.token(&[]);
    let elsewhere = |words: &[&str]| {
        let mut command = remote.elsewhere(&token);
        command.args(words);
        Screen::with(&[], command)
    };
    let mut screen = elsewhere(&BASH);
    screen.wait_for("$ ");
    screen.resize(40, 90);
    screen.types(
        "until [ \"$(stty size)\" = '40 90' ]; do sleep 0.1; done; seq 20000; echo do''ne\r",
    );
    screen.wait_for("19999");
    screen.wait_for("done");
    let said = remote.run_elsewhere(&token, &["exec", "1", "--", "sh", "-c", "echo far; exit 6"]);
    assert_eq!((said.status.code(), text(&said.stdout).as_str()), (Some(6), "far\n"));
    detach(&mut screen);
    let mut screen = elsewhere(&["attach", "1"]);
    screen.wait_for("done");
    remote.home.run(&["token", "revoke", "1"]);
    screen.wait_for("was revoked");
    assert_eq!(screen.code(), Some(1), "{}", screen.shown());
    assert!(screen.is_usual());
    assert_eq!(remote.home.state(1), "running");
}
