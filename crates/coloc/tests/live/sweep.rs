//! One command with many parameters, estimates from summaries, and GPUs that are held but not used.

use super::home::{Home, text};

#[test]
fn a_sweep_runs_every_combination_once() {
    let home = Home::new(&["--emulate", "2xA100-40GB"]);
    let command = ["--", "echo", "lr={lr} seed={seed} {{other}}"];
    let words = |flags: &[&'static str]| -> Vec<&'static str> {
        let grids = ["sweep", "--grid", "lr=1e-3,1e-4", "--grid", "seed=1,2"];
        grids.iter().chain(flags).chain(&command).copied().collect()
    };
    let dry = home.run(&words(&["--dry-run"]));
    assert!(dry.contains("echo lr=1e-4 seed=2 {other}") && dry.contains("4 tasks would"), "{dry}");
    assert_eq!(home.json(&["queue", "--all"])["tasks"].as_array().map(Vec::len), Some(0));
    let said = home.run(&words(&[]));
    assert!(said.contains("Submitted 4 tasks"), "{said}");
    assert!(home.try_run(&["wait", "1-4"]).status.success());
    let mut logs: Vec<String> =
        (1..=4).map(|id: u32| home.run(&["logs", &id.to_string()])).collect();
    logs.sort_unstable();
    let expected = ["lr=1e-3 seed=1", "lr=1e-3 seed=2", "lr=1e-4 seed=1", "lr=1e-4 seed=2"];
    assert_eq!(logs, expected.map(|words| format!("{words} {{other}}\n")));
    assert_eq!(home.show(4)["name"], "echo lr=1e-4 seed=2");
    let unused = home.try_run(&["sweep", "--grid", "lr=1", "--", "true"]);
    assert_eq!(unused.status.code(), Some(2));
    assert!(text(&unused.stderr).contains("{lr} does not occur"), "{}", text(&unused.stderr));
    let unknown = home.try_run(&["sweep", "--grid", "lr=1,2", "--", "echo", "{lr}", "{foo}"]);
    assert_eq!(unknown.status.code(), Some(2));
    let said = text(&unknown.stderr);
    assert!(said.contains("{foo} is no parameter") && said.contains("{{foo}}"), "{said}");
    let shell = ["sweep", "--dry-run", "--grid", "lr=1", "--", "sh", "-c", "echo ${HOME} {lr}"];
    assert!(home.run(&shell).starts_with("sh -c echo ${HOME} 1\n"));
}

#[test]
fn a_sweep_that_is_refused_in_the_middle_says_what_was_submitted() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--max-user-pending", "3"]);
    let words = ["--hold", "--grid", "lr=1,2,3,4,5", "--", "echo", "{lr}"];
    let part = home.try_run(&[&["sweep"][..], &words].concat());
    let (out, said) = (text(&part.stdout), text(&part.stderr));
    assert_eq!(part.status.code(), Some(1), "{said}");
    assert!(out.contains("Submitted 3 tasks") && said.contains("3 of 5 tasks"), "{out}{said}");
    assert!(said.contains("(1-3)") && said.contains("coloc cancel 1-3"), "{said}");
    home.run(&["cancel", "1-3"]);
    let part = home.try_run(&[&["sweep", "--json"][..], &words].concat());
    let done: serde_json::Value = serde_json::from_slice(&part.stdout).expect("JSON");
    let ids: Vec<_> = done["tasks"].as_array().expect("tasks").iter().map(|t| &t["id"]).collect();
    assert_eq!(ids, [4, 5, 6]);
    let error: serde_json::Value = serde_json::from_slice(&part.stderr).expect("JSON");
    assert_eq!(error["error"]["code"], "over_limit");
    let none = home.try_run(&[&["sweep", "--json"][..], &words].concat());
    assert!(none.stdout.is_empty() && !text(&none.stderr).contains("submitted ("));
}

#[test]
fn a_list_has_a_task_a_row() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let list = home.path().join("runs.csv");
    std::fs::write(&list, "model,lr\nresnet,0.1\n\"a,b\",0.2\n").expect("a file");
    let list = list.to_str().expect("text");
    let answer = home.run(&["sweep", "--list", list, "--json", "--", "echo", "{model} {lr}"]);
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    assert_eq!(answer["tasks"][1]["parameters"]["model"], "a,b");
    assert!(home.try_run(&["wait", "1-2"]).status.success());
    assert_eq!(home.run(&["logs", "2"]), "a,b 0.2\n");
}

const SUMMARY: &str = "\
----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Linear-1                 [-1, 4096]      16,781,312
              ReLU-2                 [-1, 4096]               0
            Linear-3                   [-1, 10]          40,970
================================================================
Total params: 16,822,282
";

