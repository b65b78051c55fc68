//! Answers for people: where the memory goes, as a bar.

use super::eval::Times;
use super::fit::Fit;
use crate::output::terminal;
use coloc_estimate::dataset::Scores;
use coloc_estimate::{Breakdown, Estimate, Promise};
use coloc_model::Bytes;
use std::fmt::Write;

/// Columns of a bar in a pipe, and at most: longer ones tell no more.
const BAR: usize = 60;
const LONGEST_BAR: usize = 120;
/// What stands around a bar.
const FRAME: usize = "  []".len();
/// One letter per part, so that the bar reads without colours.
const LETTERS: [char; 7] = ['c', 'w', 'g', 'o', 'a', 's', 'f'];

pub(super) fn estimate(estimate: &Estimate, device: Option<(Bytes, Fit)>) -> String {
    let mut text = String::new();
    let (peak, bound) = (mib(estimate.peak), mib(estimate.bound));
    let fits = device.map(|(device, fit)| (mib(device), fit));
    let widths = [&peak, &bound].into_iter().chain(fits.as_ref().map(|(device, _)| device));
    let width = widths.map(String::len).max().unwrap_or(0).max(10);
    let by = estimate.estimator;
    let _ = writeln!(text, "peak   {peak:>width$}   the most expected on each GPU, by {by}");
    let booked = match estimate.promise {
        Promise::Guess | Promise::Nothing => "",
        _ => "; this is what gets booked",
    };
    let _ = writeln!(text, "bound  {bound:>width$}   {}{booked}", estimate.promise);
    if let Some((device, fit)) = fits {
        let _ = writeln!(text, "device {device:>width$}   {}", fit.in_words());
    }
    if let Some(utilization) = estimate.utilization {
        let _ = writeln!(
            text,
            "busy   SM activity {}, SM occupancy {}, memory interface {} (predicted)",
            utilization.smact, utilization.smocc, utilization.dram
        );
    }
    if let Some(breakdown) = estimate.breakdown {
        let room = terminal::width().map_or(BAR, |width| width.saturating_sub(FRAME));
        text.push_str(&bar(&parts(breakdown), room.clamp(1, LONGEST_BAR)));
    }
    for flag in &estimate.flags {
        let kind = format!("{:?}", flag.kind);
        let _ = writeln!(text, "flag   {kind}: {}", flag.detail);
    }
    text
}

fn parts(breakdown: Breakdown) -> [(&'static str, u64); 7] {
    let usage = breakdown.usage;
    [
        ("context", breakdown.context),
        ("weights", usage.weights),
        ("gradients", usage.gradients),
        ("optimizer", usage.optimizer),
        ("activations", usage.activations),
        ("workspace", usage.workspace),
        ("cached, fragmented", usage.fragmentation),
    ]
}

fn bar(parts: &[(&'static str, u64); 7], length: usize) -> String {
    let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let mut text = String::from("\n  [");
    let (mut seen, mut drawn) = (0u64, 0usize);
    for ((_, bytes), letter) in parts.iter().zip(LETTERS) {
        seen += bytes;
        let until = (u128::from(seen) * length as u128 / u128::from(total.max(1))) as usize;
        text.extend(std::iter::repeat_n(letter, until - drawn));
        drawn = until;
    }
    text.push_str("]\n");
    let width = mib(Bytes(total)).len().max(10);
    for ((name, bytes), letter) in parts.iter().zip(LETTERS) {
        let share = 100.0 * *bytes as f64 / total.max(1) as f64;
        let amount = mib(Bytes(*bytes));
        let _ = writeln!(text, "  {letter} {name:<20} {amount:>width$} {share:>5.1} %");
    }
    text.push_str(
        "  at the moment of the peak: what is made later, such as gradients, may be missing\n\n",
    );
    text
}

fn mib(bytes: Bytes) -> String {
    format!("{:.0} MiB", bytes.mib())
}

pub(super) fn scores(scores: &Scores, times: Times) -> String {
    let percent = |value: Option<f64>| {
        value.map_or("-".to_owned(), |value| format!("{:.3} %", 100.0 * value))
    };
    let plain = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let bins = scores.bin_accuracy;
    let lines = [
        (
            "rows",
            format!(
                "{} (skipped {}, crashed {}, bins only {})",
                scores.rows, scores.skipped, scores.crashed, scores.bins_only
            ),
        ),
        ("mean error", percent(scores.mape)),
        ("median error", percent(scores.median_ape)),
        ("largest error", percent(scores.max_ape)),
        ("exact to the MiB", percent(scores.exact_share)),
        ("within 10 %", percent(scores.within10_share)),
        ("underestimated", percent(scores.under_share)),
        (
            "right bin",
            format!("1 GB {:.4}, 2 GB {:.4}, 8 GB {:.4}", bins.one, bins.two, bins.eight),
        ),
        ("bound holds", percent(scores.bound_coverage)),
        ("bound above by", percent(scores.bound_over_mean)),
        (
            "SM activity",
            format!("R2 {}, mean error {}", plain(scores.smact_r2), plain(scores.smact_mae)),
        ),
        ("time", times.us_per_estimate.map_or("-".to_owned(), |mean| spread(mean, times))),
    ];
    lines.iter().fold(String::new(), |mut text, (name, value)| {
        let _ = writeln!(text, "{name:<18} {value}");
        text
    })
}

fn spread(mean: f64, times: Times) -> String {
    let us = |time: Option<f64>| time.map_or("-".to_owned(), |us| format!("{us:.1}"));
    format!(
        "{mean:.1} µs per estimate (median {}, p95 {}, most {})",
        us(times.us_median),
        us(times.us_p95),
        us(times.us_max)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_the_length_that_is_asked_for_and_figures_line_up() {
        let mut parts = [("part", 1u64 << 50); 7];
        parts[3].1 = 0;
        for length in [1, 56, 116] {
            let text = bar(&parts, length);
            let line = text.lines().nth(1).unwrap();
            assert_eq!(line.chars().count(), length + FRAME, "{text}");
        }
        let text = bar(&parts, 20);
        let ends: Vec<_> = text.lines().filter_map(|line| line.find(" MiB")).collect();
        assert!(ends.len() == 7 && ends.iter().all(|end| *end == ends[0]), "{text}");
    }
}
