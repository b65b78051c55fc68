//! What `deploy/` has for Prometheus is checked by Prometheus' own tool.

use crate::run::{Failed, complaint, succeeds};

const CHECKS: [&[&str]; 3] = [
    &["check", "rules", "deploy/prometheus/coloc.rules.yml"],
    &["test", "rules", "deploy/prometheus/coloc.rules.test.yml"],
    &["check", "config", "deploy/prometheus/prometheus.yml"],
];

pub(crate) fn check() -> Result<(), Failed> {
    if !succeeds("promtool", &["--version"]) {
        println!("SKIPPED: no promtool, so the rules in deploy/ are not checked");
        return Ok(());
    }
    for words in CHECKS {
        let step = format!("promtool {}", words.join(" "));
        println!("\n=== {step}");
        if let Some(complaint) = complaint("promtool", words) {
            println!("{complaint}");
            return Err(Failed { step });
        }
    }
    Ok(())
}
