//! What the same command needed when it ran before.

use crate::bounds::conformal_quantile;
use crate::estimate::{Estimate, Promise};
use coloc_model::Bytes;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// What this estimator is called.
pub const NAME: &str = "history";

/// Runs that are remembered of one command.
const REMEMBERED: usize = 32;

/// Commands that are remembered.
const COMMANDS: usize = 10_000;

/// Above the largest of n runs, a n-th of this share of it is allowed for: the next is the largest so far with chance
/// 1/(n+1), and by how much is not known. A tenth of the memory after the first run is a guess: no data set has the
/// same command twice.
const ABOVE_ONE_RUN: f64 = 0.1;

/// Peaks by command signature.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct History {
    peaks: FxHashMap<String, Vec<u64>>,
}

impl History {
    /// Remembers what a run held at most.
    pub fn remember(&mut self, signature: &str, peak: Bytes) {
        if self.peaks.len() >= COMMANDS && !self.peaks.contains_key(signature) {
            // Which one is forgotten matters little among so many.
            let forgotten = self.peaks.keys().next().cloned();
            forgotten.and_then(|signature| self.peaks.remove(&signature));
        }
        let peaks = self.peaks.entry(signature.to_owned()).or_default();
        if peaks.len() == REMEMBERED {
            peaks.remove(0);
        }
        peaks.push(peak.0);
    }

    /// The largest peak seen, and above it what few runs may still add.
    pub fn estimate(&self, signature: &str) -> Option<Estimate> {
        let peaks = self.peaks.get(signature).filter(|peaks| !peaks.is_empty())?;
        let seen: Vec<f64> = peaks.iter().map(|peak| *peak as f64).collect();
        let largest = conformal_quantile(&seen, 1.0);
        let bound = largest * (1.0 + ABOVE_ONE_RUN / seen.len() as f64);
        Some(Estimate {
            peak: Bytes(largest as u64),
            bound: Bytes(bound as u64),
            promise: Promise::Runs(seen.len()),
            class_mib: None,
            utilization: None,
            estimator: NAME,
            flags: Vec::new(),
            breakdown: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_runs_make_a_tighter_bound() {
        let mut history = History::default();
        assert_eq!(history.estimate("a"), None);
        history.remember("a", Bytes::from_mib(1000));
        let once = history.estimate("a").unwrap();
        history.remember("a", Bytes::from_mib(990));
        let twice = history.estimate("a").unwrap();
        assert_eq!(once.peak, twice.peak);
        assert!(twice.bound < once.bound && twice.bound > twice.peak);
    }
}
