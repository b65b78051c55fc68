//! What a daemon does when there is too little of something: room on the disk, patience, connections.

use super::home::{Home, skipped, text};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

/// Nobody fills it by accident.
const DISK: &str = "size=16m";

/// A daemon whose state is on a small disk of its own, which goes away with it.
fn on_a_small_disk() -> Option<Home> {
    let possible = Command::new("unshare")
        .args(["--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !possible {
        skipped("a disk of one's own can be had by root only");
        return None;
    }
    let mount = format!("mkdir -p \"$0\" && mount -t tmpfs -o {DISK} tmpfs \"$0\" && exec \"$@\"");
    Some(Home::within(&["unshare", "--mount", "sh", "-c", &mount], &["--emulate", "2xA100-40GB"]))
}

/// The same place as the daemon sees it.
fn as_the_daemon_sees(home: &Home, file: &str) -> PathBuf {
    let state = home.path().join("state").join(file);
    let root = PathBuf::from(format!("/proc/{}/root", home.pid()));
    root.join(state.strip_prefix("/").expect("an absolute path"))
}

#[test]
fn a_full_disk_refuses_new_work_and_keeps_what_runs() {
    let Some(home) = on_a_small_disk() else { return };
    let go = home.path().join("go");
    let until = format!("echo up; while ! test -e {}; do sleep 0.02; done; exit 4", go.display());
    let runs = home.submit(&["--exclusive", "--", "sh", "-c", &until]);
    // Once it speaks, its shim has written all that it needs.
    home.wait_for("its first word", |home| {
        text(&home.try_run(&["logs", &runs.to_string()]).stdout).contains("up")
    });
    let waits = home.submit(&["--begin", "now+1h", "--", "true"]);
    let fill = as_the_daemon_sees(&home, "fill");
    let mut file = std::fs::File::create(&fill).expect("a file");
    while file.write_all(&[0; 4096]).is_ok() {}
    // An open file would keep its room after it is gone.
    drop(file);
    // A write that fits into a page that is there may still succeed.
    home.wait_for("a refusal", |home| {
        let refused = home.try_run(&["submit", "--hold", "--", "true"]);
        !refused.status.success() && text(&refused.stderr).contains("disk with the journal is full")
    });
    assert_eq!(home.state(runs), "running");
    // A change that cannot be written down is made, and said not to be safe; one that is refused is just that.
    let held = home.try_run(&["hold", &waits.to_string()]);
    assert!(text(&held.stderr).contains("it is done, but the disk"), "{}", text(&held.stderr));
    let refused = home.try_run(&["hold", &runs.to_string()]);
    assert!(text(&refused.stderr).contains("only a task that waits"), "{}", text(&refused.stderr));
    std::fs::write(&go, "").expect("a file");
    // Its shim kept room for its last word. The journal has none: what is not written down is not told yet.
    let end = as_the_daemon_sees(&home, "runs/1.1/exit.json");
    home.wait_for("its last word", |_| end.exists());
    assert_eq!(home.state(runs), "running");
    let refused = home.try_run(&["submit", "--", "true"]);
    assert!(!refused.status.success(), "{}", text(&refused.stdout));

    std::fs::remove_file(&fill).expect("room");
    home.wait_for("room again", |home| home.try_run(&["run", "--", "true"]).status.success());
    home.wait_for_state(runs, "failed");
    assert_eq!(home.show(runs)["exit_code"], 4);
}

#[test]
fn hundreds_who_say_nothing_keep_nobody_out() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let silent: Vec<UnixStream> =
        (0..300).map(|_| UnixStream::connect(home.socket()).expect("a place")).collect();
    let half = silent.iter().take(100);
    half.for_each(|mut stream| stream.write_all(b"POST /v1/tasks HT").expect("a word"));
    assert!(home.try_run(&["run", "--", "true"]).status.success());
    drop(silent);
}

/// Whoever does not read is told what was missed, and costs neither memory nor others' time.
#[test]
fn slow_readers_of_events_and_lists() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--hold", "-a", "1-20000", "--", "true"]);
    let ask = |path: &str| {
        let mut stream = UnixStream::connect(home.socket()).expect("a place");
        let request = format!("GET {path} HTTP/1.1\r\nhost: coloc\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a question");
        stream
    };
    let mut events = ask("/v1/events");
    events.read_exact(&mut [0; 15]).expect("it begins");
    let before = home.resident();
    let lists: Vec<UnixStream> = (0..40).map(|_| ask("/v1/tasks")).collect();
    home.run(&["cancel", "1-20000"]);
    assert!(home.try_run(&["run", "--", "true"]).status.success());
    // Forty lists are 280 MB.
    let grown = home.resident().saturating_sub(before);
    assert!(grown < 100 << 20, "{} MiB more", grown >> 20);
    drop(lists);
    let mut told = Vec::new();
    let missed = |told: &[u8]| String::from_utf8_lossy(told).contains("event: missed");
    while !missed(&told) {
        let mut piece = [0; 64 << 10];
        let length = events.read(&mut piece).expect("more");
        assert!(length > 0, "hung up");
        told.extend_from_slice(&piece[..length]);
    }
}
