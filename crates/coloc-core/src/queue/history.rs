//! How much service tasks take, from samples or from those that ended, and the Gittins index of it.

use crate::service::{GpuTime, Letter, Service};

/// Points at which the continuous index is kept.
const POINTS: usize = 128;
/// The published simulator's only quantum.
const SIMULATORS_QUANTUM: u64 = 3250;

/// Which tables are kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Tables {
    /// Of the best quantum.
    Continuous,
    /// None: the quantum is given.
    #[default]
    Given,
    /// The published simulator's.
    Simulator,
}

/// Samples of service. A history that grows is looked at anew each time it has grown by a tenth.
#[derive(Clone, Default, Debug)]
pub(crate) struct History {
    fixed: bool,
    tables: Tables,
    pending: Vec<GpuTime>,
    /// Rising.
    samples: Vec<u64>,
    /// Sum of the first k samples.
    sums: Vec<u128>,
    /// Index of a task that has attained as much as some of the samples.
    continuous: Vec<(u64, f64)>,
    simulators: Vec<(u64, f64)>,
}

/// The index with one quantum between two samples: there, each further bit of service takes the same
/// from what is still to be spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Samples that end within the quantum.
    ending: u64,
    /// What all of them spend until then, including what was attained.
    spent: u128,
    /// It holds for less attained service than this.
    until: u64,
}

impl Stretch {
    /// The index at a point of the stretch.
    pub(crate) fn index(&self, attained: GpuTime) -> f64 {
        self.ratio(attained.0)
    }

    pub(crate) fn ends(&self) -> GpuTime {
        GpuTime(self.until)
    }

    fn ratio(&self, a: u64) -> f64 {
        if self.ending == 0 {
            return 0.0;
        }
        let spent = self.spent - u128::from(self.ending) * u128::from(a);
        // The same number, sooner, where it is short.
        let spent = u64::try_from(spent).map_or_else(|_| spent as f64, |short| short as f64);
        self.ending as f64 / spent
    }
}

impl History {
    /// An empty history that grows.
    pub(crate) fn new(service: &Service) -> Self {
        let tables = match service.letter {
            Letter::Simulator => Tables::Simulator,
            Letter::Paper if service.thresholds.is_some() => Tables::Given,
            Letter::Paper => Tables::Continuous,
        };
        History { tables, ..History::default() }
    }

    /// From now on these samples and no others.
    pub(crate) fn fix(&mut self, samples: Vec<GpuTime>) {
        (self.fixed, self.pending) = (true, samples);
        self.samples.clear();
        self.rebuild();
    }

    /// Takes over what another history has seen end, unless one of them was told.
    pub(crate) fn remember(&mut self, past: &History) {
        if !self.fixed && !past.fixed {
            let seen = past.samples.iter().map(|&sample| GpuTime(sample));
            self.pending = seen.chain(past.pending.iter().copied()).collect();
            self.rebuild();
        }
    }

    /// A task ended; says whether indices changed.
    pub(crate) fn ended(&mut self, service: GpuTime) -> bool {
        if self.fixed {
            return false;
        }
        self.pending.push(service);
        let due = self.pending.len() > self.samples.len() / 10;
        if due {
            self.rebuild();
        }
        due
    }

    fn rebuild(&mut self) {
        self.samples.extend(self.pending.drain(..).map(|sample| sample.0));
        self.samples.sort_unstable();
        self.sums.clear();
        self.sums.push(0);
        for &sample in &self.samples {
            self.sums.push(self.sums[self.sums.len() - 1] + u128::from(sample));
        }
        match self.tables {
            Tables::Continuous => self.continuous = self.continuous_table(),
            Tables::Given => {}
            Tables::Simulator => self.simulators = self.simulators_table(),
        }
    }

    fn continuous_table(&self) -> Vec<(u64, f64)> {
        let step = self.samples.len().div_ceil(POINTS).max(1);
        let points = self.samples.iter().step_by(step).copied();
        let points: Vec<u64> = std::iter::once(0).chain(points).collect();
        points.iter().map(|&a| (a, self.supremum(a, &points))).collect()
    }

    fn count_up_to(&self, service: u64) -> usize {
        self.samples.partition_point(|&sample| sample <= service)
    }

    /// Tasks that end within the quantum over the service that it will cost, of those that attained `a`.
    fn ratio(&self, a: u64, quantum: Option<u64>) -> f64 {
        self.stretch(a, quantum).ratio(a)
    }

    /// What the ratio is made of, from `a` on.
    fn stretch(&self, a: u64, quantum: Option<u64>) -> Stretch {
        let n = self.samples.len();
        let beyond = self.count_up_to(a);
        let within = quantum.map_or(n, |quantum| self.count_up_to(a.saturating_add(quantum)));
        let cut = (n - within) as u128 * u128::from(quantum.unwrap_or(0));
        let next = |index: usize| self.samples.get(index).copied().unwrap_or(u64::MAX);
        Stretch {
            ending: (within - beyond) as u64,
            spent: self.sums[within] - self.sums[beyond] + cut,
            until: next(beyond).min(next(within).saturating_sub(quantum.unwrap_or(0))),
        }
    }

