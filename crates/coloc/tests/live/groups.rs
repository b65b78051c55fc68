//! Control groups: what no process of a task can leave.
//!
//! What the kernel does is tested where this machine has a cgroup file system that tests may use, and skipped loudly
//! where not. What is written to it is a matter of unit tests, on folders that look like one.

use super::home::{Home, coloc, skipped, text};
use std::path::Path;

/// How the daemon keeps tasks together.
fn processes(home: &Home, id: u32) -> String {
    home.show(id)["enforcement"]["processes"].as_str().expect("it is told").to_owned()
}

fn skip(what: &str) {
    skipped(&format!("this machine has no {what} that tests may use"));
}

/// A process is there, and is no zombie.
fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.starts_with(" Z"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

#[test]
fn whoever_a_task_started_ends_with_it_even_when_its_shim_is_killed() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let file = home.path().join("pid");
    // In a session of its own, and no child of the shim's.
    let escape = format!(
        "setsid sh -c 'echo $$ > {0}.new; mv {0}.new {0}; sleep 600' & sleep 600",
        file.display()
    );
    let id = home.submit(&["--", "sh", "-c", &escape]);
    home.wait_for("the escaped", |_| file.exists());
    if !processes(&home, id).starts_with("cgroup") {
        return skip("cgroup");
    }
    let pid = read(&file);
    assert!(lives(&pid));
    let started = home.path().join(format!("state/runs/{id}.1/claim"));
    let started: serde_json::Value = serde_json::from_str(&read(&started)).expect("JSON");
    assert_eq!(started["in_group"], true);
    let shim = started["shim"]["pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &shim]).status();
    assert!(killed.expect("kill runs").success());
    home.wait_for_state(id, "lost");
    home.wait_for("its end", |_| !lives(&pid));
}

#[test]
fn groups_go_with_their_tasks_and_are_found_after_a_restart() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let id = home.submit(&["--", "sh", "-c", "cat /proc/self/cgroup; sleep 600"]);
    home.wait_for_state(id, "running");
    if !processes(&home, id).starts_with("cgroup") {
        return skip("cgroup");
    }
    let log = || home.run(&["logs", &id.to_string()]);
    home.wait_for("its group", |_| log().contains("0::/"));
    let name =
        log().lines().find_map(|line| line.strip_prefix("0::").map(str::to_owned)).expect("a name");
    assert!(name.ends_with(&format!("-{id}.1")), "{name}");
    let mounts = read(Path::new("/proc/self/mountinfo"));
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).expect("it is mounted");
    let group = format!("{}{name}", mount.split_whitespace().nth(4).expect("a place"));
    assert!(Path::new(&group).is_dir());
    home.kill();
    home.boot();
    assert!(Path::new(&group).is_dir(), "its task runs");
    home.run(&["cancel", &id.to_string()]);
    home.wait_for("no group", |_| !Path::new(&group).exists());
}

#[test]
fn a_task_beyond_its_host_memory_is_killed_and_told_so() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    // A shell's variable that doubles; the limit must come before the machine's own.
    let eat = "x=0123456789abcdef; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23; do x=$x$x; done; sleep 1";
    let id = home.submit(&["--mem", "48M", "--", "sh", "-c", eat]);
    home.wait_for("an end or a start", |home| home.state(id) != "pending");
    if home.show(id)["enforcement"]["host_memory"].is_null() {
        home.run(&["cancel", &id.to_string()]);
        return skip("memory controller (cgroup v2)");
    }
    home.wait_for_state(id, "failed");
    assert!(home.story(id).contains("at its limit of 48"), "{}", home.story(id));
}

#[test]
fn a_plain_folder_is_not_taken_for_a_group() {
    let place = tempfile::tempdir().expect("a folder");
    let plain = place.path().join("cgroup");
    std::fs::create_dir(&plain).expect("a folder");
    let refused = coloc()
        .args(["daemon", "--emulate", "1xA100-40GB", "--state"])
        .arg(place.path().join("state"))
        .arg("--socket")
        .arg(place.path().join("socket"))
        .env("COLOC_CGROUP", &plain)
        .output()
        .expect("it runs");
    let said = text(&refused.stderr);
    assert!(!refused.status.success(), "{said}");
    assert!(said.contains("is not a folder of the cgroup v2 file system"), "{said}");
    assert!(said.contains(plain.to_str().expect("text")), "{said}");
    assert_eq!(std::fs::read_dir(&plain).expect("a folder").count(), 0, "nothing was made there");
}
