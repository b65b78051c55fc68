//! The figures of a run as people read them.

use crate::error::CliError;
use crate::output::print_text;
use coloc_model::{Bytes, Millis};
use coloc_sim::{Simulation, Summary};

/// Seconds as a span with its unit.
pub(crate) fn span(seconds: f64) -> String {
    Millis::from_secs_f64(seconds).to_string()
}

/// Joules as kWh or Wh.
pub(crate) fn energy(joules: f64) -> String {
    let wh = joules / 3600.0;
    if wh >= 1000.0 { format!("{:.2} kWh", wh / 1000.0) } else { format!("{wh:.0} Wh") }
}

/// Prints one run.
pub(crate) fn print(
    summary: &Summary,
    simulation: &Simulation,
    wall_s: f64,
) -> Result<(), CliError> {
    let Summary { tasks, completed, failed, oom_count, preemptions, .. } = *summary;
    let above = (summary.makespan_s / summary.makespan_bound_s - 1.0) * 100.0;
    let lines = [
        format!("{tasks} tasks on {}: {completed} completed, {failed} failed", simulation.fleet),
        format!(
            "  makespan        {} ({above:.0} % above the fluid bound of {})",
            span(summary.makespan_s),
            span(summary.makespan_bound_s)
        ),
        format!(
            "  completion time {} mean, {} median, {} p95",
            span(summary.jct_mean_s),
            span(summary.jct_p50_s),
            span(summary.jct_p95_s)
        ),
        format!("  waiting         {} mean", span(summary.wait_mean_s)),
        format!(
            "  slowdown        {:.2}x with waiting, {:.2}x on the GPU",
            summary.slowdown_mean, summary.run_slowdown_mean
        ),
        format!("  out of memory   {oom_count} times, {preemptions} preemptions"),
        format!(
            "  GPUs            SM activity {:.2}, {} of memory in use, {}",
            summary.smact_mean,
            Bytes(summary.memory_mean_bytes as u64),
            energy(summary.energy_j)
        ),
        format!("  fairness        Jain index {:.3} over users", summary.jain_index),
        format!("Predicted by the model in {:.3} s; nothing was measured.", wall_s),
    ];
    print_text(&lines.join("\n"))
}
