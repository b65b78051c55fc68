//! Live and simulated makespans of the 90-task trace, within 5 %.
//!
//! Which tasks share a GPU depends on moments, and starting and ending a process takes some 40 ms: at 50 times the
//! speed of life that is 2 s, which the policy forgives. A second try is granted, and said.

use crate::run::{Failed, cargo};
use std::process::Command;

/// How many per cent the makespans may differ by.
const TOLERANCE: &str = "5";

/// A policy, and how many seconds of tasks pass in one.
type Run<'a> = (&'a str, &'a str);

/// They take four and nine minutes, and mostly sleep.
const RUNS: [Run<'_>; 2] = [("exclusive", "200"), ("collocated", "50")];

const TRIES: u32 = 2;

pub(crate) fn check() -> Result<(), Failed> {
    cargo(&["build", "--release", "--package", "coloc"])?;
    let mut left = RUNS.to_vec();
    for again in (0..TRIES).rev() {
        left = disagreeing(&left);
        for (policy, ..) in &left {
            println!("\nxtask: live and simulated did not agree ({policy}); tries left: {again}");
        }
    }
    match left.first() {
        Some((policy, ..)) => Err(Failed { step: format!("coloc agree --policies {policy}") }),
        None => Ok(()),
    }
}

/// Plays all at once, and says which differ too much.
fn disagreeing<'a>(runs: &[Run<'a>]) -> Vec<Run<'a>> {
    let start = |&(policy, scale): &Run<'a>| {
        println!(
            "\n=== coloc agree --policies {policy} --time-scale {scale} --tolerance {TOLERANCE}"
        );
        let mut agree = Command::new(env!("CARGO"));
        agree.args(["run", "--release", "--quiet", "--", "agree"]);
        agree.args(["--policies", policy, "--time-scale", scale, "--tolerance", TOLERANCE]);
        ((policy, scale), agree.spawn())
    };
    let running: Vec<_> = runs.iter().map(start).collect();
    let ended = running.into_iter().map(|(run, child)| {
        (run, child.and_then(|mut child| child.wait()).is_ok_and(|status| status.success()))
    });
    ended.filter(|(_, agrees)| !agrees).map(|(run, _)| run).collect()
}
