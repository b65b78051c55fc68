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
    stretch: Stretch,
}

impl Stage {
    /// Nothing is known yet.
    pub(super) const UNKNOWN: Stage = Stage {
        frame: Rank::FIRST,
        gpus: 0,
        origin: 0,
        level: u32::MAX,
        stretch: Stretch::NOWHERE,
    };

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
        let gpus = u64::from(asks.gpus);
        let started = standing.first_start.unwrap_or(Time::NEVER).0;
        Stage {
            frame: Rank::new(level, 0, started).in_class(asks.class),
            gpus,
            origin: attained.0.wrapping_sub(now.0.wrapping_mul(gpus)),
            level: level as u32,
            stretch: history.given(level, attained).unwrap_or(Stretch::NOWHERE),
        }
    }

    /// Its rank now, unless what its index is made of has changed.
    #[inline]
    pub(super) fn rank(&self, now: Time) -> Option<Rank> {
        self.stretch.holds(self.attained(now)).then(|| self.rank_now(now))
    }

    /// Its rank, where its stretch is known to hold.
    #[inline]
    pub(super) fn rank_now(&self, now: Time) -> Rank {
        self.frame.with_falling(self.stretch.index(self.attained(now)))
    }

    #[inline]
    fn attained(&self, now: Time) -> GpuTime {
        GpuTime(self.origin.wrapping_add(now.0.wrapping_mul(self.gpus)))
    }

    /// The same once its stretch is over; `None` where its queue is too, or is not known.
    #[inline]
    pub(super) fn go_on(&mut self, now: Time, history: &History) -> Option<Rank> {
        self.stretch = history.given(self.level as usize, self.attained(now))?;
        Some(self.rank_now(now))
    }

    /// It has to be worked out anew.
    pub(super) fn forget(&mut self) {
        *self = Stage::UNKNOWN;
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
            let index =
                history.given(level, attained).map_or(0.0, |stretch| stretch.index(attained));
            Rank::falling(level, index, started)
        }
        Letter::Paper => Rank::falling(0, history.index(attained), started),
    }
}
