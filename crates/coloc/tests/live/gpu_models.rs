//! Tasks that want GPUs of a kind, where there are several.

use super::home::{Home, text};
use serde_json::{Value, json};

/// The GPUs that a task is on.
fn on(home: &Home, id: u32) -> Value {
    home.wait_for_state(id, "running");
    home.show(id)["gpu_ids"].clone()
}

fn is_one_of(gpus: &Value, some: [u32; 2]) -> bool {
    some.iter().any(|gpu| *gpus == json!([gpu]))
}

const T4S: [u32; 2] = [1, 2];
const A100S: [u32; 2] = [0, 3];

#[test]
fn a_task_runs_on_the_kinds_that_it_names_and_on_no_other() {
    let mut home = Home::new(&["--emulate", "1xA100-80GB,2xT4-16GB,1xA100-40GB"]);
    let submit = |home: &Home, flags: &[&str]| {
        home.submit(&[&["--exclusive"], flags, &["--", "sleep", "600"]].concat())
    };
    let first = submit(&home, &["--gpu-kind", "t4"]);
    let second = submit(&home, &["--gres", "gpu:T4:1"]);
    for id in [first, second] {
        assert!(is_one_of(&on(&home, id), T4S), "{}", on(&home, id));
    }
    let third = submit(&home, &["--gpu-kind", "T4-16GB"]);
    let any = submit(&home, &["-C", "a100|h100"]);
    assert!(is_one_of(&on(&home, any), A100S));
    let other = submit(&home, &["--gpu-kind", "a100_40gb,a100-80gb"]);
    assert!(is_one_of(&on(&home, other), A100S));
    assert_eq!(home.state(third), "pending", "an A100 was free before");
    home.run(&["cancel", &other.to_string()]);
    home.wait_for_state(other, "cancelled");
    let why = home.run(&["why", &third.to_string()]);
    assert!(why.contains("does not run on"), "{why}");
    assert_eq!(home.show(third)["gpu_kinds"], json!(["T4-16GB"]));
    // It is known after a restart and under another policy, until a user changes it.
    home.kill();
    home.boot();
    assert_eq!(home.state(third), "pending");
    home.run(&["config", "reload"]);
    assert_eq!(home.state(third), "pending");
    home.run(&["update", &third.to_string(), "--gpu-kind", "any"]);
    assert!(is_one_of(&on(&home, third), A100S));
    for (flags, word) in [
        (&["--gpu-kind", "v100"][..], "there are 0; here are A100-40GB, A100-80GB, T4-16GB"),
        (&["--gpu-kind", "t4", "-G", "3"], "there are 2"),
        (&["--gpu-kind", "t4", "--gpu-mem", "20G"], "the largest that 1 at once have is 16.0 GiB"),
        (&["--gpu-kind", "a100", "-G", "2", "--gpu-mem", "60G"], "is 40.0 GiB"),
    ] {
        let told = home.try_run(&[&["submit"], flags, &["--", "true"]].concat());
        assert!(text(&told.stderr).contains(word), "{}", text(&told.stderr));
    }
}
