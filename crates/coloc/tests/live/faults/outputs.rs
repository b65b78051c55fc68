//! Outputs that users chose: read with their rights, from regular files only, and without keeping others waiting.

use crate::live::home::{Home, text};
use crate::live::users::{as_nobody, shared_home, submit_as_nobody};
use std::os::unix::fs::chown;

const NOBODY: u32 = 65_534;

fn place_of_nobody() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a directory");
    chown(place.path(), Some(NOBODY), Some(NOBODY)).expect("it is ours to give");
    place
}

/// What `logs` says, to root and to the task's user.
fn logs(home: &Home, id: u32) -> [(bool, String); 2] {
    let id = id.to_string();
    let outputs = [home.try_run(&["logs", &id]), as_nobody(home, &["logs", &id])];
    outputs.map(|output| (output.status.success(), text(&output.stdout) + &text(&output.stderr)))
}

#[test]
fn what_only_root_may_read_is_read_by_no_ones_log() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let place = place_of_nobody();
    let link = place.path().join("link");
    std::os::unix::fs::symlink("/etc/shadow", &link).expect("a link");
    let link = link.to_str().expect("text");
    for path in ["/etc/shadow", link, "/root/is-there-such-a-file"] {
        let id = submit_as_nobody(&home, &["--hold", "-o", path, "--", "true"]);
        for (read, said) in logs(&home, id) {
            assert!(!read && said.contains("ermission denied"), "{path}: {said}");
            assert!(!said.contains("root:"), "{path}: {said}");
        }
    }
}

#[test]
fn links_of_ones_own_are_followed() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let place = place_of_nobody();
    let (file, link) = (place.path().join("file"), place.path().join("link"));
    std::fs::write(&file, "words\n").expect("a file");
    chown(&file, Some(NOBODY), Some(NOBODY)).expect("it is ours to give");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let path = link.to_str().expect("text");
    let id = submit_as_nobody(&home, &["--hold", "-o", path, "--", "true"]);
    assert_eq!(logs(&home, id), [(true, "words\n".to_owned()), (true, "words\n".to_owned())]);
}

#[test]
fn devices_and_pipes_are_refused_and_cost_nothing() {
    let Some(home) = shared_home(&["--emulate", "1xA100-40GB"]) else { return };
    let place = place_of_nobody();
    let pipe = place.path().join("pipe");
    let made = std::process::Command::new("mkfifo").args(["-m", "666"]).arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    let pipe = pipe.to_str().expect("text");
    let before = home.resident();
    for path in [pipe, "/dev/zero", "/dev/tty", "/proc/self/maps", "/proc/self/environ", "/"] {
        let id = submit_as_nobody(&home, &["--hold", "-o", path, "--", "true"]);
        for (read, said) in logs(&home, id) {
            assert!(!read && said.contains(path), "{path}: {said}");
        }
        let asks: Vec<_> = (0..20).map(|_| ask_for_log(&home, id)).collect();
        asks.into_iter().for_each(|ask| assert_ne!(ask.join().expect("an answer"), 200));
    }
    let grown = home.resident().saturating_sub(before);
    assert!(grown < 64 << 20, "{} MiB more", grown >> 20);
}

/// What a command writes to a terminal.
fn on_a_terminal(home: &Home, arguments: &str) -> Option<String> {
    let program = format!("{} {arguments}", env!("CARGO_BIN_EXE_coloc"));
    let output = std::process::Command::new("script")
        .args(["-qec", &program, "/dev/null"])
        .env("COLOC_SOCKET", home.socket())
        .env("COLOC_CONFIG", "/dev/null")
        .stdin(std::process::Stdio::null())
        .output();
    match output {
        Ok(output) => Some(text(&output.stdout)),
        Err(_) => {
            crate::live::home::skipped("there is no script(1), which makes a terminal");
            None
        }
    }
}

#[test]
fn a_terminal_is_told_nothing_by_a_log() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let said = "\x1b]52;c;ZWNobw==\x07\x1b[31mred\x1b[0m\x1b[2J\n";
    let id = home.submit(&["--", "printf", "%s", said]);
    home.wait_for_state(id, "completed");
    let piped = home.run(&["logs", &id.to_string()]);
    assert_eq!(piped, said, "a pipe gets every byte");
    let Some(shown) = on_a_terminal(&home, &format!("logs {id}")) else { return };
    assert!(shown.contains("\x1b[31mred\x1b[0m"), "colours stay: {shown:?}");
    assert!(!shown.contains("52;c") && !shown.contains("\x1b[2J"), "{shown:?}");
    let raw = on_a_terminal(&home, &format!("logs --raw {id}")).expect("a terminal");
    assert!(raw.contains("\x1b]52;c;ZWNobw==\x07"), "{raw:?}");
    let run = on_a_terminal(&home, "run -- printf 'a\\033]0;title\\007b'").expect("a terminal");
    assert!(run.contains("ab") && !run.contains("title"), "{run:?}");
}

fn ask_for_log(home: &Home, id: u32) -> std::thread::JoinHandle<u16> {
    let socket = home.socket();
    std::thread::spawn(move || {
        let stream = std::os::unix::net::UnixStream::connect(socket).expect("a place");
        crate::live::http::ask_over(stream, &format!("GET /v1/tasks/{id}/log"), "", b"").status
    })
}
