//! How much service tasks take, from samples or from tasks that ended, and the Gittins index of it.

use super::ranked::simulator;
use crate::policy::{Policy, Queue};
use crate::service::{GpuTime, RuleSet};

/// Points at which the continuous index is kept.
const POINTS: usize = 128;

/// Which table of indices is kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Table {
    /// None: no discipline asks for an index, or it is worked out when asked for.
    #[default]
    Unused,
    /// Of the best quantum.
    Continuous,
    /// The published simulator's.
    Simulator,
}

/// Samples of service. A history that grows is looked at anew each time it has grown by a tenth.
#[derive(Clone, Default, Debug)]
pub(crate) struct History {
    fixed: bool,
    pending: Vec<GpuTime>,
    /// Rising.
    samples: Vec<u64>,
    /// Sum of the first k samples.
    sums: Vec<u128>,
    kept: Table,
    /// Index of a task that has attained as much as some of the samples.
    table: Vec<(u64, f64)>,
}

impl History {
    /// An empty history that grows.
    pub(crate) fn new(policy: &Policy) -> Self {
        let service = &policy.service;
        let kept = match service.rule_set {
            _ if policy.queue != Queue::Gittins2d => Table::Unused,
            RuleSet::Simulator => Table::Simulator,
            RuleSet::Paper if service.thresholds.is_some() => Table::Unused,
            RuleSet::Paper => Table::Continuous,
        };
        let mut history = History { kept, ..History::default() };
        history.rebuild();
        history
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
        self.table = match self.kept {
            Table::Unused => Vec::new(),
            Table::Continuous => self.continuous_table(),
            Table::Simulator => simulator::index_table(&self.samples),
        };
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

    /// The index with one quantum: tasks that end within it over the service that it will cost, of those that
    /// attained this much. Without a quantum, tasks run to their end.
    pub(crate) fn ratio(&self, attained: GpuTime, quantum: Option<GpuTime>) -> f64 {
        let (a, n) = (attained.0, self.samples.len());
        let beyond = self.count_up_to(a);
        let within = quantum.map_or(n, |quantum| self.count_up_to(a.saturating_add(quantum.0)));
        let cut = (n - within) as u128 * u128::from(quantum.map_or(0, |quantum| quantum.0));
        let ending = (within - beyond) as f64;
        // What all of them spend until then, including what was attained.
        let spent = (self.sums[within] - self.sums[beyond] + cut) as f64;
        // Whole numbers, exact up to 2^53 GPU milliseconds; beyond, at least one is left.
        ending / (spent - ending * a.cast_signed() as f64).max(1.0)
    }

    fn supremum(&self, a: u64, points: &[u64]) -> f64 {
        let later = points.iter().filter(|&&point| point > a);
        let ratio = |&point: &u64| self.ratio(GpuTime(a), Some(GpuTime(point - a)));
        later.map(ratio).fold(0.0, f64::max)
    }

    /// The index, as of the last kept point that was passed.
    pub(crate) fn index(&self, attained: GpuTime) -> f64 {
        let next = self.table.partition_point(|&(point, _)| point <= attained.0);
        next.checked_sub(1).map_or(0.0, |last| self.table[last].1)
    }

    /// The published simulator's index.
    pub(crate) fn simulators_index(&self, attained: GpuTime) -> f64 {
        simulator::index(&self.table, attained)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Place;
    use coloc_model::Share;
    use proptest::prelude::*;

    fn gittins() -> Policy {
        Policy::plain(Queue::Gittins2d, Place::Any, Share::Exclusive)
    }

    fn history() -> History {
        let mut history = History::new(&gittins());
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
            history().ratio(GpuTime::from_secs(attained), quantum) * 1000.0
        };
        assert!((index(0, Some(4)) - 1.0 / 12.0).abs() < 1e-12);
        assert!((index(0, None) - 1.0 / 8.0).abs() < 1e-12);
        assert_eq!(index(12, None), 0.0);
    }

    proptest! {
        /// Sample by sample, as the formula has it.
        #[test]
        fn the_ratio_is_what_counting_says(
            samples in prop::collection::vec(1u64..5000, 0..40),
            attained in 0u64..6000,
            quantum in prop::option::of(1u64..3000),
        ) {
            let mut history = History::new(&gittins());
            history.fix(samples.iter().copied().map(GpuTime).collect());
            let left: Vec<u64> = samples.iter().filter_map(|s| s.checked_sub(attained)).collect();
            let left = left.iter().filter(|&&left| left > 0);
            let ends = left.clone().filter(|&&left| quantum.is_none_or(|q| left <= q)).count();
            let spent: u64 = left.map(|&left| quantum.map_or(left, |q| left.min(q))).sum();
            let found = history.ratio(GpuTime(attained), quantum.map(GpuTime));
            prop_assert_eq!(found, ends as f64 / (spent as f64).max(1.0));
        }
    }

    #[test]
    fn a_growing_history_is_looked_at_again_when_it_grew_by_a_tenth() {
        let mut history = History::default();
        let changes = (1..=100).filter(|&s| history.ended(GpuTime::from_secs(s))).count();
        assert!((20..60).contains(&changes), "{changes}");
        assert!(!self::history().ended(GpuTime::from_secs(1)), "a given history stays");
    }
}
