//! Upper bounds with a promise: split-conformal quantiles of what was seen.
//!
//! A score says how far a measurement lay above its estimate, in units in which rows of a family are
//! alike. The bound adds the score that 99 % of calibration rows stayed below, with the finite-sample
//! correction; calibration rows are never those that the estimate was fitted on.

use serde::{Deserialize, Serialize};

/// Share of tasks that should stay below their bound.
pub const COVERAGE: f64 = 0.99;
/// Margins are calibrated a little above that: the quantile of some hundred rows is itself uncertain.
pub const CALIBRATED: f64 = COVERAGE + 0.002;

/// How a family's scores are turned into memory.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Margin {
    /// So many MiB more.
    Added {
        /// The quantile.
        mib: f64,
    },
    /// So much of the allocator's memory more.
    Scaled {
        /// The quantile, as a share.
        share: f64,
    },
    /// So many times the row's own expected error more, in the logarithm.
    Normalised {
        /// The quantile, in expected errors.
        errors: f64,
    },
}

/// The value that a new score stays at or below with probability `coverage`. With too few scores to
/// promise that, the largest: the promise is then `n / (n + 1)`.
pub fn conformal_quantile(scores: &[f64], coverage: f64) -> f64 {
    let mut sorted: Vec<f64> = scores.iter().copied().filter(|score| score.is_finite()).collect();
    if sorted.is_empty() {
        return 0.0;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = libm::ceil((sorted.len() + 1) as f64 * coverage) as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_quantile_has_the_finite_sample_correction() {
        let scores: Vec<f64> = (1..=99).map(f64::from).collect();
        assert_eq!(conformal_quantile(&scores, 0.99), 99.0);
        let scores: Vec<f64> = (1..=999).map(f64::from).collect();
        assert_eq!(conformal_quantile(&scores, 0.99), 990.0);
        assert_eq!(conformal_quantile(&[3.0, 1.0], 0.99), 3.0);
        assert_eq!(conformal_quantile(&[], 0.99), 0.0);
    }

    proptest! {
        #[test]
        fn enough_calibration_scores_lie_at_or_below(
            scores in prop::collection::vec(-50.0f64..50.0, 1..400)
        ) {
            let bound = conformal_quantile(&scores, COVERAGE);
            let covered = scores.iter().filter(|score| **score <= bound).count();
            prop_assert!(covered as f64 >= COVERAGE * scores.len() as f64 - 1.0);
        }
    }
}
