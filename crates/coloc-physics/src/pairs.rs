//! Measured pairs: where two tasks were measured together, the measurement wins over the model.

use coloc_model::{Share, SignatureId};
use rustc_hash::FxHashMap;

/// How many times longer one task took beside another.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SlowdownPair {
    /// The mechanism by which they shared.
    pub share: Share,
    /// The task that was slowed.
    pub task: SignatureId,
    /// Its neighbour.
    pub beside: SignatureId,
    /// Run time beside it, over run time alone.
    pub slowdown: f64,
}

/// All measured pairs of a run.
#[derive(Clone, Default, Debug)]
pub struct PairTable {
    slowdowns: FxHashMap<(Share, SignatureId, SignatureId), f64>,
}

impl PairTable {
    /// Adds a pair; a later measurement replaces an earlier one.
    pub fn insert(&mut self, pair: SlowdownPair) {
        self.slowdowns.insert((pair.share, pair.task, pair.beside), pair.slowdown);
    }

    /// The measured slow-down of `task` beside `beside`.
    pub fn get(&self, share: Share, task: SignatureId, beside: SignatureId) -> Option<f64> {
        if self.slowdowns.is_empty() {
            return None;
        }
        self.slowdowns.get(&(share, task, beside)).copied()
    }
}

impl FromIterator<SlowdownPair> for PairTable {
    fn from_iter<I: IntoIterator<Item = SlowdownPair>>(pairs: I) -> Self {
        let mut table = PairTable::default();
        pairs.into_iter().for_each(|pair| table.insert(pair));
        table
    }
}
