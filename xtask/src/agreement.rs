//! Live and simulated makespans of the 90-task trace: within 5 % with one task a GPU, within 8 % collocated.
//!
//! Who shares with whom depends on moments: in the simulator alone, arrivals that are up to 20 s late move the
//! collocated makespan by -1.4 to +5.2 %. At 200 times the speed of life that is a tenth of a second. So sharing is played
//! at 100, held to what the simulator itself varies by and the 3 % of a run, and a second try is granted, and said.

use crate::run::{Failed, cargo};
use std::process::Command;

/// A policy, how many seconds of tasks pass in one, and how many per cent the makespans may differ by.
type Run<'a> = (&'a str, &'a str, &'a str);

/// Both take four minutes and mostly sleep.
const RUNS: [Run<'_>; 2] = [("exclusive", "200", "5"), ("collocated", "100", "8")];

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
    let start = |&(policy, scale, tolerance): &Run<'a>| {
        println!(
            "\n=== coloc agree --policies {policy} --time-scale {scale} --tolerance {tolerance}"
        );
        let mut agree = Command::new(env!("CARGO"));
        agree.args(["run", "--release", "--quiet", "--", "agree"]);
        agree.args(["--policies", policy, "--time-scale", scale, "--tolerance", tolerance]);
        ((policy, scale, tolerance), agree.spawn())
    };
    let running: Vec<_> = runs.iter().map(start).collect();
    let ended = running.into_iter().map(|(run, child)| {
        (run, child.and_then(|mut child| child.wait()).is_ok_and(|status| status.success()))
    });
    ended.filter(|(_, agrees)| !agrees).map(|(run, _)| run).collect()
}
