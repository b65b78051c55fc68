//! What the scheduler is told of a task's memory in a simulation.

use crate::trace::{Trace, TraceTask};
use coloc_core::preset::MemoryKnowledge;
use coloc_estimate::{Estimator as _, ReplayEstimator};
use coloc_model::{Bytes, Estimate, SignatureId};
use coloc_physics::catalogue;
use rustc_hash::FxHashMap;

/// A source of estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// The task's measured memory, and nothing else.
    Oracle,
    /// No estimate: only recovery.
    None,
    /// Our own: the task's graph replayed against a model of the caching allocator.
    Replay,
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
            Estimator::Replay => "replay",
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
            Estimator::Replay | Estimator::Horus | Estimator::FakeTensor | Estimator::GpuMemNet => {
                MemoryKnowledge::Estimate
            }
        }
    }

    /// How many tasks it says nothing of although it is asked; and the first of them.
    pub fn silent_on(self, trace: &Trace) -> Option<(usize, &str)> {
        if self != Estimator::Replay {
            return None;
        }
        let known: Vec<bool> = (0..trace.names().len() as u32)
            .map(|number| coloc_estimate::catalogue::task(trace.names().name(number)).is_some())
            .collect();
        let is_silent = |task: &&TraceTask| !known[task.signature.index()];
        let first = trace.tasks().iter().find(is_silent)?;
        Some((trace.tasks().iter().filter(is_silent).count(), trace.name(first)))
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
            Estimator::Replay => return Ok(replay(trace.name(task))),
            Estimator::Horus => published()?.horus_mib,
            Estimator::FakeTensor => published()?.faketensor_mib,
            Estimator::GpuMemNet => published()?.gpumemnet_mib,
        };
        Ok(Some(Estimate::exact(Bytes::from_mib_f64(mib))))
    }
}

/// A replay of the task's graph where it was measured; a task without one is a task of which nothing is known.
fn replay(name: &str) -> Option<Estimate> {
    let task = coloc_estimate::catalogue::task(name)?;
    let estimator = ReplayEstimator::shipped(task.environment)?;
    Some(Estimate::from(&estimator.estimate(&task.graph, &task.run)))
}

/// What an estimator says of each kind of task, asked once.
pub(crate) struct Estimates {
    estimator: Estimator,
    known: FxHashMap<SignatureId, Option<Estimate>>,
}

impl Estimates {
    pub(crate) fn new(estimator: Estimator) -> Self {
        Estimates { estimator, known: FxHashMap::default() }
    }

    pub(crate) fn of(
        &mut self,
        trace: &Trace,
        task: &TraceTask,
    ) -> Result<Option<Estimate>, NoEstimate> {
        // Measured memory is each task's own.
        if self.estimator == Estimator::Oracle {
            return self.estimator.estimate(trace, task);
        }
        if let Some(estimate) = self.known.get(&task.signature) {
            return Ok(*estimate);
        }
        let estimate = self.estimator.estimate(trace, task)?;
        self.known.insert(task.signature, estimate);
        Ok(estimate)
    }
}
