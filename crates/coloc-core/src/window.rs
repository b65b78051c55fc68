//! A GPU's recent activity, as the monitor reported it, and the scores that gates are set on.
//!
//! A report holds until the next one, so a window is a short list of levels whether the reports come
//! once a second from a device or once a change from a simulator; scores are computed when a decision
//! asks for them.

use coloc_model::{Activity, Fraction, Millis, Time, WindowScores};
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

    /// When the level last changed.
    pub(crate) fn changed_at(&self) -> Time {
        self.levels.back().map_or(Time::START, |&(at, _)| at)
    }

    /// The highest SM activity that is remembered.
    pub(crate) fn highest_sm(&self) -> f64 {
        self.levels.iter().fold(0.0, |highest, (_, level)| level.sm.get().max(highest))
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

    /// The samples that a monitor took once a second, up to `now`.
    pub(crate) fn samples(&self, now: Time) -> Samples {
        let mut samples = Samples { runs: [(Activity::default(), 0); RISK_SAMPLES], len: 0 };
        let mut taken = 0;
        for &(since, level) in self.levels.iter().rev() {
            if since > now {
                continue;
            }
            // A level holds for as many samples as there are whole seconds back to its beginning.
            let reach = (now.since(since).0 / SECOND.0 + 1).min(RISK_SAMPLES as u64) as usize;
            if reach > taken {
                samples.runs[samples.len] = (level, reach - taken);
                samples.len += 1;
                taken = reach;
            }
            if taken == RISK_SAMPLES {
                break;
            }
        }
        if taken < RISK_SAMPLES {
            samples.runs[samples.len] = (Activity::default(), RISK_SAMPLES - taken);
            samples.len += 1;
        }
        samples
    }
}

/// The samples of a window as runs of equal ones, newest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples {
    runs: [(Activity, usize); RISK_SAMPLES],
    len: usize,
}

impl Samples {
    /// CARMA's risk score of a metric.
    pub(crate) fn risk(&self, metric: fn(&Activity) -> Fraction) -> Fraction {
        let mut values = self.runs.map(|(level, count)| (metric(&level).get(), count));
        let runs = &mut values[..self.len];
        if let [(only, _)] = runs {
            return Fraction::saturating(*only);
        }
        let mean = runs.iter().map(|&(value, count)| value * count as f64).sum::<f64>()
            / RISK_SAMPLES as f64;
        // Over n equal samples the distance to them shrinks by decay^n; the oldest sample starts it.
        let oldest = runs[runs.len() - 1].0;
        let ema = runs
            .iter()
            .rev()
            .fold(oldest, |ema, &(value, count)| value + (ema - value) * DECAY_POWERS[count]);
        runs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (median, p95) = (percentile(runs, 0.5), percentile(runs, 0.95));
        WindowScores { mean, median, p95, ema }.risk()
    }
}

/// (1 - alpha)^n with alpha = 2/31.
const DECAY_POWERS: [f64; RISK_SAMPLES + 1] = {
    let mut powers = [1.0; RISK_SAMPLES + 1];
    let mut n = 1;
    while n <= RISK_SAMPLES {
        powers[n] = powers[n - 1] * (29.0 / 31.0);
        n += 1;
    }
    powers
};

/// Linear interpolation between the two nearest of the samples, given as sorted runs.
fn percentile(runs: &[(f64, usize)], share: f64) -> f64 {
    let rank = share * (RISK_SAMPLES - 1) as f64;
    let value_at = |index: usize| {
        let mut end = 0;
        let found = runs.iter().find(|&&(_, count)| {
            end += count;
            index < end
        });
        found.or(runs.last()).map_or(0.0, |&(value, _)| value)
    };
    let (below, above) = (value_at(rank as usize), value_at(rank as usize + 1));
    below + (above - below) * (rank - rank.floor())
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
        assert!((window.samples(at(100)).risk(|a| a.sm).get() - 0.7).abs() < 1e-12);
        assert!((window.mean_sm(at(10), at(100)) - 0.7).abs() < 1e-12);
    }

    #[test]
    fn the_score_follows_the_published_weights() {
        // 15 s at 0, then 15 samples at 1: mean .5, median .5, p95 1, EMA = 1 - (29/31)^15.
        let mut window = Window::new(Millis::from_secs(30));
        window.record(at(100), level(1.0));
        let ema = 1.0 - (29.0f64 / 31.0).powi(15);
        let expected = 0.2 * 0.5 + 0.3 * 0.5 + 0.3 + 0.2 * ema;
        assert!((window.samples(at(114)).risk(|a| a.sm).get() - expected).abs() < 1e-12);
    }

    #[test]
    fn runs_score_like_the_samples_one_by_one() {
        let mut window = Window::new(Millis::from_secs(30));
        let levels = [(70, 0.3), (76, 0.9), (79, 0.1), (90, 0.6), (99, 0.8)];
        levels.iter().for_each(|&(second, sm)| window.record(at(second), level(sm)));
        let mut values: Vec<f64> =
            (71..=100).map(|second| window.level_at(at(second)).sm.get()).collect();
        let mean = values.iter().sum::<f64>() / 30.0;
        let ema = values[1..].iter().fold(values[0], |ema, v| ema + 2.0 / 31.0 * (v - ema));
        values.sort_unstable_by(f64::total_cmp);
        let median = (values[14] + values[15]) / 2.0;
        let p95 = values[27] + 0.55 * (values[28] - values[27]);
        let expected = 0.2 * mean + 0.3 * median + 0.3 * p95 + 0.2 * ema;
        let score = window.samples(at(100)).risk(|a| a.sm).get();
        assert!((score - expected).abs() < 1e-12, "{score} against {expected}");
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
