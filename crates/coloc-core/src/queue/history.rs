//! How much service tasks take, from samples or from those that ended, and the Gittins index of it.

use crate::policy::{Policy, Queue};
use crate::service::{GpuTime, Letter, Thresholds};

/// Points at which the continuous index is kept.
const POINTS: usize = 128;
/// The published simulator's only quantum.
const SIMULATORS_QUANTUM: u64 = 3250;

/// Parts into which each doubling of what may be attained is divided, to find a stretch quickly: so many
/// bits. Tasks differ by orders of magnitude, so parts of one ratio hold about as many stretches each.
const PARTS: u32 = 5;

/// Which tables are kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Tables {
    /// No discipline asks for an index.
    Unused,
    /// Of the best quantum.
    Continuous,
    /// Of the quantum that each queue gives.
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
    /// The stretches of each queue.
    given: Vec<Stretches>,
    thresholds: Thresholds,
}

/// The index with one quantum between two samples: there, each further bit of service takes the same
/// from what is still to be spent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Samples that end within the quantum.
    ending: f64,
    /// What all of them spend until then, including what was attained.
    spent: f64,
    /// It holds for less attained service than this.
    until: u64,
}

/// The stretches of one queue, one after the other.
#[derive(Clone, Default, Debug)]
struct Stretches {
    /// What a task has attained that enters the queue.
    entry: u64,
    /// Of each part of what may be attained, from that of the entry on, how many stretches end before it.
    marks: Vec<u32>,
    /// Close together, because they are searched.
    ends: Vec<u64>,
    all: Vec<Stretch>,
}

impl Stretches {
    fn new(entry: u64, all: Vec<Stretch>) -> Self {
        let ends: Vec<u64> = all.iter().map(|stretch| stretch.until).collect();
        let last = ends.iter().rfind(|&&end| end < u64::MAX).copied().unwrap_or(entry);
        let mut before = 0;
        let marks = (part(entry)..=part(last)).map(|number| {
            before += ends[before..].iter().take_while(|&&end| part(end) < number).count();
            before as u32
        });
        Stretches { entry, marks: marks.collect(), ends, all }
    }

    /// The stretch that holds what was attained, if it was attained in this queue.
    #[inline]
    fn at(&self, attained: u64) -> Option<&Stretch> {
        if attained < self.entry {
            return None;
        }
        let part = part(attained) - part(self.entry);
        let before = *self.marks.get(part).or(self.marks.last())? as usize;
        // Tasks that are much alike may have many stretches in one part.
        let after = self.marks.get(part + 1).map_or(self.ends.len(), |&after| after as usize);
        let number = before + self.ends[before..after].partition_point(|&end| end <= attained);
        self.all.get(number).filter(|stretch| attained < stretch.until)
    }
}

/// The part that an amount of service belongs to.
#[inline]
fn part(service: u64) -> usize {
    // The leading bits of a number are its exponent and the part of the doubling that it is in.
    let number = (service.min(i64::MAX as u64) | 1).cast_signed() as f64;
    (number.to_bits() >> (f64::MANTISSA_DIGITS - 1 - PARTS)) as usize
}

impl Stretch {
    /// The index at a point of the stretch.
    #[inline]
    pub(crate) fn index(&self, attained: GpuTime) -> f64 {
        self.ratio(attained.0)
    }

    /// Whether it holds for this much attained service.
    #[inline]
    pub(crate) fn holds(&self, attained: GpuTime) -> bool {
        attained.0 < self.until
    }

    /// One that holds nowhere.
    pub(crate) const NOWHERE: Stretch = Stretch { ending: 0.0, spent: 0.0, until: 0 };

    #[inline]
    fn ratio(&self, a: u64) -> f64 {
        // Signed, because that is one instruction, and a million years would do.
        let a = a.cast_signed() as f64;
        // Whole numbers, exact up to 2^53 GPU milliseconds; beyond, at least one is left.
        self.ending / (self.spent - self.ending * a).max(1.0)
    }
}