    fn supremum(&self, a: u64, points: &[u64]) -> f64 {
        let later = points.iter().filter(|&&point| point > a);
        later.map(|&point| self.ratio(a, Some(point - a))).fold(0.0, f64::max)
    }

    /// The index, as of the last kept point that was passed.
    pub(crate) fn index(&self, attained: GpuTime) -> f64 {
        let next = self.continuous.partition_point(|&(point, _)| point <= attained.0);
        next.checked_sub(1).map_or(0.0, |last| self.continuous[last].1)
    }

    /// The index with a given quantum from here on; without one, that of running to the end.
    pub(crate) fn index_within(&self, attained: GpuTime, quantum: Option<GpuTime>) -> Stretch {
        if self.samples.is_empty() {
            return Stretch { ending: 0, spent: 0, until: u64::MAX };
        }
        self.stretch(attained.0, quantum.map(|q| q.0))
    }

    /// The published simulator's table: its expectation is of `S` where it should be of `S − a`.
    fn simulators_table(&self) -> Vec<(u64, f64)> {
        let seconds: Vec<u64> = self.samples.iter().map(|&sample| sample / 1000).collect();
        let (n, quantum) = (seconds.len(), SIMULATORS_QUANTUM);
        let Some(&last) = seconds.last() else { return Vec::new() };
        let up_to = |service: u64| seconds.partition_point(|&sample| sample <= service);
        let index = |sample: u64| {
            let a = sample.saturating_sub(1);
            let i = up_to(a);
            // Where everything ended at once there is nothing left to expect.
            if i == n {
                return 0.0;
            }
            let k = if a + quantum > last.saturating_sub(1) { n - 1 } else { up_to(a + quantum) };
            let k = k.max(i);
            let spent: u64 = seconds[i..k].iter().sum::<u64>() + quantum * (n - k) as u64;
            let (share, mean) = ((k - i) as f64 / (n - i) as f64, spent / (n - i) as u64);
            rounded(1e6 * rounded(share, 1e5) / mean as f64, 1e4)
        };
        seconds.iter().map(|&sample| (sample, index(sample))).collect()
    }

    /// The published simulator's index: looked up at the next sample; nothing beyond the last.
    pub(crate) fn simulators_index(&self, attained: GpuTime) -> f64 {
        let seconds = attained.0 / 1000;
        let next = self.simulators.partition_point(|&(sample, _)| sample <= seconds);
        self.simulators.get(next).map_or(0.0, |&(_, index)| index)
    }
}

fn rounded(value: f64, scale: f64) -> f64 {
    (value * scale).round_ties_even() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::new(&Service::PLAIN);
        history.fix([4, 8, 12].map(GpuTime::from_secs).to_vec());
        history
    }

    /// Per GPU second, for the slides' history of 4, 8 and 12 GPU seconds.
    #[test]
    fn the_index_is_the_best_ratio_of_ends_to_service() {
        let cases = [
            // Δ = 4, 8, 12: (1/3)/4, (2/3)/(20/3), 1/8: the last is the largest.
            (0, 1.0 / 8.0),
            // Of 8 and 12, after 4: Δ = 4 gives (1/2)/4, Δ = 8 gives 1/6.
            (4, 1.0 / 6.0),
            (8, 1.0 / 4.0),
            (12, 0.0),
        ];
        for (attained, expected) in cases {
            let found = history().index(GpuTime::from_secs(attained)) * 1000.0;
            assert!((found - expected).abs() < 1e-12, "{attained}: {found} is not {expected}");
        }
    }

    #[test]
    fn a_quantum_limits_the_look_ahead() {
        let index = |attained, quantum: Option<u64>| {
            let quantum = quantum.map(GpuTime::from_secs);
            let attained = GpuTime::from_secs(attained);
            history().index_within(attained, quantum).index(attained) * 1000.0
        };
        assert!((index(0, Some(4)) - 1.0 / 12.0).abs() < 1e-12);
        assert!((index(0, None) - 1.0 / 8.0).abs() < 1e-12);
        assert_eq!(index(12, None), 0.0);
    }

    #[test]
    fn a_growing_history_is_looked_at_again_when_it_grew_by_a_tenth() {
        let mut history = History::default();
        let changes = (1..=100).filter(|&s| history.ended(GpuTime::from_secs(s))).count();
        assert!((20..60).contains(&changes), "{changes}");
        assert!(!self::history().ended(GpuTime::from_secs(1)), "a given history stays");
    }
}
