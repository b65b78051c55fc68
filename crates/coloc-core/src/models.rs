//! Which GPU models a task may run on: those that it names, and where its speed is not zero.

use coloc_model::{Fleet, GpuModel, ModelSet, SignatureId, SpeedTable, Task};
use rustc_hash::FxHashMap;

/// The models of a fleet, and what does not run on all of them.
#[derive(Clone, Default, Debug)]
pub(crate) struct Models {
    fleet: Vec<GpuModel>,
    /// Where a signature has a speed, for signatures that have none somewhere.
    by_speed: FxHashMap<SignatureId, ModelSet>,
    /// A task came that names models.
    named: bool,
}

impl Models {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let mut models = Vec::new();
        for gpu in fleet.gpus() {
            if !models.contains(&gpu.model) {
                models.push(gpu.model);
            }
        }
        Models { fleet: models, by_speed: FxHashMap::default(), named: false }
    }

    /// Takes note of what does not run where.
    pub(crate) fn learn(&mut self, speeds: &SpeedTable) {
        self.by_speed.clear();
        for (signature, model) in speeds.barred() {
            if self.fleet.contains(&model) {
                let has_speed = |&model: &GpuModel| speeds.speed(signature, model).is_some();
                let models = self.fleet.iter().copied().filter(has_speed);
                self.by_speed.insert(signature, models.collect());
            }
        }
    }

    /// Takes note of a task that comes; says which models it is bound to.
    pub(crate) fn note(&mut self, task: &Task) -> Option<ModelSet> {
        let allowed = self.allowed(task);
        self.named |= allowed.is_some();
        allowed
    }

    /// The models that a task may run on; `None` if it may run on all of the fleet.
    pub(crate) fn allowed(&self, task: &Task) -> Option<ModelSet> {
        let by_speed = match self.by_speed.is_empty() {
            true => None,
            false => self.by_speed.get(&task.signature).copied(),
        };
        let models = match (task.models, by_speed) {
            (Some(named), Some(runs)) => {
                Some(named.iter().filter(|&model| runs.contains(model)).collect())
            }
            (named, runs) => named.or(runs),
        };
        models.filter(|models: &ModelSet| !self.fleet.iter().all(|&model| models.contains(model)))
    }

    /// Some task may not run on all of them.
    pub(crate) fn matter(&self) -> bool {
        self.named || !self.by_speed.is_empty()
    }
}