impl History {
    /// An empty history that grows.
    pub(crate) fn new(policy: &Policy) -> Self {
        let service = &policy.service;
        let tables = match service.letter {
            _ if policy.queue != Queue::Gittins2d => Tables::Unused,
            Letter::Simulator => Tables::Simulator,
            Letter::Paper if service.thresholds.is_some() => Tables::Given,
            Letter::Paper => Tables::Continuous,
        };
        let mut history = History { tables, thresholds: service.thresholds, ..History::default() };
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
        match self.tables {
            Tables::Unused => {}
            Tables::Continuous => self.continuous = self.continuous_table(),
            Tables::Given => self.given = self.given_table(),
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
        let ends = self.samples.get(beyond).copied();
        let enters = self.samples.get(within).map(|sample| sample - quantum.unwrap_or(0));
        Stretch {
            ending: (within - beyond) as f64,
            spent: (self.sums[within] - self.sums[beyond] + cut) as f64,
            until: ends.into_iter().chain(enters).min().unwrap_or(u64::MAX),
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

    /// All stretches of each queue, whose limit is the quantum; in the last, tasks run to their end.
    fn given_table(&self) -> Vec<Stretches> {
        let queue = |level: usize| {
            let limit = self.thresholds.limit(level).map(|limit| limit.0);
            let entry = level.checked_sub(1).and_then(|above| self.thresholds.limit(above));
            let end = limit.unwrap_or(u64::MAX);
            let from = |a: u64| {
                let stretch = self.stretch(a, limit);
                Stretch { until: stretch.until.min(end), ..stretch }
            };
            let entry = entry.map_or(0, |entry| entry.0);
            let next = |before: &Stretch| (before.until < end).then(|| from(before.until));
            Stretches::new(entry, std::iter::successors(Some(from(entry)), next).collect())
        };
        (0..=self.thresholds.limits().len()).map(queue).collect()
    }

    /// The stretch of a queue that holds what a task has attained; `None` if that is not of the queue.
    #[inline]
    pub(crate) fn given(&self, level: usize, attained: GpuTime) -> Option<Stretch> {
        self.given.get(level)?.at(attained.0).copied()
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
    use crate::policy::Place;
    use crate::service::Service;
    use coloc_model::Share;

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
            let quantum = quantum.map(|quantum| GpuTime::from_secs(quantum).0);
            history().ratio(GpuTime::from_secs(attained).0, quantum) * 1000.0
        };
        assert!((index(0, Some(4)) - 1.0 / 12.0).abs() < 1e-12);
        assert!((index(0, None) - 1.0 / 8.0).abs() < 1e-12);
        assert_eq!(index(12, None), 0.0);
    }

    #[test]
    fn the_table_says_what_the_formula_says() {
        let thresholds = Thresholds::two(GpuTime::from_secs(3), GpuTime::from_secs(9));
        let service = Service { thresholds, ..Service::PLAIN };
        let mut history = History::new(&Policy { service, ..gittins() });
        let samples = [1, 2, 2, 3, 5, 8, 8, 9, 12, 40];
        history.fix(samples.map(GpuTime::from_secs).to_vec());
        for level in 0..3 {
            let limit = thresholds.limit(level).map(|limit| limit.0);
            let from = level.checked_sub(1).and_then(|above| thresholds.limit(above));
            let from = from.map_or(0, |entry| entry.0);
            let attainable = from..limit.unwrap_or(60_000);
            for attained in attainable.step_by(250) {
                let stretch = history.given(level, GpuTime(attained)).unwrap();
                assert_eq!(stretch.ratio(attained), history.ratio(attained, limit), "{attained}");
                assert!(stretch.holds(GpuTime(attained)));
            }
            let beyond = limit.and_then(|end| history.given(level, GpuTime(end)));
            assert!(beyond.is_none(), "a queue ends at its limit");
        }
        let empty = History::new(&Policy { service, ..gittins() });
        let unknown = empty.given(1, GpuTime::from_secs(7)).unwrap();
        assert_eq!(unknown.ratio(7000), 0.0, "nothing is known");
    }

    #[test]
    fn a_growing_history_is_looked_at_again_when_it_grew_by_a_tenth() {
        let mut history = History::default();
        let changes = (1..=100).filter(|&s| history.ended(GpuTime::from_secs(s))).count();
        assert!((20..60).contains(&changes), "{changes}");
        assert!(!self::history().ended(GpuTime::from_secs(1)), "a given history stays");
    }

    /// However alike or different the ends are, the stretch is the first that ends later.
    #[test]
    fn a_stretch_is_found_among_many_alike_and_at_the_end_of_time() {
        let alike = (0..500).map(|step| 1_000_000 + step);
        let far = [1 << 40, 1 << 62, u64::MAX - 1, u64::MAX];
        let ends: Vec<u64> = (1..40).chain(alike).chain(far).collect();
        let all = ends.iter().map(|&until| Stretch { ending: 1.0, spent: 1.0, until }).collect();
        let stretches = Stretches::new(1, all);
        for attained in ends.iter().flat_map(|&end| [end - 1, end]).filter(|&a| a > 0) {
            let expected = ends.iter().find(|&&end| attained < end);
            let found = stretches.at(attained).map(|stretch| stretch.until);
            assert_eq!(found.as_ref(), expected, "{attained}");
        }
        assert!(stretches.at(0).is_none(), "that is of another queue");
    }
}
