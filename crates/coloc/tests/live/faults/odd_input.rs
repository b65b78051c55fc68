//! Odd input is taken as it is, or refused with a word that helps.

use crate::live::home::{Home, coloc, text};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

#[test]
fn bytes_that_are_no_text_reach_the_task() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let odd = OsString::from_vec(b"a\xff\nb c".to_vec());
    let words = ["run", "--", "printf", "%s"].map(OsString::from);
    let arguments: Vec<OsString> = words.into_iter().chain([odd.clone()]).collect();
    let output = home.try_run(&arguments);
    assert_eq!(OsStr::from_bytes(&output.stdout), odd);
}

#[test]
fn a_directory_with_spaces_and_newlines_and_a_symlink() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let directory = home.path().join("a b\nc");
    std::fs::create_dir(&directory).expect("a directory");
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&directory, &link).expect("a link");
    for place in [&directory, &link] {
        let output = coloc()
            .args(["run", "-o", "out %j", "--", "pwd"])
            .current_dir(place)
            .env("COLOC_SOCKET", home.socket())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let written = std::fs::read_to_string(directory.join("out 1")).expect("its output");
    assert_eq!(written.trim_end(), directory.to_str().expect("text"));
}

#[test]
fn a_megabyte_of_environment() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    // A single variable may have 128 KiB at most, as Linux has it.
    let mut run = coloc();
    run.args(["run", "--", "sh", "-c", "env | wc -c"]).env("COLOC_SOCKET", home.socket());
    for number in 0..10 {
        run.env(format!("LARGE{number}"), "x".repeat(100_000));
    }
    let output = run.output().expect("it runs");
    let bytes: usize = text(&output.stdout).trim().parse().expect("a number");
    assert!(bytes > 1_000_000, "{bytes}: {}", text(&output.stderr));
}

#[test]
fn ten_thousand_tasks_in_one_array() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let first = home.submit(&["--hold", "-a", "1-10000", "--", "true"]);
    assert_eq!(first, 1);
    let listed = home.json(&["queue"]);
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(10_000));
    home.run(&["cancel", "1-10000"]);
    assert_eq!(home.json(&["queue"])["tasks"].as_array().map(Vec::len), Some(0));
}

#[test]
fn what_can_never_run_is_refused_at_once() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let refused = |arguments: &[&str]| {
        let output = home.try_run(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        text(&output.stderr)
    };
    assert!(refused(&["submit", "--gpus", "3", "--", "true"]).contains("needs 3 GPUs"));
    assert!(
        refused(&["submit", "--gpu-mem", "41G", "--", "true"])
            .contains("the largest GPU here has 40.0 GiB")
    );
    assert!(refused(&["submit", "--gpu-mem", "lots", "--", "true"]).contains("12G"));
    assert!(refused(&["submit", "-a", "5-1", "--", "true"]).contains("no array"));
    assert!(refused(&["show", "99"]).contains("no task 99"));
    assert!(refused(&["cancel", "99"]).contains("no task 99"));
    assert_eq!(home.json(&["queue", "--all"])["tasks"].as_array().map(Vec::len), Some(0));
}

#[test]
fn garbage_on_the_socket_harms_nobody() {
    use std::io::{Read as _, Write as _};
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let requests: [&[u8]; 5] = [
        b"\x00\xff\xfe garbage\r\n\r\n",
        b"POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"spec\":}",
        b"POST /v1/tasks HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999\r\n\r\n",
        b"GET /v1/tasks/99999999999999 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /../../etc/passwd HTTP/1.1\r\nhost: x\r\n\r\n",
    ];
    for request in requests {
        let mut stream = std::os::unix::net::UnixStream::connect(home.socket()).expect("a socket");
        stream.write_all(request).expect("it is sent");
        stream.shutdown(std::net::Shutdown::Write).expect("it is all");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!text(&answer).starts_with("HTTP/1.1 200"), "{}", text(&answer));
    }
    assert!(home.try_run(&["run", "--", "true"]).status.success());
}
