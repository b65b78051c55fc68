//! The Horus formula as CARMA used it, to the published MiB, quirks included.
//!
//! `((A + P) B + P) · 4 B + 800 MiB`: activations of a sample, parameters, batch. Gradients do not grow with the
//! batch; the formula has them do so. The scheduler was told 40,000 MiB where it gives more.

use crate::estimate::{Estimate, Estimator, Promise};
use crate::graph::{Flag, FlagKind, Graph, Op};
use crate::run::RunConfig;
use coloc_model::Bytes;

/// What the formula adds for the CUDA context, in MiB.
const CONTEXT_MIB: f64 = 800.0;
/// What the scheduler was told at most, in MiB.
const LARGEST_MIB: f64 = 40_000.0;
/// Tokens that its transformer reader takes for granted.
const TOKENS: u64 = 512;

/// What the formula reads off a summary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Activations of a sample.
    pub activations: u64,
    /// Parameters.
    pub parameters: u64,
}

impl Counts {
    /// The formula, without its cap.
    pub fn mib(self, batch: u32) -> f64 {
        let (activations, parameters) = (self.activations as f64, self.parameters as f64);
        let batch = f64::from(batch);
        (activations * batch + parameters + batch * parameters) * 4.0 / 1_048_576.0 + CONTEXT_MIB
    }

    /// The formula as the scheduler got it.
    pub fn capped_mib(self, batch: u32) -> f64 {
        self.mib(batch).min(LARGEST_MIB)
    }

    /// The formula as an estimate; with `quirks` capped, and then that is said.
    pub fn estimate(self, batch: u32, mut flags: Vec<Flag>, quirks: bool) -> Estimate {
        let (mut mib, whole) = (self.mib(batch), self.mib(batch));
        if quirks && whole > LARGEST_MIB {
            mib = self.capped_mib(batch);
            let detail = format!("the formula gives {whole:.2} MiB; the scheduler was told {mib}");
            flags.push(Flag { kind: FlagKind::Assumption, detail });
        }
        let bytes = Bytes::from_mib_f64(mib);
        Estimate {
            peak: bytes,
            bound: bytes,
            promise: Promise::Nothing,
            class_mib: None,
            utilization: None,
            estimator: "horus",
            flags,
            breakdown: None,
        }
    }
}

/// Reads a summary as the published scripts did. With `quirks`, the width of a flat dropout or
/// activation counts only with its first digit.
pub fn counts(summary: &str, quirks: bool) -> Option<Counts> {
    let parameters = summary
        .lines()
        .find_map(|line| line.strip_prefix("Total params:"))
        .and_then(|text| text.trim().replace(',', "").parse().ok())?;
    let table = summary.lines().any(|line| line.trim_start().starts_with("Layer (type)"));
    let activations = if table {
        let rows = summary.lines().filter_map(|line| table_row(line, quirks));
        rows.fold(0, u64::saturating_add)
    } else {
        tree_activations(summary)
    };
    Some(Counts { activations, parameters })
}

/// A row's activations; containers, pools and flattening count nothing.
fn table_row(line: &str, quirks: bool) -> Option<u64> {
    const FUNCTIONS: [&str; 11] = [
        "ReLU6",
        "ReLU",
        "LeakyReLU",
        "PReLU",
        "ELU",
        "SELU",
        "GELU",
        "Tanh",
        "SiLU",
        "Softplus",
        "Mish",
    ];
    let (name, rest) = line.split_once('[')?;
    let kind = name.trim().split('-').next()?;
    let inside = rest.split(']').next()?;
    let sides: Vec<u64> =
        inside.split(',').skip(1).map(|side| side.trim().parse().ok()).collect::<Option<_>>()?;
    let elements = sides.iter().fold(1u64, |all, side| all.saturating_mul(*side));
    let flat = sides.len() == 1;
    let digit = || elements.to_string().chars().next().and_then(|first| first.to_digit(10));
    match kind {
        "Conv2d" | "BatchNorm2d" | "Linear" => Some(elements),
        "AdaptiveAvgPool2d" => sides.first().copied(),
        kind if kind == "Dropout" || kind == "Softmax" || FUNCTIONS.contains(&kind) => {
            if flat && quirks { digit().map(u64::from) } else { Some(elements) }
        }
        _ => None,
    }
}

/// Embeddings count by token, linear layers once, and what follows repeats the last number.
fn tree_activations(summary: &str) -> u64 {
    let (mut current, mut sum) = (0u64, 0u64);
    for line in summary.lines() {
        let Some((_, module)) = line.split_once("): ") else { continue };
        let number_after = |key: &str| -> Option<u64> {
            let text = module.split_once(key)?.1;
            text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        if module.starts_with("Embedding(") && !module.contains("padding_idx") {
            current = TOKENS.saturating_mul(number_after(", ").unwrap_or(0));
        } else if module.starts_with("Linear(") {
            current = number_after("out_features=").unwrap_or(0);
        } else if !["LayerNorm(", "Dropout(", "Conv1D("].iter().any(|kind| module.starts_with(kind))
        {
            continue;
        }
        sum = sum.saturating_add(current);
    }
    sum
}

/// The formula on a graph.
#[derive(Clone, Copy, Default, Debug)]
pub struct HorusEstimator;

impl Estimator for HorusEstimator {
    fn estimate(&self, graph: &Graph, run: &RunConfig) -> Estimate {
        let counted = graph.nodes().iter().filter(|node| {
            !matches!(node.op, Op::Input | Op::Tokens | Op::View | Op::MaxPool | Op::Add { .. })
        });
        let activations = counted.map(|node| node.shape.elements()).sum();
        let counts = Counts { activations, parameters: graph.parameters() };
        counts.estimate(run.batch, graph.flags.clone(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_resnet_is_met() {
        let counts = Counts { activations: 31_839_720, parameters: 25_557_032 };
        assert!((counts.mib(32) - 7903.9316).abs() < 1e-3);
    }

    #[test]
    fn the_cap_is_a_quirk_and_is_said() {
        let counts = Counts { activations: 1 << 30, parameters: 1 << 20 };
        let whole = counts.estimate(32, Vec::new(), false);
        assert!(whole.peak.mib() > 100_000.0 && whole.flags.is_empty());
        let capped = counts.estimate(32, Vec::new(), true);
        assert_eq!(capped.peak, Bytes::from_mib(40_000));
        assert!(capped.flags[0].detail.contains("the scheduler was told 40000"), "{capped:?}");
    }

    #[test]
    fn only_flat_functions_lose_their_digits() {
        let row = "  ReLU-34   [32, 4096]   0";
        assert_eq!(table_row(row, true), Some(4));
        assert_eq!(table_row(row, false), Some(4096));
        assert_eq!(table_row("Linear-33 [32, 4096] 9", true), Some(4096));
        assert_eq!(table_row("Bottleneck-3 [32, 64, 8, 8] 0", true), None);
    }
}
