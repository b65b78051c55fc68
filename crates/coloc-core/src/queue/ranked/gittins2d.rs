//! 2D-Gittins (Tiresias): the largest Gittins index of attained service first.
//!
//! `G(a) = sup_Δ P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]`, with `S` the service of a task, from
//! history. With limits, the queue that holds `a` decides first, and `Δ` is the queue's limit.

use super::seat::Rank;
use crate::queue::history::History;
use crate::service::{GpuTime, Letter, Service};
use coloc_model::Time;

pub(super) fn rank(
    service: &Service,
    history: &History,
    level: usize,
    attained: GpuTime,
    (submitted, first_start): (Time, Option<Time>),
) -> Rank {
    let started = first_start.unwrap_or(Time::NEVER).0;
    match service.letter {
        Letter::Simulator => Rank::falling(level, history.simulators_index(attained), submitted.0),
        Letter::Paper if service.thresholds.is_some() => {
            let quantum = service.thresholds.limit(level);
            Rank::falling(level, history.index_within(attained, quantum), started)
        }
        Letter::Paper => Rank::falling(0, history.index(attained), started),
    }
}
