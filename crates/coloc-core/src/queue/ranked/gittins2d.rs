//! 2D-Gittins (Tiresias): the largest Gittins index of attained service first.
//!
//! `G(a) = sup_Δ P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]`, with `S` the service of a task, from
//! history. With limits, the queue that holds `a` decides first, and `Δ` is the queue's limit.

use super::seat::Rank;
use crate::queue::history::{History, Stretch};
use crate::service::{GpuTime, Letter, Service};
use coloc_model::Time;

/// A queue and what the index is made of in it, until enough was attained for that to change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    level: usize,
    number: usize,
    stretch: Stretch,
    until: GpuTime,
}

impl Stage {
    /// The stage of a task with this much service, which had less in the stage before.
    pub(super) fn of(
        service: &Service,
        history: &History,
        attained: GpuTime,
        before: Option<Stage>,
    ) -> Self {
        let level = service.thresholds.level(attained);
        let limit = service.thresholds.limit(level);
        let before = before.filter(|before| before.level == level);
        let from = before.map_or(0, |before| before.number);
        let (number, stretch) = history.given(level, attained, from);
        let until = limit.map_or(stretch.ends(), |limit| limit.min(stretch.ends()));
        Stage { level, number, stretch, until }
    }

    #[inline]
    pub(super) fn holds(&self, attained: GpuTime) -> bool {
        attained < self.until
    }

    #[inline]
    pub(super) fn rank(&self, attained: GpuTime, first_start: Option<Time>) -> Rank {
        let started = first_start.unwrap_or(Time::NEVER).0;
        Rank::falling(self.level, self.stretch.index(attained), started)
    }
}

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
            Stage::of(service, history, attained, None).rank(attained, first_start)
        }
        Letter::Paper => Rank::falling(0, history.index(attained), started),
    }
}
