//! How fast tasks turned out to run on each kind of device, against what they declared.

use coloc_model::{GpuModel, Millis, SignatureId};
use std::collections::BTreeMap;

/// Runs that are over, by what ran and where.
#[derive(Clone, Default, Debug)]
pub(crate) struct SpeedsSeen {
    /// Declared and taken milliseconds.
    runs: BTreeMap<(SignatureId, GpuModel), (u128, u128)>,
}

impl SpeedsSeen {
    pub(crate) fn note(&mut self, what: (SignatureId, GpuModel), declared: Millis, took: Millis) {
        let (all, spent) = self.runs.entry(what).or_default();
        *all += u128::from(declared.0);
        *spent += u128::from(took.0.max(1));
    }

    /// Declared over taken time. What was never seen is taken to be as fast as declared, so every kind
    /// of device is tried sooner or later.
    pub(crate) fn speed(&self, signature: SignatureId, model: GpuModel) -> f64 {
        let seen = self.runs.get(&(signature, model));
        seen.map_or(1.0, |&(declared, took)| declared as f64 / took as f64)
    }
}
