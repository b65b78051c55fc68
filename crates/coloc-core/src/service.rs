//! Attained service, and the queues that it is divided into.
//!
//! A task that has run for `t` on `W` GPUs has attained `W·t`. With limits `Q_1 < Q_2 < …` it is in the
//! queue whose range holds what it attained; without limits its priority changes all the time.

use coloc_model::Millis;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// An amount of service: milliseconds on one GPU.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct GpuTime(pub u64);

impl GpuTime {
    /// This long on this many GPUs.
    pub const fn of(span: Millis, gpus: u32) -> Self {
        GpuTime(span.0.saturating_mul(gpus as u64))
    }

    /// Whole GPU seconds.
    pub const fn from_secs(secs: u64) -> Self {
        GpuTime::of(Millis::from_secs(secs), 1)
    }

    /// GPU seconds with a fraction. Negative and NaN become zero.
    pub fn from_secs_f64(secs: f64) -> Self {
        GpuTime(Millis::from_secs_f64(secs).0)
    }

    /// How long this many GPUs take for it, rounded up.
    pub const fn on(self, gpus: u32) -> Millis {
        Millis(self.0.div_ceil(gpus as u64))
    }
}

/// The most limits between queues.
const MOST: usize = 7;

/// Limits between queues, in rising order.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Thresholds {
    limits: [GpuTime; MOST],
    count: usize,
}

/// Limits that are none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("cannot read {0:?} as thresholds; expected up to 7 rising GPU seconds, such as 3250,7200")]
pub struct BadThresholds(String);

impl Thresholds {
    /// No limits: one queue in which priority changes all the time.
    pub const NONE: Thresholds = Thresholds { limits: [GpuTime(0); MOST], count: 0 };

    /// One limit.
    pub const fn one(limit: GpuTime) -> Self {
        let mut limits = [GpuTime(0); MOST];
        limits[0] = limit;
        Thresholds { limits, count: 1 }
    }

    /// Two limits.
    pub const fn two(low: GpuTime, high: GpuTime) -> Self {
        let mut limits = [GpuTime(0); MOST];
        limits[0] = low;
        limits[1] = high;
        Thresholds { limits, count: 2 }
    }

    /// The limits.
    pub fn limits(&self) -> &[GpuTime] {
        &self.limits[..self.count]
    }

    /// There are queues at all.
    pub const fn is_some(&self) -> bool {
        self.count > 0
    }

    /// The queue of a task that has attained this much.
    pub(crate) fn level(&self, attained: GpuTime) -> usize {
        self.limits().iter().take_while(|&&limit| attained >= limit).count()
    }

    /// What ends a task's time in a queue; `None` in the last.
    pub(crate) fn limit(&self, level: usize) -> Option<GpuTime> {
        self.limits().get(level).copied()
    }
}

impl FromStr for Thresholds {
    type Err = BadThresholds;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut found = Thresholds::NONE;
        for part in text.split(',') {
            let seconds: f64 = part.trim().parse().map_err(|_| BadThresholds(text.to_owned()))?;
            let (limit, last) = (GpuTime::from_secs_f64(seconds), found.limits().last());
            let rises = last.is_none_or(|&last| limit > last);
            if !(seconds > 0.0 && seconds < 1e12 && rises) || found.count == MOST {
                return Err(BadThresholds(text.to_owned()));
            }
            found.limits[found.count] = limit;
            found.count += 1;
        }
        Ok(found)
    }
}

/// By whose rules tasks move between queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleSet {
    /// The paper's: a task changes queue at the moment at which it crosses a limit; inside a queue tasks
    /// that started first go first.
    Paper,
    /// The published simulator's: a task drops one queue at the next event after it crossed a limit, to
    /// the tail; inside a queue running tasks go first, then tasks that were just preempted.
    Simulator,
}

/// How attained service becomes priority.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Service {
    /// Limits between queues.
    pub thresholds: Thresholds,
    /// PROMOTEKNOB: a task that has waited this many times as long as it ran goes back to the first queue.
    pub promote: Option<f64>,
    /// How often priorities are looked at again although nothing happened.
    pub quantum: Option<Millis>,
    /// Whose rules.
    #[serde(alias = "letter")]
    pub rule_set: RuleSet,
}

impl Service {
    /// Nothing implicit: one queue, no promotion, a look at every arrival and end.
    pub const PLAIN: Service = Service {
        thresholds: Thresholds::NONE,
        promote: None,
        quantum: None,
        rule_set: RuleSet::Paper,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_belongs_to_the_queue_above_it() {
        let thresholds: Thresholds = "3250, 7200".parse().expect("two limits");
        for (seconds, level) in [(0, 0), (3249, 0), (3250, 1), (7199, 1), (7200, 2), (1 << 40, 2)] {
            assert_eq!(thresholds.level(GpuTime::from_secs(seconds)), level, "{seconds} s");
        }
        assert_eq!(thresholds.limit(1), Some(GpuTime::from_secs(7200)));
        assert_eq!(thresholds.limit(2), None);
    }

    #[test]
    fn limits_must_rise() {
        for text in ["", "0", "7200,3250", "5,5", "-1", "x", "1,2,3,4,5,6,7,8", "nan", "1e300"] {
            assert!(text.parse::<Thresholds>().is_err(), "{text:?}");
        }
    }
}
