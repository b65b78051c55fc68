//! The last samples of one GPU, in memory that never grows.

use super::Sample;
use coloc_model::{Activity, Fraction, Millis, Time, WindowScores};

/// One of the activity metrics.
pub type Metric = fn(&Activity) -> Fraction;

/// A ring of the newest samples, of a fixed length. Scores are computed when a caller asks.
#[derive(Clone, Debug)]
pub struct Window {
    keep: Millis,
    ring: Box<[(Time, Activity)]>,
    next: usize,
    len: usize,
}

impl Window {
    /// Keeps samples of the last `keep`, taken one every `period`. CARMA's is 30 samples, one a second.
    pub fn new(keep: Millis, period: Millis) -> Self {
        let capacity = keep.0.div_ceil(period.0.max(1)).clamp(1, 100_000) as usize;
        let ring = vec![(Time::START, Activity::default()); capacity].into_boxed_slice();
        Window { keep, ring, next: 0, len: 0 }
    }

    /// Adds a sample; the oldest makes room for it.
    pub fn record(&mut self, sample: &Sample) {
        self.push(sample.at, sample.signal().activity);
    }

    fn push(&mut self, at: Time, activity: Activity) {
        self.ring[self.next] = (at, activity);
        self.next = (self.next + 1) % self.ring.len();
        self.len = (self.len + 1).min(self.ring.len());
    }

    /// Samples that are still young enough, oldest first.
    fn recent(&self, now: Time) -> impl Iterator<Item = &Activity> {
        let begin = (self.next + self.ring.len() - self.len) % self.ring.len();
        let (late, early) = self.ring.split_at(begin);
        early
            .iter()
            .chain(late)
            .take(self.len)
            .filter(move |(at, _)| now.since(*at) < self.keep || now == *at)
            .map(|(_, activity)| activity)
    }

    /// How many samples there are to judge by.
    pub fn len(&self, now: Time) -> usize {
        self.recent(now).count()
    }

    /// Whether there is nothing to judge by.
    pub fn is_empty(&self, now: Time) -> bool {
        self.len(now) == 0
    }

    /// Mean, median, p95 and EMA of a metric; `None` without samples.
    pub fn scores(&self, now: Time, metric: Metric) -> Option<WindowScores> {
        let mut values: Vec<f64> =
            self.recent(now).map(|activity| metric(activity).get()).collect();
        let (&first, rest) = values.split_first()?;
        let alpha = 2.0 / (values.len() as f64 + 1.0);
        let ema = rest.iter().fold(first, |ema, value| ema + alpha * (value - ema));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.sort_unstable_by(f64::total_cmp);
        let (median, p95) = (percentile(&values, 0.5), percentile(&values, 0.95));
        Some(WindowScores { mean, median, p95, ema })
    }
}

/// Linear interpolation between the two nearest of the sorted values, of which there is at least one.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let rank = share * (sorted.len() - 1) as f64;
    let below = rank as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (rank - rank.floor())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn busy(sm: f64) -> Activity {
        Activity { sm: Fraction::saturating(sm), ..Activity::default() }
    }

    fn at(secs: u64) -> Time {
        Time::START + Millis::from_secs(secs)
    }

    fn carma() -> Window {
        Window::new(Millis::from_secs(30), Millis::from_secs(1))
    }

    #[test]
    fn the_risk_score_follows_the_published_weights() {
        let mut window = carma();
        (0..15).for_each(|second| window.push(at(second), busy(0.0)));
        (15..30).for_each(|second| window.push(at(second), busy(1.0)));
        let scores = window.scores(at(29), |a| a.sm).expect("30 samples");
        let ema = 1.0 - (29.0f64 / 31.0).powi(15);
        let expected = 0.2 * 0.5 + 0.3 * 0.5 + 0.3 + 0.2 * ema;
        assert!((scores.risk().get() - expected).abs() < 1e-12, "{scores:?}");
        assert_eq!((scores.mean, scores.median, scores.p95), (0.5, 0.5, 1.0));
    }

    #[test]
    fn old_samples_do_not_count() {
        let mut window = carma();
        window.push(at(0), busy(1.0));
        window.push(at(100), busy(0.2));
        assert_eq!(window.len(at(100)), 1);
        assert_eq!(window.scores(at(100), |a| a.sm).map(|s| s.mean), Some(0.2));
        assert_eq!(window.scores(at(200), |a| a.sm), None);
    }

    #[test]
    fn memory_does_not_grow() {
        let mut window = Window::new(Millis::from_secs(30), Millis(100));
        let size = window.ring.len();
        (0..864_000u64).for_each(|tick| window.push(Time(tick * 100), busy(0.5)));
        assert_eq!((size, window.ring.len()), (300, 300));
        assert_eq!(window.len(Time(86_399_900)), 300);
    }

    proptest! {
        #[test]
        fn scores_lie_within_what_was_seen(values in prop::collection::vec(0.0f64..1.0, 1..80)) {
            let mut window = carma();
            for (second, &value) in values.iter().enumerate() {
                window.push(at(second as u64), busy(value));
            }
            let now = at(values.len() as u64 - 1);
            let seen = &values[values.len().saturating_sub(30)..];
            let (low, high) = seen.iter().fold((1.0f64, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
            let scores = window.scores(now, |a| a.sm).expect("samples");
            for score in [scores.mean, scores.median, scores.p95, scores.ema, scores.risk().get()] {
                prop_assert!(score >= low - 1e-9 && score <= high + 1e-9);
            }
        }
    }
}
