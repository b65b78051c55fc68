//! A GPU's recent activity, as the monitor reported it, and the scores that gates are set on.
//!
//! A report holds until the next one, so a window is a short list of levels whether the reports come
//! once a second from a device or once a change from a simulator; scores are computed when a decision
//! asks for them.

use coloc_model::{Activity, Fraction, Millis, Time};
use std::collections::VecDeque;

/// CARMA's window: 30 samples, one a second.
pub(crate) const RISK_SAMPLES: usize = 30;
const SECOND: Millis = Millis::from_secs(1);

/// The levels of the last `keep` milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    keep: Millis,
    levels: VecDeque<(Time, Activity)>,
}

impl Window {
    pub(crate) fn new(keep: Millis) -> Self {
        Window { keep, levels: VecDeque::from([(Time::START, Activity::default())]) }
    }

    pub(crate) fn record(&mut self, now: Time, level: Activity) {
        match self.levels.back_mut() {
            Some((at, last)) if *at == now => *last = level,
            Some((_, last)) if *last == level => return,
            _ => self.levels.push_back((now, level)),
        }
        // The level that was in force when the window began is still needed.
        let begin = now.before(self.keep);
        while self.levels.len() > 1 && self.levels[1].0 <= begin {
            self.levels.pop_front();
        }
    }

    /// The level in force now.
    pub(crate) fn latest(&self) -> Activity {
        self.levels.back().map(|&(_, level)| level).unwrap_or_default()
    }

    /// When the level last changed.
    pub(crate) fn changed_at(&self) -> Time {
        self.levels.back().map_or(Time::START, |&(at, _)| at)
    }

    fn level_at(&self, at: Time) -> Activity {
        let found = self.levels.iter().rev().find(|&&(since, _)| since <= at);
        found.map(|&(_, level)| level).unwrap_or_default()
    }

    /// Time-weighted mean SM activity between two moments.
    pub(crate) fn mean_sm(&self, from: Time, to: Time) -> f64 {
        let span = to.since(from).0;
        if span == 0 {
            return self.level_at(to).sm.get();
        }
        let mut weighted = 0.0;
        let mut end = to;
        for &(since, level) in self.levels.iter().rev() {
            let start = since.max(from);
            weighted += level.sm.get() * end.since(start).0 as f64;
            end = end.min(start);
            if since <= from {
                break;
            }
        }
        weighted / span as f64
    }

    /// CARMA's risk scores over the 30 seconds up to `now`; GPU-active time has none.
    pub(crate) fn risk(&self, now: Time) -> Activity {
        // A level that has held throughout scores itself.
        if now.since(self.changed_at()) >= Millis(SECOND.0 * RISK_SAMPLES as u64) {
            return self.latest();
        }
        let mut samples = [Activity::default(); RISK_SAMPLES];
        let mut at = now;
        for sample in samples.iter_mut().rev() {
            *sample = self.level_at(at);
            at = at.before(SECOND);
        }
        let score = |metric: fn(&Activity) -> Fraction| risk_score(samples.each_ref().map(metric));
        Activity {
            gpu: self.latest().gpu,
            sm: score(|a| a.sm),
            occupancy: score(|a| a.occupancy),
            dram: score(|a| a.dram),
        }
    }
}

/// 0.20 mean + 0.20 median + 0.30 p95 + 0.10 p50 + 0.20 EMA, alpha = 2/(W+1); median and p50 are one
/// thing, so it weighs 0.30 in effect. Samples are oldest first.
fn risk_score(samples: [Fraction; RISK_SAMPLES]) -> Fraction {
    let count = RISK_SAMPLES as f64;
    let alpha = 2.0 / (count + 1.0);
    let values = samples.map(Fraction::get);
    let mean = values.iter().sum::<f64>() / count;
    let ema = values[1..].iter().fold(values[0], |ema, value| alpha * value + (1.0 - alpha) * ema);
    let mut sorted = values;
    sorted.sort_unstable_by(f64::total_cmp);
    let percentile = |share: f64| {
        let rank = share * (count - 1.0);
        let below = sorted[rank as usize];
        let above = sorted[(rank as usize + 1).min(RISK_SAMPLES - 1)];
        below + (above - below) * (rank - rank.floor())
    };
    Fraction::saturating(0.2 * mean + 0.3 * percentile(0.5) + 0.3 * percentile(0.95) + 0.2 * ema)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(sm: f64) -> Activity {
        Activity { sm: Fraction::new(sm), ..Activity::default() }
    }

    fn at(secs: u64) -> Time {
        Time::START + Millis::from_secs(secs)
    }

    #[test]
    fn a_constant_signal_scores_itself() {
        let mut window = Window::new(Millis::from_secs(30));
        window.record(Time::START, level(0.7));
        assert!((window.risk(at(100)).sm.get() - 0.7).abs() < 1e-12);
        assert!((window.mean_sm(at(10), at(100)) - 0.7).abs() < 1e-12);
    }

    #[test]
    fn the_score_follows_the_published_weights() {
        // 15 s at 0, then 15 samples at 1: mean .5, median .5, p95 1, EMA = 1 - (29/31)^15.
        let mut window = Window::new(Millis::from_secs(30));
        window.record(at(100), level(1.0));
        let ema = 1.0 - (29.0f64 / 31.0).powi(15);
        let expected = 0.2 * 0.5 + 0.3 * 0.5 + 0.3 + 0.2 * ema;
        assert!((window.risk(at(114)).sm.get() - expected).abs() < 1e-12);
    }

    #[test]
    fn means_weigh_levels_by_time() {
        let mut window = Window::new(Millis::from_secs(90));
        window.record(at(10), level(0.5));
        window.record(at(40), level(1.0));
        assert!((window.mean_sm(at(0), at(90)) - (30.0 * 0.5 + 50.0) / 90.0).abs() < 1e-12);
        assert!((window.mean_sm(at(45), at(60)) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn old_levels_are_forgotten() {
        let mut window = Window::new(Millis::from_secs(30));
        for second in 0..1000 {
            window.record(at(second), level((second % 7) as f64 / 10.0));
        }
        assert!(window.levels.len() <= 32);
    }
}
