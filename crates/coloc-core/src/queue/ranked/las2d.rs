//! 2D-LAS (Tiresias): the least attained service `a = W·t` first.
//!
//! With limits, the queue that holds `a` decides; inside a queue those that started first go first.

use super::seat::Rank;
use crate::service::{GpuTime, Letter, Service};
use coloc_model::Time;

pub(super) fn rank(
    service: &Service,
    level: usize,
    attained: GpuTime,
    first_start: Option<Time>,
) -> Rank {
    match service.letter {
        // Inside a queue its list alone decides.
        Letter::Simulator => Rank::new(level, 0, 0),
        Letter::Paper if service.thresholds.is_some() => {
            Rank::new(level, first_start.unwrap_or(Time::NEVER).0, 0)
        }
        Letter::Paper => Rank::by(attained.0),
    }
}
