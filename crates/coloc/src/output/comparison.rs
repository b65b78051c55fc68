//! Several policies side by side, as people read them on a terminal.

use crate::output::summary::{energy, span};
use crate::output::table::{bar, whole};
use crate::verbs::compare::PolicyRun;
use coloc_model::Fleet;
use coloc_sim::Summary;

const BAR_WIDTH: usize = 40;
/// On a narrow terminal: memory, SM activity, how many are done, the 95th percentile, the wait.
const SPARE: [usize; 5] = [8, 7, 1, 4, 5];

/// The table and the two bars that matter most.
pub(crate) fn render(trace: &str, fleet: &Fleet, runs: &[PolicyRun]) -> String {
    let header = [
        "policy",
        "done",
        "makespan",
        "mean JCT",
        "p95 JCT",
        "mean wait",
        "OOMs",
        "SMACT",
        "memory",
        "energy",
    ];
    let first = runs.first().map(|run| &run.summary);
    let rows = runs.iter().map(|run| row(run, first));
    let charts = [
        chart("makespan", runs, |summary| summary.makespan_s),
        chart("mean completion time", runs, |summary| summary.jct_mean_s),
    ];
    format!(
        "{trace} on {fleet}, predicted by the model\n\n{}\n\n{}",
        whole(&header, rows, &SPARE),
        charts.join("\n\n")
    )
}

fn row(run: &PolicyRun, first: Option<&Summary>) -> Vec<String> {
    let summary = &run.summary;
    let against = |value: f64, of: fn(&Summary) -> f64| match first.map(of) {
        Some(base) if base > 0.0 && base != value => {
            format!(" {:+.0}%", (value / base - 1.0) * 100.0)
        }
        _ => String::new(),
    };
    let timed =
        |of: fn(&Summary) -> f64| format!("{}{}", span(of(summary)), against(of(summary), of));
    vec![
        run.name.clone(),
        format!("{}/{}", summary.completed, summary.tasks),
        timed(|s| s.makespan_s),
        timed(|s| s.jct_mean_s),
        timed(|s| s.jct_p95_s),
        span(summary.wait_mean_s),
        summary.oom_count.to_string(),
        format!("{:.2}", summary.smact_mean),
        format!("{:.1} GiB", summary.memory_mean_bytes / (1u64 << 30) as f64),
        format!("{}{}", energy(summary.energy_j), against(summary.energy_j, |s| s.energy_j)),
    ]
}

fn chart(what: &str, runs: &[PolicyRun], of: fn(&Summary) -> f64) -> String {
    let longest =
        runs.iter().map(|run| of(&run.summary)).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let width = runs.iter().map(|run| run.name.chars().count()).max().unwrap_or(0);
    let lines = runs.iter().map(|run| {
        let value = of(&run.summary);
        format!("  {:width$}  {} {}", run.name, bar(value / longest, BAR_WIDTH), span(value))
    });
    format!("{what}\n{}", lines.collect::<Vec<_>>().join("\n"))
}
