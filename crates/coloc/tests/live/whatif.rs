//! A daemon's own past, played again under other policies.

use super::home::{Home, coloc, text};
use serde_json::Value;

/// Three trainings that a GPU can take at once, as a daemon ran them.
fn three_trainings() -> Home {
    let home = Home::new(&["--emulate", "1xA100-40GB", "--time-scale", "20"]);
    let program = env!("CARGO_BIN_EXE_coloc");
    for _ in 0..3 {
        let training = [
            "--gpu-mem",
            "4G",
            "-J",
            "small",
            "--",
            program,
            "emu",
            "train",
            "--memory",
            "4G",
            "--seconds",
            "60",
            "--sm",
            "0.3",
        ];
        home.submit(&training);
    }
    assert!(home.try_run(&["wait", "1-3"]).status.success());
    home
}

fn makespan(answer: &Value, policy: &str) -> f64 {
    let rows = answer["policies"].as_array().expect("policies");
    let row = rows.iter().find(|row| row["name"] == policy);
    row.and_then(|row| row["makespan_s"].as_f64()).unwrap_or_else(|| panic!("{policy}: {answer}"))
}

#[test]
fn the_past_is_played_again_under_other_policies() {
    let mut home = three_trainings();
    let (page, csv) = (home.path().join("page.html"), home.path().join("trace.csv"));
    let (page_name, csv_name) = (page.display().to_string(), csv.display().to_string());
    let asked = ["whatif", "--policies", "exclusive", "--html", &page_name, "-o", &csv_name];
    let answer = home.json(&asked);
    assert_eq!(answer["schema"], 1);
    assert_eq!(
        (&answer["observed"]["tasks"], &answer["observed"]["completed"]),
        (&3.into(), &3.into())
    );
    let (ran, alone) = (makespan(&answer, "as it ran"), makespan(&answer, "exclusive"));
    assert!(ran < alone, "sharing was faster: {answer}");
    assert!(alone >= 3.0 * 50.0, "three trainings of a minute, one after the other: {answer}");
    assert!(std::fs::metadata(&page).expect("a page").len() > 10_000);
    // The trace is one like any other.
    let simulated = coloc()
        .args(["simulate", "--fleet", "1xA100-40GB", "--json", "--trace", &csv_name])
        .output()
        .expect("the program runs");
    let simulated: Value = serde_json::from_slice(&simulated.stdout).expect("JSON");
    assert_eq!(simulated["makespan_s"].as_f64(), Some(alone));
    // Other GPUs: the old ones stay for comparison.
    let other = home.json(&["whatif", "--fleet", "3xA100-40GB", "--policies", "exclusive"]);
    assert!(makespan(&other, "exclusive") < alone / 2.0, "{other}");
    assert_eq!(makespan(&other, "as it ran, on 1xA100-40GB"), ran);
    // A preset that goes by published estimates knows none of these tasks, but what they held.
    let carma = home.json(&["whatif", "--policies", "carma-v2"]);
    assert!(makespan(&carma, "carma-v2") > 0.0);
    // From the files alone, beside the daemon and without it.
    let state = home.path().join("state").display().to_string();
    let read = || {
        let mut answer = home_less(&["whatif", "--state", &state, "--policies", "exclusive"]);
        answer.as_object_mut().expect("an object").remove("since_s");
        answer
    };
    let beside = read();
    assert_eq!((makespan(&beside, "as it ran"), makespan(&beside, "exclusive")), (ran, alone));
    home.stop();
    assert_eq!(read(), beside);
}

/// An answer that needs no daemon.
fn home_less(arguments: &[&str]) -> Value {
    let output = coloc().args(arguments).arg("--json").output().expect("the program runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn without_a_past_there_is_nothing_to_play() {
    let home = Home::new(&["--emulate", "1xA100-40GB"]);
    let empty = home.try_run(&["whatif", "--since", "2d"]);
    assert_eq!(empty.status.code(), Some(2));
    assert!(
        text(&empty.stderr).contains("--since: no task that was submitted"),
        "{}",
        text(&empty.stderr)
    );
    let nowhere = coloc().args(["whatif", "--state", "/nowhere"]).output().expect("runs");
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("/nowhere/journal.db"), "{}", text(&nowhere.stderr));
}
