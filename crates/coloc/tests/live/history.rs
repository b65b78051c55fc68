//! What a command held before is what its next run is booked with.

use super::home::Home;

#[test]
fn a_command_is_booked_with_what_it_held_before() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let words = ["--", coloc, "emu", "train", "--memory", "6G", "--seconds", "200"];
    let first = home.submit(&words);
    assert!(home.show(first)["estimator"].is_null(), "nothing is known of it yet");
    home.wait_for_state(first, "completed");
    let seen = home.show(first)["peak_bytes"].as_u64().unwrap();
    assert!(seen > 0, "the monitor looked at it");

    let again = home.submit(&words);
    let shown = home.show(again);
    assert_eq!(shown["estimator"], "history", "{shown}");
    assert_eq!(shown["estimate_bytes"].as_u64(), Some(seen));
    assert!(shown["estimate_bound_bytes"].as_u64() > Some(seen), "{shown}");

    // The same can be asked without submitting anything.
    let state = home.path().join("state");
    let state = state.to_str().expect("text");
    let ask = |who, more: &[&str]| {
        let asked = ["estimate", "--json", "--estimator", who, "--state", state];
        home.try_run(&[&asked, more].concat())
    };
    let told = |output: std::process::Output| -> serde_json::Value {
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let remembered = told(ask("history", &words));
    assert_eq!(remembered["peak_mib"].as_f64(), Some(seen as f64 / f64::from(1 << 20)));
    assert_eq!(told(ask("ladder", &words))["estimator"], "history");
    let layers = told(ask("ladder", &["--task", "resnet", "--", "never", "ran"]));
    assert_eq!(layers["estimator"], "replay");
    assert_eq!(layers["asked"][0]["estimator"], "history", "{layers}");
    assert!(layers["asked"][0]["declined"].is_string(), "{layers}");
    let unknown: [&[&str]; 2] = [&["--", "never", "ran"], &[]];
    for command in unknown {
        assert_eq!(ask("history", command).status.code(), Some(2), "{command:?}");
        assert_eq!(ask("ladder", command).status.code(), Some(2), "{command:?}");
    }

    // A task that says what it needs is believed.
    let mut said = vec!["--gpu-mem", "9G"];
    said.extend(words);
    let told = home.submit(&said);
    assert!(home.show(told)["estimator"].is_null());
}

const SUMMARY: &str = "\
----------------------------------------------------------------
        Layer (type)               Output Shape         Param #
================================================================
            Linear-1                   [-1, 10]          40,970
================================================================
Total params: 40,970
";

/// What tasks held beside what their layers tell is the constant of the software that they run in.
#[test]
fn an_environment_is_learned_from_tasks_that_ran() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let model = home.path().join("model.txt");
    std::fs::write(&model, SUMMARY).expect("a file");
    let model = ["--model-summary", model.to_str().expect("text"), "--batch", "8", "--"];
    let coloc = env!("CARGO_BIN_EXE_coloc");
    let train = [coloc, "emu", "train", "--memory", "6G", "--seconds", "200"];
    let words = [&model[..], &train].concat();
    // The second is booked by the history, and teaches all the same.
    for basis in ["estimated", "history"] {
        let id = home.submit(&words);
        let shown = home.show(id);
        assert_eq!(
            (&shown["estimator"], &shown["memory_basis"]),
            (&"replay".into(), &basis.into())
        );
        home.wait_for_state(id, "completed");
    }
    let state = home.path().join("state");
    let learn = ["estimate", "learn", "--env", "mine", "--dry-run", "--from-history", "--state"];
    let learned = home.json(&[&learn[..], &[state.to_str().expect("text")]].concat());
    assert_eq!(learned["rows"], 2, "{learned}");
    let run = &learned["runs"][0];
    let beside = run["measured_mib"].as_f64().zip(run["replayed_mib"].as_f64());
    let beside = beside.map(|(measured, replayed)| (measured - replayed).round());
    assert_eq!(learned["base_mib"].as_f64(), beside, "{learned}");
    assert!(learned["file"].is_null(), "nothing is stored in a dry run");
}
