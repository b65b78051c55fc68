//! What programs read: errors, refusals and GPUs as JSON.

use super::home::{Home, coloc, text};
use serde_json::{Value, json};
use std::process::Output;

fn error(output: &Output) -> Value {
    assert_eq!(text(&output.stdout), "", "an error is on standard error alone");
    let document: Value = serde_json::from_slice(&output.stderr)
        .unwrap_or_else(|_| panic!("no JSON: {}", text(&output.stderr)));
    assert_eq!(document["schema"], 1);
    let error = document["error"].clone();
    assert_eq!(error["exit_code"], json!(output.status.code()));
    assert!(error["message"].as_str().is_some_and(|words| !words.is_empty()), "{error}");
    error
}

#[test]
fn errors_are_json_for_who_asks_for_json() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB"]);
    let code = |arguments: &[&str]| error(&home.try_run(arguments))["code"].clone();
    assert_eq!(code(&["show", "99", "--json"]), "no_such_task");
    assert_eq!(code(&["submit", "--json", "-G", "5", "--", "true"]), "invalid");
    assert_eq!(code(&["queue", "--json", "-t", "nonsense"]), "usage");
    assert_eq!(code(&["submit", "--json"]), "usage");
    assert_eq!(
        code(&["simulate", "--json", "--trace", "nowhere", "--fleet", "1xA100-40GB"]),
        "trace"
    );
    home.run(&["drain"]);
    assert_eq!(code(&["submit", "--json", "--", "true"]), "draining");
    let plain = home.try_run(&["submit", "--", "sh", "--json"]);
    assert!(text(&plain.stderr).starts_with("coloc: "), "that is the command's");
    home.stop();
    assert_eq!(error(&home.try_run(&["queue", "--json"]))["code"], "unreachable");
}

#[test]
fn refusals_and_reasons_are_told_in_full() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    home.submit(&["--exclusive", "--", "sleep", "60"]);
    home.submit(&["--exclusive", "--", "sleep", "60"]);
    home.wait_for_state(1, "running");
    let output = home.try_run(&["hold", "1,2,7", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["done"], json!([2]));
    let code = |index: usize| (&answer["refused"][index]["id"], &answer["refused"][index]["code"]);
    assert_eq!(code(0), (&json!(1), &json!("wrong_state")));
    assert_eq!(code(1), (&json!(7), &json!("no_such_task")));
    home.run(&["release", "2"]);
    home.wait_for("a reason", |home| {
        let listed = home.json(&["queue"]);
        let shown = home.json(&["queue", "-t", "PD"]);
        let table = home.run(&["queue", "--noheader", "-t", "PD"]);
        let reason = listed["tasks"][1]["reason"].as_str().unwrap_or("").to_owned();
        reason == "waiting for a GPU"
            && shown["tasks"][0]["reason"] == listed["tasks"][1]["reason"]
            && table.contains(&format!("({reason})"))
    });
}

#[test]
fn gpus_are_the_daemons_where_there_is_one() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let coloc_program = env!("CARGO_BIN_EXE_coloc");
    let id = home.submit(&[
        "--exclusive",
        "-J",
        "big",
        "--",
        coloc_program,
        "emu",
        "train",
        "--memory",
        "3G",
        "--seconds",
        "600",
    ]);
    home.wait_for_state(id, "running");
    let gpus = home.json(&["gpus"]);
    assert_eq!((&gpus["told_by"], &gpus["emulated"]), (&json!("daemon"), &json!(true)));
    let on = |gpus: &Value| {
        let of = gpus["gpus"].as_array().expect("GPUs").clone();
        of.into_iter().find(|gpu| gpu["tasks"] == json!([id])).expect("one has the task")
    };
    assert_eq!(on(&gpus)["residents"][0]["name"], "big");
    let table = home.run(&["gpus"]);
    assert!(table.contains("1 big") && table.contains("Told by the daemon at"), "{table}");
    // Where the devices are at hand, both tell, and the processes of tasks are known.
    let inside = || {
        let mut program = coloc();
        let emulated = home.path().join("state/emulated");
        program.env("COLOC_SOCKET", home.socket()).env("LD_LIBRARY_PATH", emulated.join("lib"));
        program.env("COLOC_EMU_DIR", &emulated).args(["gpus", "--json"]).output().expect("it runs")
    };
    home.wait_for("its process", |_| {
        let gpus: Value = serde_json::from_slice(&inside().stdout).expect("JSON");
        assert_eq!(gpus["told_by"], "devices and daemon");
        on(&gpus)["processes"][0]["task"] == json!(id)
    });
    let alone =
        coloc().args(["gpus", "--json", "--local"]).env("COLOC_SOCKET", home.socket()).output();
    assert_eq!(error(&alone.expect("it runs"))["code"], "driver", "there is no device here");
}

#[test]
fn what_is_in_force_is_told_and_the_daemons_mistakes_are_its_own() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--queue", "las2d", "--grace", "3"]);
    let live = home.json(&["config", "show", "--live"]);
    assert_eq!(
        (&live["policy"]["queue"], &live["policy"]["share"]),
        (&json!("las2d"), &json!("mps"))
    );
    assert_eq!(live["grace_s"], 3.0);
    let file = home.path().join("config.toml");
    let wrong = format!("[client]\nsocket = {:?}\n[daemon]\nqueue = 'lifo'\n", home.socket());
    std::fs::write(&file, wrong).expect("a file");
    let run = |verb: &str| {
        let mut program = coloc();
        program.env("COLOC_CONFIG", &file).env("COLOC_SOCKET", "").env("COLOC_HOST", "");
        program.env("COLOC_FINGERPRINT", "").env("XDG_RUNTIME_DIR", "").arg(verb);
        program.output().expect("it runs")
    };
    let queue = run("queue");
    assert!(queue.status.success(), "{}", text(&queue.stderr));
    let daemon = run("daemon");
    assert!(text(&daemon.stderr).contains("line 4, column 9"), "{}", text(&daemon.stderr));
}