#[test]
fn a_summary_becomes_an_estimate() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let file = home.path().join("model.txt");
    std::fs::write(&file, SUMMARY).expect("a file");
    let file = file.to_str().expect("text");
    let estimated = |batch: &str| {
        let id = home.submit(&["--hold", "--model-summary", file, "--batch", batch, "--", "true"]);
        home.show(id)["estimate_bytes"].as_u64().expect("an estimate")
    };
    let (small, large) = (estimated("8"), estimated("100000"));
    assert!(small > 200 << 20, "16.8 million parameters with Adam's state: {small}");
    assert!(large > small + (1 << 30), "a larger batch needs more: {small}, {large}");
    std::fs::write(file, "nonsense").expect("a file");
    let refused = home.try_run(&["submit", "--model-summary", file, "--batch", "8", "--", "true"]);
    assert_eq!(refused.status.code(), Some(2));
}

/// A training that must not be idle for a minute.
fn train(home: &Home, wish: &str, seconds: &str) -> u32 {
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let words = [wish, "--idle-timeout", "60s", "--", coloc, "emu", "train", "--memory", "2G"];
    home.submit(&[&words[..], &["--seconds", seconds]].concat())
}

#[test]
fn a_config_becomes_an_estimate() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let file = home.path().join("config.json");
    let config = r#"{"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
        "vocab_size": 50257, "n_positions": 1024}"#;
    std::fs::write(&file, config).expect("a file");
    let file = file.to_str().expect("text");
    let submit = |more: &[&str]| {
        let id = home.submit(&[&["--hold", "--hf-config", file], more, &["--", "true"]].concat());
        let shown = home.show(id);
        assert_eq!(shown["estimator"], "replay", "{shown}");
        let booked = shown["estimate_bound_bytes"].as_u64();
        assert!(booked > shown["estimate_bytes"].as_u64(), "{shown}");
        shown["estimate_bytes"].as_u64().expect("an estimate")
    };
    let plain = submit(&["--batch", "2", "--seq", "128"]);
    assert!(plain > 4 * 4 * 124_000_000, "124 million parameters with AdamW's state: {plain}");
    assert!(submit(&["--batch", "8", "--seq", "128"]) > plain, "a larger batch needs more");
    assert!(submit(&["--batch", "2", "--seq", "512"]) > plain, "longer samples need more");
    let halved = ["--batch", "2", "--seq", "128", "--precision", "bf16", "--optimizer", "sgd"];
    assert!(submit(&halved) < plain, "half of the bits, and no state");
    let divided = ["--batch", "2", "--seq", "128", "--zero", "1", "--gpus", "1"];
    let refused =
        home.try_run(&[&["submit", "--hf-config", file], &divided[..], &["--", "true"]].concat());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("give --gpus, at least 2"));
    let flagged =
        [&["submit", "--parsable", "--hold", "--hf-config", file], &halved[..], &["--", "true"]];
    let flagged = home.try_run(&flagged.concat());
    assert!(String::from_utf8_lossy(&flagged.stderr).contains("16 bits was never compared"));
    let id = String::from_utf8_lossy(&flagged.stdout).trim().parse().expect("an id");
    let shown = home.show(id);
    assert_eq!(shown["estimate_flags"][0]["kind"], "unverified", "{shown}");
    let text = home.try_run(&["show", &id.to_string()]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("unverified: training in 16 bits"), "{text}");
    let lost = home.try_run(&["submit", "--env", "carma", "--", "true"]);
    assert!(String::from_utf8_lossy(&lost.stderr).contains("give --model-summary"));
    for broken in ["{", "{\"model_type\": \"abacus\"}"] {
        std::fs::write(file, broken).expect("a file");
        let refused = home.try_run(&["submit", "--hf-config", file, "--", "true"]);
        assert_eq!(refused.status.code(), Some(2), "{broken}");
    }
}

#[test]
fn who_holds_gpus_and_does_nothing_is_stopped() {
    let home = Home::new(&["--emulate", "2xA100-40GB", "--time-scale", "50"]);
    let idle = home.submit(&["--exclusive", "--idle-timeout", "60s", "--", "sleep", "60"]);
    let works = train(&home, "--exclusive", "400");
    home.wait_for_state(idle, "timed_out");
    let task = home.show(idle);
    assert!(task["reason"].as_str().is_some_and(|why| why.contains("idle for")), "{task}");
    home.wait_for_state(works, "completed");
}

/// What neighbours do is not what it does.
#[test]
fn who_does_nothing_beside_others_is_stopped_too() {
    let flags = ["--emulate", "1xA100-40GB", "--time-scale", "50", "--share", "streams"];
    let home = Home::new(&flags);
    let works = train(&home, "--gpu-mem=3G", "4000");
    home.wait_for_state(works, "running");
    let idle = home.submit(&["--gpu-mem", "1G", "--idle-timeout", "60s", "--", "sleep", "60"]);
    let also_works = train(&home, "--gpu-mem=3G", "300");
    home.wait_for_state(idle, "timed_out");
    home.wait_for_state(also_works, "completed");
    assert_eq!(home.state(works), "running");
}
