//! 2D-Gittins (Tiresias): the largest Gittins index of attained service first.
//!
//! `G(a) = sup_Δ P(S − a ≤ Δ | S > a) / E[min(S − a, Δ) | S > a]`, with `S` the service of a task, from
//! history. With limits, the queue that holds `a` decides first, and `Δ` is the queue's limit.

use super::seat::Rank;
use super::{Asks, Standing};
use crate::queue::history::{History, Stretch};
use crate::service::{GpuTime, Letter, Service};
use coloc_model::Time;

/// A running task's way through a queue: what its index is made of, until enough was attained for that
/// to change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stage {
    /// Its rank but for the index.
    frame: Rank,
    gpus: u64,
    /// What it would have attained at time zero, on a circle.
    origin: u64,
    level: u32,
    number: u32,
    stretch: Stretch,
}

impl Stage {
    /// The stage of a task that runs.
    pub(super) fn of(
        now: Time,
        service: &Service,
        history: &History,
        asks: &Asks,
        standing: &Standing,
    ) -> Self {
        let attained = standing.attained(now, true, asks.gpus);
        let level = service.thresholds.level(attained);
        let (number, stretch) = history.given(level, attained, 0);
        let gpus = u64::from(asks.gpus);
        let started = standing.first_start.unwrap_or(Time::NEVER).0;
        Stage {
            frame: Rank::new(level, 0, started).in_class(asks.class),
            gpus,
            origin: attained.0.wrapping_sub(now.0.wrapping_mul(gpus)),
            level: level as u32,
            number: number as u32,
            stretch,
        }
    }

    /// Its rank now, while it is in the same queue.
    #[inline]
    pub(super) fn rank(&mut self, history: &History, now: Time) -> Rank {
        let attained = GpuTime(self.origin.wrapping_add(now.0.wrapping_mul(self.gpus)));
        if self.stretch.ends() <= attained {
            self.go_on(history, attained);
        }
        self.frame.with_falling(self.stretch.index(attained))
    }

    fn go_on(&mut self, history: &History, attained: GpuTime) {
        let (number, stretch) = history.given(self.level as usize, attained, self.number as usize);
        (self.number, self.stretch) = (number as u32, stretch);
    }
}

/// The rank of a task that waits.
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
            let (_, stretch) = history.given(level, attained, 0);
            Rank::falling(level, stretch.index(attained), started)
        }
        Letter::Paper => Rank::falling(0, history.index(attained), started),
    }
}
