//! What a GPU draws, by the model of the simulator: accounting splits measured energy by it, as simulations do.

use coloc_model::{Activity, GpuModel};
use coloc_physics::PowerModel;

/// What a GPU with this many tasks draws, in watts: whether or not they work, and because they work.
pub fn modelled_watts(model: GpuModel, residents: usize, activity: &Activity) -> (f64, f64) {
    let power = PowerModel::default().draw(model, residents, activity);
    (power.still, power.dynamic)
}
