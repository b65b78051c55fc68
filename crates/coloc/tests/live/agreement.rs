//! Live and simulated, side by side. The whole trace at the speed that counts is a step of its own in `cargo xtask
//! test`; here a few tasks show that the comparison compares.

use super::home::{coloc, text};
use serde_json::Value;
use std::path::Path;

fn agree(tolerance: &str, jobs: &Path) -> (Option<i32>, Value, String) {
    let few = ["agree", "--tasks", "4", "--time-scale", "1000", "--fleet", "2xA100-40GB"];
    let output =
        coloc().args(few).args(["--json", "--tolerance", tolerance, "--jobs"]).arg(jobs).output();
    let output = output.expect("the program runs");
    let errors = text(&output.stderr);
    let answer = serde_json::from_slice(&output.stdout);
    (output.status.code(), answer.unwrap_or_else(|_| panic!("JSON: {errors}")), errors)
}

#[test]
fn a_trace_is_played_live_and_simulated() {
    // Milliseconds are seconds at this speed: that all goes as it should is seen, not how exactly.
    let folder = tempfile::tempdir().expect("a temporary directory");
    let jobs = folder.path().join("jobs.csv");
    let (code, answer, errors) = agree("1000", &jobs);
    assert_eq!(code, Some(0), "{errors}");
    let written = std::fs::read_to_string(&jobs).expect("a line a task");
    let rows: Vec<Vec<&str>> = written.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 4, "{written}");
    assert!(rows.iter().flatten().all(|cell| !cell.is_empty()), "{written}");
    for (index, policy) in ["exclusive", "collocated"].into_iter().enumerate() {
        let row = &answer["policies"][index];
        assert_eq!(row["name"], policy);
        assert_eq!(
            (&row["live"]["completed"], &row["simulated"]["completed"]),
            (&4.into(), &4.into())
        );
        let seconds = |side: &str| row[side]["makespan_s"].as_f64().expect("a makespan");
        let (live, simulated) = (seconds("live"), seconds("simulated"));
        assert!(live > 0.9 * simulated, "nobody is faster than the model: {row}");
        let difference = row["makespan_difference"].as_f64().expect("a difference");
        assert!((difference - (live / simulated - 1.0)).abs() < 1e-9, "{row}");
    }
    let (code, answer, errors) = agree("0", &jobs);
    assert_eq!((code, &answer["agrees"]), (Some(1), &Value::from(false)));
    assert!(errors.contains("differ by more than 0 %"), "{errors}");
}
