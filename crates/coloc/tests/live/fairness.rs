//! Quotas, weights and priorities, live.

use super::home::{Home, skipped, text};
use std::process::Command;

fn own(flag: &str) -> String {
    text(&Command::new("id").arg(flag).output().expect("id runs").stdout).trim().to_owned()
}

fn running(home: &Home) -> usize {
    let tasks = home.json(&["queue"]);
    let tasks = tasks["tasks"].as_array().expect("tasks").iter();
    tasks.filter(|task| task["state"] == "running").count()
}

#[test]
fn quotas_of_users_groups_and_everybody() {
    let (user, group) = (own("-un"), own("-gn"));
    for (quota, most, said) in [
        ("*=1".to_owned(), 1, format!("the quota of user {user} is 1 GPUs: 1 in use, 1 wanted")),
        (format!("{user}=2"), 2, format!("the quota of user {user} is 2 GPUs")),
        (format!("@{group}=3"), 3, format!("the quota of group {group} is 3 GPUs")),
        (format!("{user}=5G"), 1, format!("the quota of user {user} is 5.0 GiB: 4.0 GiB in use")),
    ] {
        let home =
            Home::new(&["--emulate", "4xA100-40GB", "--share", "exclusive", "--quota", &quota]);
        home.submit(&["-a", "1-4", "--gpu-mem", "4G", "--", "sleep", "60"]);
        home.wait_for(&quota, |home| running(home) == most);
        let why = home.run(&["why", "4"]);
        assert!(why.contains(&said), "{said:?} is not in {why}");
        home.run(&["cancel", "1"]);
        home.wait_for("the next", |home| home.state(most as u32 + 1) == "running");
        assert_eq!(running(&home), most);
        // A restart knows who holds what.
        let mut home = home;
        home.kill();
        home.boot();
        home.submit(&["--gpu-mem", "4G", "--", "sleep", "60"]);
        assert_eq!(running(&home), most, "{quota}");
    }
}

#[test]
fn weights_and_quotas_of_strangers_are_refused() {
    for flags in [
        ["--quota", "no such user=4"],
        ["--weight", "no such user=2"],
        ["--quota", "@no such group=4"],
    ] {
        let place = tempfile::tempdir().expect("a directory");
        let output = super::home::coloc()
            .args(["daemon", "--emulate", "1xA100-40GB", "--state"])
            .arg(place.path())
            .arg("--socket")
            .arg(place.path().join("socket"))
            .args(flags)
            .output()
            .expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let said = text(&output.stderr);
        assert!(said.contains("no such") && said.contains("on this machine"), "{said}");
    }
}

#[test]
fn under_fair_the_heavier_user_has_more_turns() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can be two users");
        return;
    }
    let flags = ["--emulate", "1xA100-40GB", "--share", "exclusive", "--queue", "fair"];
    let more = ["--weight", "nobody=3", "--half-life", "1h"];
    let home = super::users::shared_home(&[&flags[..], &more[..]].concat()).expect("root");
    home.run(&["drain"]);
    home.run(&["resume"]);
    let gate = home.submit(&["--", "sleep", "0.5"]);
    home.wait_for_state(gate, "running");
    let mine: Vec<u32> = (0..6).map(|_| home.submit(&["--", "sleep", "0.3"])).collect();
    let theirs: Vec<u32> =
        (0..6).map(|_| super::users::submit_as_nobody(&home, &["--", "sleep", "0.3"])).collect();
    home.run(&["wait", "all"]);
    let started = |id: &u32| home.show(*id)["started_s"].as_f64().expect("a time");
    // Root has had the gate's time, and a third of the weight: of the first four turns it has one at most.
    let mut turns: Vec<(f64, bool)> = mine.iter().map(|id| (started(id), true)).collect();
    turns.extend(theirs.iter().map(|id| (started(id), false)));
    turns.sort_by(|a, b| a.0.total_cmp(&b.0));
    let roots = turns.iter().take(4).filter(|(_, mine)| *mine).count();
    assert!(roots <= 1, "{turns:?}");
}

#[test]
fn what_users_have_had_survives_the_daemon() {
    let flags = ["--emulate", "1xA100-40GB", "--share", "exclusive", "--queue", "fair"];
    let Some(mut home) = super::users::shared_home(&flags) else { return };
    let ended = home.submit(&["--", "sleep", "1"]);
    home.wait_for_state(ended, "completed");
    home.kill();
    home.boot();
    let mine = home.submit(&["--hold", "--", "sleep", "0.2"]);
    let theirs = super::users::submit_as_nobody(&home, &["--hold", "--", "sleep", "0.2"]);
    home.run(&["release", &mine.to_string(), &theirs.to_string()]);
    home.run(&["wait", "all"]);
    let started = |id: u32| home.show(id)["started_s"].as_f64().expect("a time");
    assert!(started(theirs) < started(mine), "root came first, but has had its second");
}

#[test]
fn a_priority_goes_before_what_the_discipline_says() {
    let home = Home::new(&[
        "--emulate",
        "1xA100-40GB",
        "--preset",
        "tiresias",
        "--share",
        "exclusive",
        "--grace",
        "1",
    ]);
    let plain = home.submit(&["--", "sleep", "60"]);
    home.wait_for_state(plain, "running");
    let urgent = home.submit(&["--priority", "1", "--", "sleep", "60"]);
    home.wait_for_state(urgent, "running");
    assert_eq!(home.state(plain), "pending");
    home.run(&["update", &urgent.to_string(), "--priority", "-1"]);
    home.wait_for_state(plain, "running");
}
