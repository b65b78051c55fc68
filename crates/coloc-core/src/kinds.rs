//! Kinds of device, and what does not run on which: a speed of zero bars a task from a kind.

use coloc_model::{Fleet, GpuModel, SignatureId, SpeedTable};
use rustc_hash::FxHashMap;

/// The number of a kind in its fleet. Of more than 64 kinds the last ones count as one, and nobody is
/// barred from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kind(u8);

/// Kinds that a task does not run on.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Barred(u64);

impl Barred {
    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0.checked_shr(kind.0.into()).unwrap_or(0) & 1 == 1
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The kinds of a fleet, and who is barred from some.
#[derive(Clone, Default, Debug)]
pub(crate) struct Kinds {
    models: Vec<GpuModel>,
    barred: FxHashMap<SignatureId, Barred>,
}

impl Kinds {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let mut models = Vec::new();
        for gpu in fleet.gpus() {
            if !models.contains(&gpu.model) {
                models.push(gpu.model);
            }
        }
        Kinds { models, barred: FxHashMap::default() }
    }

    /// Takes note of what does not run where.
    pub(crate) fn learn(&mut self, speeds: &SpeedTable) {
        self.barred.clear();
        for (signature, model) in speeds.barred() {
            let number = self.models.iter().position(|&known| known == model);
            if let Some(bit) = number.and_then(|number| 1u64.checked_shl(number as u32)) {
                self.barred.entry(signature).or_default().0 |= bit;
            }
        }
    }

    pub(crate) fn kind(&self, model: GpuModel) -> Kind {
        let number = self.models.iter().position(|&known| known == model);
        Kind(number.and_then(|number| number.try_into().ok()).unwrap_or(u8::MAX))
    }

    /// What a task does not run on.
    pub(crate) fn barred(&self, signature: SignatureId) -> Barred {
        if self.barred.is_empty() {
            return Barred::default();
        }
        self.barred.get(&signature).copied().unwrap_or_default()
    }

    /// Somebody is barred from something.
    pub(crate) fn matter(&self) -> bool {
        !self.barred.is_empty()
    }
}
