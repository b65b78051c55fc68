//! Copies of a command on one GPU, measured, against what the model says.

use super::home::{Home, coloc, text};
use super::http::ask;
use serde_json::Value;

const WORKLOAD: &str = "resnet18_cifar100_50e_1";

fn rows(answer: &Value) -> &Vec<Value> {
    answer["experiments"].as_array().unwrap_or_else(|| panic!("experiments in {answer}"))
}

fn slowdown(answer: &Value, share: &str, copies: u64) -> f64 {
    let meant = |row: &&Value| row["share"] == share && row["copies"] == copies;
    let row =
        rows(answer).iter().find(meant).unwrap_or_else(|| panic!("{share} x{copies}: {answer}"));
    row["slowdown_mean"].as_f64().unwrap_or_else(|| panic!("a slowdown in {row}"))
}

/// Of how many kinds of tasks the scheduler was taught.
fn lessons(home: &Home) -> Value {
    ask(home, "GET /v1/status", "", b"").json()["lessons"].clone()
}

/// The emulated GPU as its driver tells of it.
fn gpu(home: &Home) -> Value {
    let fleet = home.path().join("state/emulated");
    let told = coloc()
        .args(["gpus", "--json"])
        .env("COLOC_EMU_DIR", &fleet)
        .env("LD_LIBRARY_PATH", fleet.join("lib"))
        .output()
        .expect("the program runs");
    let told: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    told["gpus"][0].clone()
}

#[test]
fn copies_slow_each_other_as_the_model_says_and_the_scheduler_is_told() {
    let mut home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let program = env!("CARGO_BIN_EXE_coloc");
    let live = [
        "collocate",
        "--json",
        "--copies",
        "1,3",
        "--share",
        "streams,mps,mig",
        "--warmup",
        "0.5",
        "--seconds",
        "2",
        "--",
        program,
        "emu",
        "train",
        "--profile",
        WORKLOAD,
    ];
    let measured: Value = serde_json::from_str(&home.run(&live)).expect("JSON");
    assert_eq!((&measured["schema"], &measured["emulated"]), (&1.into(), &true.into()));
    let model = [
        "collocate",
        "--json",
        "--copies",
        "1,3",
        "--share",
        "streams,mps,mig",
        "--workload",
        WORKLOAD,
    ];
    let model = coloc().args(model).output().expect("the program runs");
    let model: Value = serde_json::from_slice(&model.stdout).expect("JSON");
    for share in ["streams", "mps", "mig"] {
        assert!((slowdown(&measured, share, 1) - 1.0).abs() < 0.12, "{measured}");
        let (live, said) = (slowdown(&measured, share, 3), slowdown(&model, share, 3));
        assert!((live / said - 1.0).abs() < 0.12, "{share}: {live} measured, {said} by the model");
    }
    let three = rows(&measured).iter().find(|row| row["copies"] == 3).expect("a row");
    let alone = &measured["alone"]["gauge"];
    let ratio = three["memory_mib"].as_f64().expect("memory")
        / alone["memory_mib"].as_f64().expect("memory");
    assert!((2.9..3.1).contains(&ratio), "three times the memory: {measured}");
    let lesson = &measured["learned"][0];
    assert_eq!(lesson["sm"], alone["smact"], "{measured}");
    assert!(lesson["interference"]["sensitivity"].as_f64().is_some_and(|s| s > 0.0), "{measured}");
    assert_eq!(gpu(&home)["mig"]["mode"], "disabled", "the GPU is whole again");
    // It is kept: the next daemon has learned it too.
    assert_eq!(lessons(&home), 1);
    home.kill();
    home.boot();
    assert_eq!(lessons(&home), 1);
}

#[test]
fn a_pair_and_what_goes_wrong_are_told() {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "50"]);
    let program = env!("CARGO_BIN_EXE_coloc");
    // 30 GiB and 30 GiB do not fit on one GPU.
    let other = format!("{program} emu train --memory 30G --seconds 900 --sm 0.4");
    let pair = [
        "collocate",
        "--json",
        "--copies",
        "1",
        "--share",
        "mps,mig",
        "--warmup",
        "0.2",
        "--seconds",
        "1",
        "--no-learn",
        "--with-command",
        &other,
        "--",
        program,
        "emu",
        "train",
        "--memory",
        "30G",
        "--seconds",
        "900",
        "--sm",
        "0.4",
    ];
    let answer: Value = serde_json::from_str(&home.run(&pair)).expect("JSON");
    let errors: Vec<&str> = rows(&answer).iter().filter_map(|row| row["error"].as_str()).collect();
    assert_eq!(errors.len(), 2, "{answer}");
    assert!(errors[0].contains("ended with"), "{answer}");
    assert!(answer["learned"].as_array().is_some_and(Vec::is_empty), "{answer}");
    assert!(answer["with_alone"]["rate"].as_f64().is_some_and(|rate| rate > 0.0), "{answer}");
    let failing = home.try_run(&["collocate", "--", "sh", "-c", "echo no such file >&2; exit 3"]);
    assert_eq!(failing.status.code(), Some(1));
    assert!(text(&failing.stderr).contains("no such file"), "{}", text(&failing.stderr));
    // The daemon that a variable names is not asked, and a flag must be meant.
    let own = [
        "collocate",
        "--emulate",
        "1xA100-40GB",
        "--time-scale",
        "50",
        "--copies",
        "1",
        "--share",
        "streams",
    ];
    let quick = ["--warmup", "0", "--seconds", "0.2", "--", "sleep", "0.1"];
    let told = home.run(&[&own[..], &quick].concat());
    assert!(told.contains("emulated"), "{told}");
    let both = home.try_run(&[&own[..], &["--socket", "/x"], &quick].concat());
    assert!(text(&both.stderr).contains("give one"), "{}", text(&both.stderr));
    let odd = home.try_run(&["collocate", "--progress", "step", "--", "true"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("needs a group"), "{}", text(&odd.stderr));
}
