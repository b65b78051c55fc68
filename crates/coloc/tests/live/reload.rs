//! A configuration that changes while the daemon runs.

use super::home::{Home, text};
use std::process::Command;

/// A daemon with a configuration file, which may be rewritten.
fn home(configuration: &str) -> Home {
    Home::with_environment(&["--emulate", "2xA100-40GB"], |place| {
        let file = place.join("coloc.toml");
        std::fs::write(&file, configuration).expect("a file");
        vec![("COLOC_CONFIG", file)]
    })
}

fn rewrite(home: &Home, configuration: &str) {
    std::fs::write(home.path().join("coloc.toml"), configuration).expect("a file");
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path().join("daemon.log")).expect("a log")
}

#[test]
fn another_policy_takes_effect_and_running_tasks_stay() {
    let home = home("[daemon]\npreset = 'coloc'\nshare = 'exclusive'\n");
    let runs = ["--gpus", "2", "--gpu-mem", "1G", "--", "sleep", "60"];
    let first = home.submit(&runs);
    home.wait_for_state(first, "running");
    let second = home.submit(&runs);
    assert_eq!(home.state(second), "pending");
    let before = home.show(first);

    rewrite(
        &home,
        "[daemon]\nshare = 'streams'\nplace = 'magm'\n# a comment\nmax-tasks = 3\ngrace = 1\n",
    );
    assert!(home.run(&["config", "reload"]).contains("in force"));
    home.wait_for_state(second, "running");
    let after = home.show(first);
    assert_eq!((&after["state"], &after["attempts"]), (&"running".into(), &before["attempts"]));
    assert_eq!(after["started_s"], before["started_s"]);
    let shown = home.run(&["config", "show", "--live", "--origin"]);
    for line in [
        "share = \"streams\"  # ",
        "coloc.toml, line 2",
        "max-tasks = \"3\"",
        "emulate = \"2xA100-40GB\"  # command line",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    assert!(!shown.contains("preset"), "{shown}");

    // Back to whole GPUs: tasks that share go on sharing, and a new task waits.
    rewrite(&home, "[daemon]\nshare = 'exclusive'\n");
    home.run(&["config", "reload"]);
    let third = home.submit(&["--", "true"]);
    assert_eq!(home.state(first), "running");
    assert_eq!(home.state(second), "running");
    home.run(&["cancel", &first.to_string()]);
    home.wait_for_state(first, "cancelled");
    assert_eq!(home.state(third), "pending", "the second is still on both");
    home.run(&["cancel", &second.to_string()]);
    home.wait_for_state(third, "completed");
}

#[test]
fn a_wrong_file_is_refused_with_its_place_and_the_old_one_stays() {
    let home = home("[daemon]\nqueue = 'fifo'\n");
    let shown = home.run(&["config", "show", "--live", "--origin"]);
    for (wrong, said) in [
        ("[daemon]\nqueue = 'lifo'\n", "line 2, column 9"),
        ("[daemon]\n\n  colour = 'red'\n", "line 3, column 3"),
        ("[daemon\n", "line 1, column"),
        ("[daemon]\nquota = ['no such user=4']\n", "there is no user \"no such user\""),
        ("[daemon]\nquantum = -1\n", "-1"),
        ("[daemon]\nhistory = '/nonexistent'\n", "/nonexistent"),
        ("[api]\ntls-cert = '/x'\n", "tls-key"),
    ] {
        rewrite(&home, wrong);
        let refused = home.try_run(&["config", "reload"]);
        assert_eq!(refused.status.code(), Some(1), "{wrong}");
        let error = text(&refused.stderr);
        assert!(error.contains(said), "{said:?} is not in {error}");
        assert_eq!(home.run(&["config", "show", "--live", "--origin"]), shown);
    }
    Command::new("kill").args(["-HUP", &home.pid().to_string()]).status().expect("kill runs");
    home.wait_for("a word", |home| log(home).contains("the old settings stay"));
    assert!(home.try_run(&["run", "--", "true"]).status.success());

    rewrite(
        &home,
        "[daemon]\nqueue = 'fair'\nsocket = '/elsewhere'\nperiod = 2\n[api]\nlisten = '127.0.0.1:0'\n",
    );
    Command::new("kill").args(["-HUP", &home.pid().to_string()]).status().expect("kill runs");
    home.wait_for("a word", |home| {
        log(home).contains("listen, period: these count at the next start")
    });
    assert!(home.run(&["config", "show", "--live"]).contains("queue = \"fair\""));
    std::fs::remove_file(home.path().join("coloc.toml")).expect("it is there");
    assert_eq!(
        home.try_run(&["config", "reload"]).status.code(),
        Some(1),
        "a file that was named is missing"
    );
}

/// Whatever can be simulated can be chosen live, by the same name.
#[test]
fn every_discipline_placement_and_way_to_share_runs_tasks() {
    let home = home("");
    let choices = [
        ("queue", "fifo best-effort backfill sjf srtf srsf las2d gittins2d fair allox"),
        (
            "place",
            "any exclusive round-robin first-fit best-fit magm lug least-interference consolidate",
        ),
        ("share", "exclusive streams mps"),
        ("on-oom", "grow exclusive fail"),
        ("preset", "carma-v1 carma-v2 tiresias tiresias-sim allox coloc"),
    ];
    for (key, values) in choices {
        for value in values.split(' ') {
            rewrite(&home, &format!("[daemon]\nestimator = 'oracle'\n{key} = '{value}'\n"));
            home.run(&["config", "reload"]);
            let id = home.submit(&["--gpu-mem", "1G", "-t", "1", "--", "true"]);
            home.wait_for_state(id, "completed");
        }
    }
}

#[test]
fn nothing_is_lost_or_run_twice_however_often_it_changes() {
    let home = home("");
    let note = home.path().join("ran");
    let script =
        format!("echo $COLOC_TASK_ID $COLOC_RESTART_COUNT >> {}; sleep 0.2", note.display());
    let policies = [
        "queue = 'las2d'\nshare = 'exclusive'\nquantum = 0.05",
        "queue = 'fair'\nshare = 'streams'\nplace = 'magm'\nmax-tasks = 4",
        "queue = 'backfill'\nshare = 'exclusive'\nquota = ['*=1']",
        "queue = 'srtf'\nshare = 'exclusive'",
    ];
    for round in 0..16 {
        for priority in ["0", "-1"] {
            home.submit(&["-t", "1", "--priority", priority, "--", "sh", "-c", &script]);
        }
        rewrite(&home, &format!("[daemon]\n{}\n", policies[round % policies.len()]));
        home.run(&["config", "reload"]);
    }
    home.wait_for("all ends", |home| home.json(&["queue"])["tasks"] == serde_json::json!([]));
    for task in home.json(&["queue", "--all"])["tasks"].as_array().expect("tasks") {
        assert_eq!(task["state"], "completed", "{task:#}");
    }
    // Each attempt ran once; a task that was preempted ran again, under another number.
    let ran = std::fs::read_to_string(&note).expect("a file");
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    let all = ran.len();
    ran.dedup();
    assert_eq!(ran.len(), all, "{ran:?}");
    assert!(all >= 32, "{ran:?}");
}
