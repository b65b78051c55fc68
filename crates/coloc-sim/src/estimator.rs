//! What the scheduler is told of a task's memory in a simulation.

use crate::trace::{Trace, TraceTask};
use coloc_core::preset::MemoryKnowledge;
use coloc_estimate::environment::{Environment, loads_of};
use coloc_estimate::graph::FlagKind;
use coloc_estimate::{Estimator as _, ReplayEstimator};
use coloc_model::{Bytes, Estimate, Loads, SignatureId};
use coloc_physics::catalogue;
use rustc_hash::FxHashMap;

/// A source of estimates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimator {
    /// The task's measured memory, and nothing else.
    Oracle,
    /// No estimate: only recovery.
    None,
    /// What the trace says was estimated of each task when it was submitted.
    Recorded,
    /// Our own: the task's graph replayed against a model of the caching allocator.
    Replay,
    /// The published numbers of Horus.
    Horus,
    /// The published numbers of FakeTensor.
    FakeTensor,
    /// The published numbers of GPUMemNet.
    GpuMemNet,
}

/// A software environment that tasks are replayed in, instead of the one that explains their published memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Surroundings {
    /// What people call it.
    pub name: String,
    /// What is added.
    pub constants: Environment,
    /// What nets load whose part of the constant was not measured, and what is said of it.
    pub doubts: Vec<(Loads, String)>,
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
            Estimator::Recorded => "recorded",
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
            Estimator::Recorded
            | Estimator::Replay
            | Estimator::Horus
            | Estimator::FakeTensor
            | Estimator::GpuMemNet => MemoryKnowledge::Estimate,
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

    /// What it says of a task, in an environment that is named if it knows any.
    pub fn estimate(
        self,
        trace: &Trace,
        task: &TraceTask,
        within: Option<&Surroundings>,
    ) -> Result<Option<Estimate>, NoEstimate> {
        let published = || {
            let name = trace.name(task);
            catalogue::find(name)
                .map(|workload| workload.estimates)
                .ok_or_else(|| NoEstimate { task: name.to_owned(), estimator: self.name() })
        };
        let mib = match self {
            Estimator::Oracle => return Ok(Some(Estimate::exact(task.memory_curve().peak()))),
            Estimator::None => return Ok(None),
            Estimator::Recorded => return Ok(task.recorded.map(Estimate::from)),
            Estimator::Replay => return Ok(replay(trace.name(task), within)),
            Estimator::Horus => published()?.horus_mib,
            Estimator::FakeTensor => published()?.faketensor_mib,
            Estimator::GpuMemNet => published()?.gpumemnet_mib,
        };
        Ok(Some(Estimate::exact(Bytes::from_mib_f64(mib))))
    }
}

/// A replay of the task's graph, where it was measured unless told otherwise; a task without one is a task of which
/// nothing is known.
fn replay(name: &str, within: Option<&Surroundings>) -> Option<Estimate> {
    let mut task = coloc_estimate::catalogue::task(name)?;
    let estimator = match within {
        None => ReplayEstimator::shipped(task.environment)?,
        Some(surroundings) => {
            task = task.within(&surroundings.name);
            let loads = loads_of(&task.graph);
            for (_, doubt) in surroundings.doubts.iter().filter(|(part, _)| *part == loads) {
                task.graph.flag(FlagKind::Assumption, doubt.as_str());
            }
            ReplayEstimator::within(surroundings.constants)
        }
    };
    Some(Estimate::from(&estimator.estimate(&task.graph, &task.run)))
}

/// What an estimator says of each kind of task, asked once.
pub(crate) struct Estimates<'a> {
    estimator: Estimator,
    within: Option<&'a Surroundings>,
    known: FxHashMap<SignatureId, Option<Estimate>>,
}

impl<'a> Estimates<'a> {
    pub(crate) fn new(estimator: Estimator, within: Option<&'a Surroundings>) -> Self {
        Estimates { estimator, within, known: FxHashMap::default() }
    }

    pub(crate) fn of(
        &mut self,
        trace: &Trace,
        task: &TraceTask,
    ) -> Result<Option<Estimate>, NoEstimate> {
        // Measured memory and what came with a task are each task's own.
        if matches!(self.estimator, Estimator::Oracle | Estimator::Recorded) {
            return self.estimator.estimate(trace, task, None);
        }
        if let Some(estimate) = self.known.get(&task.signature) {
            return Ok(*estimate);
        }
        let estimate = self.estimator.estimate(trace, task, self.within)?;
        self.known.insert(task.signature, estimate);
        Ok(estimate)
    }
}
