//! Sets of GPU models.

use crate::GpuModel;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// GPU models that a task may run on. Copies are cheap: like the models themselves, sets live as long as the process, and a
/// fleet has few of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<GpuModel>", into = "Vec<GpuModel>")]
pub struct ModelSet(&'static [GpuModel]);

static SETS: Mutex<Vec<&'static [GpuModel]>> = Mutex::new(Vec::new());

impl ModelSet {
    /// Whether a model is one of them.
    #[inline]
    pub fn contains(self, model: GpuModel) -> bool {
        self.0.contains(&model)
    }

    /// All of them, by name.
    pub fn iter(self) -> impl Iterator<Item = GpuModel> {
        self.0.iter().copied()
    }
}

impl FromIterator<GpuModel> for ModelSet {
    fn from_iter<I: IntoIterator<Item = GpuModel>>(models: I) -> Self {
        let mut models: Vec<GpuModel> = models.into_iter().collect();
        models.sort_unstable();
        models.dedup();
        let mut known = SETS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = known.iter().copied().find(|set| *set == models) {
            return ModelSet(set);
        }
        let set: &'static [GpuModel] = models.leak();
        known.push(set);
        ModelSet(set)
    }
}

impl From<Vec<GpuModel>> for ModelSet {
    fn from(models: Vec<GpuModel>) -> Self {
        models.into_iter().collect()
    }
}

impl From<ModelSet> for Vec<GpuModel> {
    fn from(set: ModelSet) -> Self {
        set.0.to_vec()
    }
}

impl Hash for ModelSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.iter().for_each(|model| model.name().hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_does_not_know_how_it_was_written() {
        let set = |names: &[&str]| -> ModelSet {
            names.iter().map(|name| name.parse::<GpuModel>().expect("a known model")).collect()
        };
        let both = set(&["V100-16GB", "A100-40GB", "V100-16GB"]);
        assert_eq!(both, set(&["A100-40GB", "V100-16GB"]));
        assert!(
            both.contains(GpuModel::A100_40GB) && !set(&["T4-16GB"]).contains(GpuModel::A100_40GB)
        );
        assert_eq!(both.iter().map(GpuModel::name).collect::<Vec<_>>(), ["A100-40GB", "V100-16GB"]);
        assert!(!set(&[]).contains(GpuModel::A100_40GB));
    }
}
