//! A task's true behaviour when it is alone on a GPU.

use coloc_model::{Activity, Bytes, Fraction};
use serde::{Deserialize, Serialize};

/// What a task does to a device that it has to itself.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// Mean activity over the run. `activity.gpu` is never below `activity.sm`.
    pub activity: Activity,
    /// Memory on each GPU once the task has settled, context included.
    pub memory: Bytes,
    /// How much others slow this task, relative to the model's prediction.
    pub sensitivity: f64,
    /// How much this task slows others, relative to the model's prediction.
    pub pressure: f64,
}

impl Profile {
    /// A profile from plain numbers: GPU-active, SM, occupancy and DRAM shares, and memory.
    ///
    /// The numbers are clamped to 0..1, and the GPU-active share is raised to the SM share: a device
    /// cannot have busy SMs while no kernel runs.
    pub fn new(gpu: f64, sm: f64, occupancy: f64, dram: f64, memory: Bytes) -> Self {
        let activity = Activity {
            gpu: Fraction::saturating(gpu.max(sm)),
            sm: Fraction::saturating(sm),
            occupancy: Fraction::saturating(occupancy),
            dram: Fraction::saturating(dram),
        };
        Profile { activity, memory, sensitivity: 1.0, pressure: 1.0 }
    }
}
