//! LUG: the least utilized GPU (CARMA).

use super::{Cost, real_cost};

pub(super) fn cost(load: f64) -> Cost {
    real_cost(load)
}
