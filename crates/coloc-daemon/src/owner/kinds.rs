//! GPU models that a task may run on, by the kinds that its user names.

use super::Owner;
use super::commands::invalid::Invalid;
use crate::bounds;
use crate::kinds::is_of_kind;
use coloc_api::spec::TaskSpec;
use coloc_model::{Bytes, GpuModel, ModelSet};

fn may_have(spec: &TaskSpec, model: GpuModel) -> bool {
    spec.gpu_kinds.is_empty() || spec.gpu_kinds.iter().any(|kind| is_of_kind(model.name(), kind))
}

impl Owner {
    /// The GPU models that a task may run on; `None` for all.
    pub(super) fn models(&self, spec: &TaskSpec) -> Option<ModelSet> {
        let models = self.fleet.gpus().iter().map(|gpu| gpu.model);
        let named = || models.filter(|&model| may_have(spec, model)).collect();
        (!spec.gpu_kinds.is_empty()).then(named)
    }

    /// There are so many GPUs of the kinds that a task names, and they have the memory.
    pub(super) fn check_kinds(&self, spec: &TaskSpec) -> Result<(), Invalid> {
        if spec.gpu_kinds.is_empty() {
            return Ok(());
        }
        let (many, long) = (bounds::KINDS, bounds::KIND);
        if spec.gpu_kinds.len() > many || spec.gpu_kinds.iter().any(|kind| kind.len() > long) {
            return Err(Invalid::ManyKinds);
        }
        let models = || self.fleet.gpus().iter().map(|gpu| gpu.model);
        let mut fit: Vec<Bytes> =
            models().filter(|&m| may_have(spec, m)).map(GpuModel::memory).collect();
        fit.sort_unstable_by(|a, b| b.cmp(a));
        let kinds = spec.gpu_kinds.join(" or ");
        if fit.len() < spec.gpus as usize {
            let mut there: Vec<&str> = models().map(GpuModel::name).collect();
            there.sort_unstable();
            there.dedup();
            let (needs, has, here) = (spec.gpus, fit.len(), there.join(", "));
            return Err(Invalid::FewOfKind { kinds, needs, has, here });
        }
        let largest = fit.get((spec.gpus as usize).saturating_sub(1)).copied().unwrap_or_default();
        match spec.gpu_memory {
            Some(needs) if needs > largest => {
                Err(Invalid::SmallKind { kinds, needs, gpus: spec.gpus, largest })
            }
            _ => Ok(()),
        }
    }
}
