//! 2D-Gittins (Tiresias): the largest Gittins index of attained service first.
//!
//! `G(a) = sup_Δ P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]`, with `S` the service of a task, from
//! history. With limits, the queue that holds `a` decides first, and `Δ` is the queue's limit.

use super::order_key::Rank;
use crate::queue::history::History;
use crate::service::{GpuTime, Thresholds};
use coloc_model::Time;

pub(super) fn rank(
    thresholds: &Thresholds,
    history: &History,
    attained: GpuTime,
    first_start: Option<Time>,
) -> Rank {
    let started = first_start.unwrap_or(Time::NEVER).0;
    if !thresholds.is_some() {
        return Rank::falling(0, history.index(attained), started);
    }
    let level = thresholds.level(attained);
    // In the last queue tasks run to their end.
    Rank::falling(level, history.ratio(attained, thresholds.limit(level)), started)
}
