//! A histogram as plain values: it is kept by one thread and copied for another.

/// Counts of what was observed, by size.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Histogram {
    /// Upper bounds, rising; what is above all of them is counted too.
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    pub(crate) fn new(bounds: &'static [f64]) -> Self {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        let place = self.bounds.partition_point(|&bound| bound < value);
        self.counts[place] += 1;
        self.sum += value;
    }

    pub(crate) fn sum(&self) -> f64 {
        self.sum
    }

    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each bound with how many lie between the one before and it.
    pub(crate) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = self.bounds.iter().copied().chain([f64::MAX]);
        bounds.zip(self.counts.iter().copied()).collect()
    }
}

/// Seconds that a task may wait: from one to two days.
pub(crate) const WAITS: &[f64] = &[
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0, 172800.0,
];
/// Seconds of work that is short: from a tenth of a millisecond to ten seconds.
pub(crate) const SHORT: &[f64] =
    &[0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0];
/// An estimate over what was seen: one is right.
pub(crate) const RATIOS: &[f64] =
    &[0.5, 0.8, 0.9, 0.95, 0.99, 1.01, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut histogram = Histogram::new(&[1.0, 5.0]);
        [0.5, 1.0, 1.1, 5.0, 99.0].into_iter().for_each(|value| histogram.observe(value));
        assert_eq!(histogram.buckets(), [(1.0, 2), (5.0, 2), (f64::MAX, 1)]);
        assert_eq!((histogram.count(), histogram.sum()), (5, 106.6));
    }
}
