//! 2D-LAS (Tiresias): the least attained service `a = W·t` first.
//!
//! With limits, the queue that holds `a` decides; inside a queue tasks that started first go first.

use super::order_key::Rank;
use crate::service::{GpuTime, Thresholds};
use coloc_model::Time;

pub(super) fn rank(thresholds: &Thresholds, attained: GpuTime, first_start: Option<Time>) -> Rank {
    match thresholds.is_some() {
        true => Rank::new(thresholds.level(attained), first_start.unwrap_or(Time::NEVER).0, 0),
        false => Rank::by(attained.0),
    }
}
