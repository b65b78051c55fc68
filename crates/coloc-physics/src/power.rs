//! Power of a device and whose energy it is.

use coloc_model::{Activity, GpuModel};
use serde::{Deserialize, Serialize};

/// Draw above idle, in watts of an A100 and per unit of activity. Fitted to the two published points of
/// the 60-task heavy trace; the split between SM, occupancy and DRAM is assumed.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PowerModel {
    /// A process is on the device: clocks are up.
    pub resident: f64,
    /// Per unit of SM activity.
    pub sm: f64,
    /// Per unit of SM occupancy.
    pub occupancy: f64,
    /// Per unit of DRAM activity.
    pub dram: f64,
}

impl Default for PowerModel {
    fn default() -> Self {
        PowerModel { resident: 70.0, sm: 90.0, occupancy: 70.0, dram: 60.0 }
    }
}

/// What a device draws, in watts, by cause.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Power {
    /// Drawn whether or not anything runs; residents carry it by residency.
    pub still: f64,
    /// Drawn because SMs and memory work; tasks carry it by SM activity.
    pub dynamic: f64,
}

impl Power {
    /// All of it.
    pub fn watts(self) -> f64 {
        self.still + self.dynamic
    }
}

impl PowerModel {
    /// What a device draws with this many tasks and this much activity. Boards other than the A100 use
    /// the same shares of the range between their idle draw and their limit.
    #[inline]
    pub fn draw(&self, model: GpuModel, residents: usize, activity: &Activity) -> Power {
        let reference = GpuModel::A100_40GB;
        let range = |m: GpuModel| m.limit_watts() - m.idle_watts();
        let scale = range(model) / range(reference);
        let still = model.idle_watts() + if residents > 0 { self.resident * scale } else { 0.0 };
        let dynamic = scale
            * (self.sm * activity.sm.get()
                + self.occupancy * activity.occupancy.get()
                + self.dram * activity.dram.get());
        let room = (model.limit_watts() - still).max(0.0);
        Power { still, dynamic: dynamic.min(room) }
    }
}
