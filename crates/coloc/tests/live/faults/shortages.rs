//! What a daemon does when there is too little of something: room on the disk, time, connections.

use crate::live::home::{Home, skipped, text};
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;

/// No test fills it by accident.
const DISK: &str = "size=16m,mode=755";

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

/// How often a list has this task as one that failed.
fn failed_in(home: &Home, list: &[&str], id: u32) -> usize {
    let list = home.json(list);
    let tasks = list["tasks"].as_array().expect("tasks");
    tasks.iter().filter(|task| task["id"] == id && task["state"] == "failed").count()
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
    let fills = home.submit(&["--", "sleep", "600"]);
    home.wait_for_state(fills, "running");
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
    // What is wrong is said once, however often that is asked.
    let said = || {
        let log = std::fs::read_to_string(home.path().join("daemon.log")).expect("a log");
        let (full, room) = ("disk with the journal is full", "there is room on the disk again");
        (log.matches(full).count(), log.matches(room).count())
    };
    let before = said();
    for _ in 0..5 {
        assert!(!home.try_run(&["submit", "--hold", "--", "true"]).status.success());
    }
    assert_eq!(said(), before);
    assert_eq!(before.0, before.1 + 1);
    // A change that cannot be written down is said not to be; one that is refused is just that.
    let held = home.try_run(&["hold", &waits.to_string()]);
    assert!(text(&held.stderr).contains("is not written down yet"), "{}", text(&held.stderr));
    let refused = home.try_run(&["hold", &runs.to_string()]);
    assert!(text(&refused.stderr).contains("only a task that waits"), "{}", text(&refused.stderr));
    // What runs can be cancelled: there is room for that on the fullest disk.
    let cancelled = home.try_run(&["cancel", &fills.to_string()]);
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    home.wait_for_state(fills, "cancelled");
    while std::fs::File::options()
        .append(true)
        .open(&fill)
        .is_ok_and(|mut file| file.write_all(&[0; 512]).is_ok())
    {}
    std::fs::write(&go, "").expect("a file");
    // Its shim kept room for its last word. The journal has none: the end is told from memory.
    let end = as_the_daemon_sees(&home, "runs/1.1/exit.json");
    home.wait_for("its last word", |_| end.exists());
    home.wait_for_state(runs, "failed");
    assert_eq!(home.show(runs)["exit_code"], 4);
    assert!(home.story(runs).contains("its end is not written down yet"), "{}", home.story(runs));
    assert_eq!(failed_in(&home, &["history"], runs), 1);
    assert_eq!(failed_in(&home, &["queue", "--all"], runs), 1);
    let refused = home.try_run(&["submit", "--", "true"]);
    assert!(!refused.status.success(), "{}", text(&refused.stdout));

    std::fs::remove_file(&fill).expect("room");
    home.wait_for("room again", |home| home.try_run(&["run", "--", "true"]).status.success());
    home.wait_for("its end in the journal", |home| !home.story(runs).contains("not written"));
    assert_eq!((home.state(runs).as_str(), &home.show(runs)["exit_code"]), ("failed", &4.into()));
    assert_eq!(failed_in(&home, &["history"], runs), 1, "once");
}

/// A disk that is there for as long as this is.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The disk is full again after every cancel: each counts all the same, and a restart knows of it.
#[test]
fn cancels_count_on_a_disk_that_stays_full() {
    if on_a_small_disk().is_none() {
        return;
    }
    let mount = format!(
        "mkdir -p \"$0\"; mountpoint -q \"$0\" || mount -t tmpfs -o {DISK} tmpfs \"$0\"; exec \"$@\""
    );
    let fleet = ["--emulate", "4xA100-40GB", "--grace", "1"];
    let mut home = Home::within(&["sh", "-c", &mount], &fleet);
    let _disk = Disk(home.path().join("state"));
    let pids = home.path().join("pids");
    let stays = format!("trap '' TERM; echo $$ >> {}; while :; do sleep 0.1; done", pids.display());
    let tasks: Vec<u32> =
        (0..4).map(|_| home.submit(&["--exclusive", "--", "sh", "-c", &stays])).collect();
    let alive = || {
        let pids = std::fs::read_to_string(&pids).unwrap_or_default();
        pids.lines().filter(|pid| std::path::Path::new(&format!("/proc/{pid}")).exists()).count()
    };
    home.wait_for("all of them", |_| alive() == 4);
    home.wait_for("running", |home| tasks.iter().all(|&id| home.state(id) == "running"));
    let fill = home.path().join("state/fill");
    let fill_up = || {
        let mut file =
            std::fs::File::options().create(true).append(true).open(&fill).expect("a file");
        while file.write_all(&[0; 512]).is_ok() {}
    };
    for (done, id) in tasks.iter().enumerate().take(3) {
        fill_up();
        let cancelled = home.try_run(&["cancel", &id.to_string()]);
        assert!(cancelled.status.success(), "{done}: {}", text(&cancelled.stderr));
        home.wait_for("its end", |_| alive() == 3 - done);
    }
    fill_up();
    // The last does not hear of it before the daemon dies.
    home.run(&["cancel", &tasks[3].to_string()]);
    home.kill();
    fill_up();
    home.boot();
    home.wait_for("its end", |_| alive() == 0);
    std::fs::remove_file(&fill).expect("room");
    home.wait_for("room again", |home| home.try_run(&["run", "--", "true"]).status.success());
    for id in tasks {
        home.wait_for_state(id, "cancelled");
    }
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

/// A client that does not read is told what was missed, and costs neither memory nor others' time.
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
