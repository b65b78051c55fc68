//! What a training task does, from the catalogue or from numbers.

use coloc_model::Bytes;
use coloc_physics::{Phases, Profile, catalogue};

/// Kernels of a kind, for showing what monitors make of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mix {
    /// Some kernel always runs, on a few SMs: 100 % utilization, next to no SM activity.
    TinyKernels,
    /// Large matrix products: most SMs busy.
    Dense,
    /// Memory is moved and little computed.
    MemoryBound,
}

impl Mix {
    /// Activity when alone.
    pub fn profile(self, memory: Bytes) -> Profile {
        match self {
            Mix::TinyKernels => Profile::new(1.0, 0.03, 0.01, 0.01, memory),
            Mix::Dense => Profile::new(0.98, 0.92, 0.45, 0.45, memory),
            Mix::MemoryBound => Profile::new(0.97, 0.55, 0.40, 0.85, memory),
        }
    }
}

/// A training task.
#[derive(Clone, Debug)]
pub struct Work {
    /// What it is called.
    pub name: String,
    /// What it does to a device that it has to itself, and the memory at which it settles.
    pub profile: Profile,
    /// GPUs that it needs.
    pub gpus: u32,
    /// Samples in one iteration.
    pub batch: u32,
    /// Epochs.
    pub epochs: u32,
    /// Run time when alone.
    pub seconds: f64,
    /// Memory that is added late, and the progress at which it comes.
    pub late_growth: Option<(f64, Bytes)>,
    /// What it does beside warming up and training, on its own clock.
    pub phases: Phases,
    /// Before its end it prints an out-of-memory error that it survives.
    pub prints_oom: bool,
}

impl Work {
    /// A task of the catalogue.
    pub fn catalogued(name: &str) -> Option<Self> {
        let workload = catalogue::find(name)?;
        Some(Work {
            name: workload.name.to_owned(),
            profile: workload.profile(),
            gpus: workload.gpus,
            batch: workload.batch,
            epochs: 1,
            seconds: workload.duration().secs(),
            late_growth: None,
            phases: Phases::NONE,
            prints_oom: false,
        })
    }

    /// Iterations of the whole run.
    pub fn iterations(&self) -> u64 {
        ((self.seconds / ITERATION_S).round() as u64).max(1)
    }
}

/// The catalogue has no time of one iteration; this is a usual one.
const ITERATION_S: f64 = 0.25;
