//! What the monitor saw of a task while it ran, added up.

use crate::owner::Slowed;
use coloc_model::{Activity, Fraction, Millis};
use serde::{Deserialize, Serialize};

/// Sums over the time in which the monitor looked.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Seconds on its GPUs, by the scheduler's clock.
    pub watched_s: f64,
    /// Seconds that the same work would have taken alone, as far as the scheduler believes.
    pub alone_s: f64,
    /// Shares of activity times seconds, mean over its GPUs: any kernel,
    pub gpu_s: f64,
    /// SM activity,
    pub sm_s: f64,
    /// SM occupancy,
    pub occupancy_s: f64,
    /// DRAM activity.
    pub dram_s: f64,
    /// Seconds of `watched_s` beside other tasks,
    #[serde(skip_serializing_if = "is_zero")]
    pub shared_s: f64,
    /// and of those, seconds beside tasks of which nothing was known: what they cost is a guess.
    #[serde(skip_serializing_if = "is_zero")]
    pub guessed_s: f64,
}

/// The part of its time up to which guesses leave a slow-down known.
const LITTLE: f64 = 0.1;

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Usage {
    /// A look at a task that had this part of its GPUs' activity since the last look.
    pub(crate) fn add(&mut self, span: Millis, slowed: Slowed, activity: [f64; 4]) {
        let span = span.secs();
        self.watched_s += span;
        self.alone_s += span / slowed.by.max(1.0);
        self.shared_s += if slowed.shared { span } else { 0.0 };
        self.guessed_s += if slowed.known { 0.0 } else { span };
        let [gpu, sm, occupancy, dram] = activity;
        self.gpu_s += gpu * span;
        self.sm_s += sm * span;
        self.occupancy_s += occupancy * span;
        self.dram_s += dram * span;
    }

    /// How many times as long it took as alone.
    pub fn slowdown(&self) -> f64 {
        if self.alone_s > 0.0 { (self.watched_s / self.alone_s).max(1.0) } else { 1.0 }
    }

    /// It shared a GPU.
    pub fn was_shared(&self) -> bool {
        self.shared_s > 0.0
    }

    /// How long it took beside others is known: for most of its time, each of them had been seen or estimated.
    pub fn is_slowdown_known(&self) -> bool {
        self.guessed_s <= LITTLE * self.watched_s
    }

    /// How busy it keeps a GPU that it has to itself: what was seen was that much thinner as it was slower.
    pub fn activity_alone(&self) -> Option<Activity> {
        if self.alone_s <= 0.0 {
            return None;
        }
        let share = |sum: f64| Fraction::saturating(sum / self.alone_s);
        Some(Activity {
            gpu: share(self.gpu_s.max(self.sm_s)),
            sm: share(self.sm_s),
            occupancy: share(self.occupancy_s),
            dram: share(self.dram_s),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_beside_others_is_thinner_than_alone() {
        let mut usage = Usage::default();
        assert_eq!((usage.slowdown(), usage.activity_alone()), (1.0, None));
        usage.add(Millis::from_secs(10), Slowed::ALONE, [0.9, 0.6, 0.3, 0.2]);
        let alone = usage.activity_alone().expect("seen");
        assert!(!usage.was_shared() && usage.is_slowdown_known());
        let slowed = Slowed { by: 2.0, shared: true, known: true };
        usage.add(Millis::from_secs(20), slowed, [0.45, 0.3, 0.15, 0.1]);
        assert_eq!(usage.slowdown(), 1.5);
        assert!(usage.was_shared() && usage.is_slowdown_known());
        let both = usage.activity_alone().expect("seen");
        assert!((both.sm.get() - 0.6).abs() < 1e-9 && (alone.sm.get() - 0.6).abs() < 1e-9);
        let guessed = Slowed { known: false, ..slowed };
        usage.add(Millis::from_secs(20), guessed, [0.45, 0.3, 0.15, 0.1]);
        assert!(!usage.is_slowdown_known());
    }
}
