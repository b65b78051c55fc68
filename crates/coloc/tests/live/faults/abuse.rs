//! People who mean harm, or do it without meaning to.

use crate::live::home::{Home, coloc, text};
use crate::live::http::ask;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Output;

/// More connections than the daemon may have: a client that says nothing makes room.
#[test]
fn a_thousand_silent_connections_keep_nobody_out_for_long() {
    let few_files = ["sh", "-c", "ulimit -n 512; exec \"$@\""];
    let home = Home::within(&few_files, &["--emulate", "1xA100-40GB"]);
    let socket = home.socket();
    let crowd = std::thread::spawn(move || {
        // A client that finds no room waits in a queue of the kernel's.
        (0..1000).map_while(|_| UnixStream::connect(&socket).ok()).collect::<Vec<_>>()
    });
    home.wait_for("a turn", |home| home.try_run(&["run", "--", "true"]).status.success());
    drop(crowd.join());
    assert!(home.try_run(&["run", "--", "true"]).status.success());
}

/// A byte now and then, in the head or in the body.
#[test]
fn who_drips_is_not_waited_for() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let open = |words: &[u8]| {
        let mut stream = UnixStream::connect(home.socket()).expect("a place");
        stream.write_all(words).expect("a word");
        stream
    };
    let head = b"POST /v1/tasks HTTP/1.1\r\nhost: coloc\r\ncontent-type: application/json\r\n";
    let promised = [&head[..], b"content-length: 1000000\r\n\r\n{\"spec\":"].concat();
    let chunked = [&head[..], b"transfer-encoding: chunked\r\n\r\n5\r\n{\"spe\r\n"].concat();
    let mut all: Vec<UnixStream> =
        (0..150).map(|n| open([&head[..], &promised, &chunked][n % 3])).collect();
    for _ in 0..3 {
        all.iter_mut().for_each(|stream| drop(stream.write_all(b" ")));
        assert!(home.try_run(&["run", "--", "true"]).status.success());
    }
    let wrong = ask(&home, "POST /v1/tasks", "transfer-encoding: chunked\r\n", b"zz\r\n\r\n");
    assert!([0, 400].contains(&wrong.status), "{}", wrong.status);
    assert!(home.try_run(&["run", "--", "true"]).status.success());
}

fn daemon(state: &Path, socket: &Path) -> Output {
    let mut command = coloc();
    command.args(["daemon", "--emulate", "1xA100-40GB", "--state"]).arg(state);
    command.arg("--socket").arg(socket).output().expect("it runs")
}

#[test]
fn a_second_daemon_says_why_it_ends_and_disturbs_nobody() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let place = tempfile::tempdir().expect("a directory");
    let state = home.path().join("state");
    for (state, socket, named) in [
        (state.clone(), place.path().join("other"), &state),
        (place.path().join("state"), home.socket(), &home.socket()),
    ] {
        let second = daemon(&state, &socket);
        assert_eq!(second.status.code(), Some(1));
        let said = text(&second.stderr);
        let expected = format!("another daemon uses {}", named.display());
        assert!(said.contains(&expected), "{expected} is not in {said}");
    }
    assert!(home.try_run(&["run", "--", "true"]).status.success());
    // What is no socket is not the daemon's to take away.
    let file = place.path().join("precious");
    std::fs::write(&file, "do not remove").expect("a file");
    let third = daemon(&place.path().join("third"), &file);
    assert_eq!(third.status.code(), Some(1), "{}", text(&third.stderr));
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "do not remove");
}

#[test]
fn a_state_that_cannot_be_written_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    let socket = place.path().join("socket");
    for state in ["/proc/nowhere", "/dev/null", "/dev/null/x"] {
        let output = daemon(Path::new(state), &socket);
        assert_eq!(output.status.code(), Some(1), "{state}");
        let said = text(&output.stderr);
        assert!(said.contains(state) && !said.contains("panicked"), "{said}");
    }
    let socket = daemon(&place.path().join("state"), Path::new("/proc/nowhere/socket"));
    assert_eq!(socket.status.code(), Some(1));
    assert!(text(&socket.stderr).contains("/proc/nowhere"), "{}", text(&socket.stderr));
}
