//! The first GPU that may take the task, in enumeration order.

use super::Cost;

pub(super) fn cost(gpu: u32) -> Cost {
    Cost::from(gpu)
}
