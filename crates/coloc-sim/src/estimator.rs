//! What the scheduler is told of a task's memory in a simulation.

use crate::trace::{Trace, TraceTask};
use coloc_core::preset::MemoryKnowledge;
use coloc_model::{Bytes, Estimate};
use coloc_physics::catalogue;

/// A source of estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// The task's measured memory, and nothing else.
    Oracle,
    /// No estimate: only recovery.
    None,
    /// The published numbers of Horus.
    Horus,
    /// The published numbers of FakeTensor.
    FakeTensor,
    /// The published numbers of GPUMemNet.
    GpuMemNet,
}

/// An estimator has no number for a task.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no published {estimator} estimate for task {task:?}: it is not in the built-in catalogue; \
     use --estimator oracle or none"
)]
pub struct NoEstimate {
    task: String,
    estimator: &'static str,
}

impl Estimator {
    /// The name used in flags.
    pub const fn name(self) -> &'static str {
        match self {
            Estimator::Oracle => "oracle",
            Estimator::None => "none",
            Estimator::Horus => "horus",
            Estimator::FakeTensor => "faketensor",
            Estimator::GpuMemNet => "gpumemnet",
        }
    }

    /// How much a preset may rely on it.
    pub const fn knowledge(self) -> MemoryKnowledge {
        match self {
            Estimator::Oracle => MemoryKnowledge::Oracle,
            Estimator::None => MemoryKnowledge::None,
            Estimator::Horus | Estimator::FakeTensor | Estimator::GpuMemNet => {
                MemoryKnowledge::Estimate
            }
        }
    }

    /// What it says of a task.
    pub fn estimate(self, trace: &Trace, task: &TraceTask) -> Result<Option<Estimate>, NoEstimate> {
        let published = || {
            let name = trace.name(task);
            catalogue::find(name)
                .map(|workload| workload.estimates)
                .ok_or_else(|| NoEstimate { task: name.to_owned(), estimator: self.name() })
        };
        let mib = match self {
            Estimator::Oracle => return Ok(Some(Estimate::exact(task.profile.memory))),
            Estimator::None => return Ok(None),
            Estimator::Horus => published()?.horus_mib,
            Estimator::FakeTensor => published()?.faketensor_mib,
            Estimator::GpuMemNet => published()?.gpumemnet_mib,
        };
        Ok(Some(Estimate::exact(Bytes::from_mib_f64(mib))))
    }
}
