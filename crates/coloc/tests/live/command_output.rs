//! What the command line tells people and programs.

use super::home::{Home, coloc, skipped, text};
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::{Command, Stdio};

/// A daemon with one task that is held.
fn with_a_held_task(name: &str, words: &[&str]) -> Home {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&[&["--hold", "-J", name, "--"], words].concat());
    home
}

#[test]
fn what_others_chose_does_not_command_a_terminal() {
    let name = "na\nme\u{1b}[31mred\u{9b}2J";
    let home = with_a_held_task(name, &["echo", "\u{1b}]0;title\u{7}"]);
    let listed = home.run(&["queue"]);
    assert!(listed.contains("na\\nme\\u{1b}[31mred\\u{9b}2J  "), "{listed}");
    let shown = home.run(&["show", "1"]);
    assert!(shown.contains("echo '\\u{1b}]0;title\\u{7}'\n"), "{shown}");
    home.run(&["cancel", "1"]);
    home.wait_for_state(1, "cancelled");
    let told = [listed, shown, home.run(&["history"]), home.run(&["queue", "--all"])].concat();
    assert!(!told.contains(|char: char| char.is_control() && char != '\n'), "{told:?}");
    assert_eq!(home.show(1)["name"], name, "programs get what was said");
}

/// What a terminal of this width shows; `None` where there is no program to make one.
fn on_a_terminal(home: &Home, columns: u32, words: &str) -> Option<String> {
    on_a_terminal_with(home, columns, "", words)
}

/// The same with some more variables.
fn on_a_terminal_with(home: &Home, columns: u32, set: &str, words: &str) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_coloc");
    let line = format!("stty cols {columns} && {set} {program} {words}");
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env_remove("COLUMNS").stdin(Stdio::null());
    command.env("COLOC_CONFIG", "/dev/null").env("COLOC_SOCKET", home.socket());
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(text(&output.stdout).replace('\r', ""))
}

#[test]
fn lists_fit_the_terminal_and_pipes_get_all() {
    let long = "a-long-name-".repeat(20);
    let home = with_a_held_task(&long, &["true"]);
    home.submit(&["--hold", "-J", &long, "--", "true"]);
    home.run(&["cancel", "1"]);
    home.wait_for_state(1, "cancelled");
    for columns in [60, 80] {
        for verb in ["queue", "history", "queue --expected"] {
            let Some(told) = on_a_terminal(&home, columns, verb) else {
                skipped("no terminal can be made here, `script` is missing");
                return;
            };
            let widest = told.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= columns as usize, "{verb} on {columns}: {widest}\n{told}");
            assert!(told.contains("a-long") && told.contains('…'), "{verb}: {told}");
        }
    }
    let busy = home.submit(&["-J", &long, "--", "sleep", "60"]);
    home.wait_for_state(busy, "running");
    let fleet = home.path().join("state/emulated");
    let driver = format!("LD_LIBRARY_PATH={}", fleet.join("lib").display());
    let devices = format!("COLOC_EMU_DIR={} {driver}", fleet.display());
    for within in ["", &devices] {
        let told = on_a_terminal_with(&home, 80, within, "gpus").expect("there was one before");
        let lines: Vec<&str> = told.lines().take_while(|line| !line.is_empty()).collect();
        assert!(lines[0].ends_with("TASKS") && lines[1].contains('…'), "{told}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80), "{told}");
    }
    assert!(home.run(&["gpus"]).contains(&long), "pipes get all");
    assert!(home.run(&["queue"]).contains(&long) && home.run(&["history"]).contains(&long));
}

#[test]
fn wishes_that_match_nothing_are_told() {
    let home = with_a_held_task("one", &["true"]);
    for wrong in [["queue", "-t", "nonsense"], ["cancel", "--state", "penidng"]] {
        let output = home.try_run(&wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        let said = text(&output.stderr);
        assert!(said.contains("expected pending (PD), launching (CF)"), "{said}");
    }
    assert_eq!(home.run(&["queue", "-t", "PD,timeout", "--noheader"]).lines().count(), 1);
    let nobody = home.try_run(&["cancel", "--name", "nosuch"]);
    assert!(text(&nobody.stderr).contains("nothing matched"), "{}", text(&nobody.stderr));
    assert_eq!(home.state(1), "pending");
    for gpus in ["0", "5"] {
        let said = text(&home.try_run(&["submit", "-G", gpus, "--", "true"]).stderr);
        let advice = if gpus == "0" { "at least 1" } else { "ask for fewer, or add GPUs" };
        assert!(said.contains(advice), "{said}");
    }
}

#[test]
fn ranges_mean_who_has_not_ended() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--", "true"]);
    home.wait_for_state(1, "completed");
    home.run(&["submit", "--hold", "-a", "1-5", "--", "true"]);
    home.run(&["cancel", "4"]);
    home.wait_for_state(4, "cancelled");
    assert_eq!(home.run(&["cancel", "1-6"]), "Cancelled 2-3, 5-6\n");
    let again = home.try_run(&["cancel", "1-6", "all"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let named = home.try_run(&["cancel", "4"]);
    assert_eq!(named.status.code(), Some(1));
    let said = text(&named.stderr);
    assert!(said.contains("task 4 has ended: it is cancelled"), "{said}");
    for verb in [&["cancel", "77"][..], &["requeue", "77"], &["exec", "77", "--", "true"]] {
        let said = text(&home.try_run(verb).stderr);
        assert!(said.contains("there is no task 77"), "{said}");
    }
    let said = text(&home.try_run(&["exec", "1", "--", "true"]).stderr);
    assert!(said.contains("task 1 has ended: it is completed"), "{said}");
}

#[test]
fn programs_are_answered_in_one_document() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--", "true"]);
    home.submit(&["--", "sh", "-c", "exit 7"]);
    let output = home.try_run(&["wait", "1-2", "--json"]);
    assert_eq!(output.status.code(), Some(7));
    let waited: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&waited["schema"], &waited["exit_code"]), (&json!(1), &json!(7)));
    assert_eq!(waited["tasks"][0]["state"], "completed");
    assert_eq!(waited["tasks"][1]["exit_code"], 7);
    let both = home.json(&["show", "1-2"]);
    assert_eq!((&both["schema"], &both["tasks"][1]["id"]), (&json!(1), &json!(2)));
    assert_eq!(home.show(2)["id"], 2, "one task is the document itself");
    assert_eq!(home.json(&["drain"])["draining"], true);
    assert_eq!(home.json(&["resume"])["draining"], false);
    assert_eq!(home.json(&[])["tasks"], json!([]), "without a verb, the queue");
    let checked = home.json(&["config", "check", "/dev/null"]);
    assert_eq!(checked["files"][0], json!({ "file": "/dev/null", "settings": 0 }));
    let refused = home.try_run(&["run", "--json", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2), "its output is the task's");
}

#[test]
fn who_leaves_a_task_is_told_that_it_goes_on() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let mut attached = coloc();
    attached.args(["run", "--", "sh", "-c", "echo on; sleep 60"]);
    attached.env("COLOC_SOCKET", home.socket());
    let attached = attached.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut attached = attached.expect("it starts");
    // A program that copies the task's output has long heard its id.
    let mut heard = [0; 3];
    attached.stdout.as_mut().expect("a pipe").read_exact(&mut heard).expect("its words");
    assert_eq!(&heard, b"on\n");
    let pid = attached.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
    let output = attached.wait_with_output().expect("it ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("`coloc logs -f 1`") && said.contains("`coloc cancel 1`"), "{said}");
    assert_eq!(home.state(1), "running");
}
