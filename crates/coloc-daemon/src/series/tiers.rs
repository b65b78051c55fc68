//! Rings of samples in three tiers: each second for a quarter of an hour, every ten seconds for six hours, every minute for a day. Values are
//! kept in two bytes each, with mean and highest beyond the first tier. Pure: times are passed in.

use serde::{Deserialize, Serialize};

/// Nothing was seen.
pub(crate) const GAP: u16 = u16::MAX;

/// A tier: seconds from one value to the next, and how many are kept.
const TIERS: [(u64, usize); 3] = [(1, 900), (10, 2160), (60, 1440)];

/// One column of a tier.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
struct Column {
    mean: Vec<u16>,
    /// Empty in the first tier, where it is the same.
    max: Vec<u16>,
}

/// A tier with all columns. A slot is a number of steps since 1970; the slot of an index is the newest one that has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Tier {
    step: u64,
    size: usize,
    columns: Vec<Column>,
    /// The first slot that was written, and the last.
    first: u64,
    last: u64,
    /// What was added to the last slot: sums and counts.
    open: Vec<(u64, u32, u16)>,
}

impl Tier {
    fn new((step, size): (u64, usize), columns: usize) -> Self {
        let (columns, open) = (vec![Column::default(); columns], vec![(0, 0, 0); columns]);
        Tier { step, size, columns, first: 0, last: 0, open }
    }

    fn is_first(&self) -> bool {
        self.step == TIERS[0].0
    }

    fn put(&mut self, slot: u64, column: usize, mean: u16, max: u16) {
        let (first, at, keeps_max) =
            (self.first, ((slot - self.first) as usize) % self.size, !self.is_first());
        let column = &mut self.columns[column];
        debug_assert!(slot >= first);
        let write = |ring: &mut Vec<u16>, value| {
            // Grown as needed: most tasks are short.
            if ring.len() <= at {
                ring.resize(at + 1, GAP);
            }
            ring[at] = value;
        };
        write(&mut column.mean, mean);
        if keeps_max {
            write(&mut column.max, max);
        }
    }

    fn add(&mut self, second: u64, values: &[u16]) {
        let slot = second / self.step;
        if self.last == 0 {
            (self.first, self.last) = (slot, slot);
        } else if slot < self.last {
            return;
        } else if slot > self.last {
            // What was not seen meanwhile is a gap; a very long one is all there is.
            let begin = (self.last + 1).max(slot.saturating_sub(self.size as u64));
            for missed in begin..slot {
                (0..values.len()).for_each(|column| self.put(missed, column, GAP, GAP));
            }
            self.last = slot;
            self.open.iter_mut().for_each(|open| *open = (0, 0, 0));
        }
        for (column, &value) in values.iter().enumerate() {
            let open = &mut self.open[column];
            if value != GAP {
                *open = (open.0 + u64::from(value), open.1 + 1, open.2.max(value));
            }
            let (sum, count, max) = *open;
            let mean = if count == 0 { GAP } else { (sum / u64::from(count)) as u16 };
            self.put(slot, column, mean, if count == 0 { GAP } else { max });
        }
    }

    /// The oldest slot that is kept.
    fn oldest(&self) -> u64 {
        self.first.max((self.last + 1).saturating_sub(self.size as u64))
    }

    /// All that was ever added is kept.
    fn is_whole(&self) -> bool {
        self.oldest() == self.first
    }

    fn value(&self, slot: u64, column: usize, highest: bool) -> u16 {
        if slot < self.oldest() || slot > self.last || self.last == 0 {
            return GAP;
        }
        let column = &self.columns[column];
        let ring = if highest && !self.is_first() { &column.max } else { &column.mean };
        ring.get(((slot - self.first) as usize) % self.size).copied().unwrap_or(GAP)
    }
}

/// What is kept of a thing that is measured.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Tiers {
    tiers: Vec<Tier>,
}

/// Values at even steps: means and the highest of each span, of each column.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Cut {
    /// Seconds from one value to the next.
    pub(crate) step: u64,
    /// When the first span begins.
    pub(crate) start: u64,
    /// Of each column, means.
    pub(crate) mean: Vec<Vec<Option<f64>>>,
    /// Of each column, the highest.
    pub(crate) max: Vec<Vec<Option<f64>>>,
}

impl Tiers {
    /// For so many columns.
    pub(crate) fn new(columns: usize) -> Self {
        Tiers { tiers: TIERS.iter().map(|tier| Tier::new(*tier, columns)).collect() }
    }

    /// Adds what was seen at a time, in seconds since 1970. Times do not go back.
    pub(crate) fn add(&mut self, second: u64, values: &[u16]) {
        self.tiers.iter_mut().for_each(|tier| tier.add(second, values));
    }

    /// Bytes that it takes.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let columns = self.tiers.iter().flat_map(|tier| &tier.columns);
        columns.map(|column| 2 * (column.mean.capacity() + column.max.capacity())).sum()
    }

    /// When the first value was seen that is kept, and the last.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        // The finest tier that has all of it says most exactly when it began.
        let whole = self.tiers.iter().find(|tier| tier.is_whole()).or(self.tiers.last());
        let tier = whole.filter(|tier| tier.last > 0)?;
        Some((tier.oldest() * tier.step, self.tiers[0].last + 1))
    }

    /// At most so many values between two times, from the finest tier that goes back far enough.
    pub(crate) fn cut(&self, from: u64, to: u64, points: usize) -> Option<Cut> {
        let (first, last) = self.span()?;
        let (from, to) = (from.max(first), to.min(last).max(from.max(first) + 1));
        let reaches = |tier: &&Tier| tier.is_whole() || tier.oldest() * tier.step <= from;
        let fits = |tier: &Tier| ((to - from) / tier.step) as usize <= points.max(1);
        let tier = self.tiers.iter().filter(reaches).find(|tier| fits(tier));
        let tier = tier.or_else(|| self.tiers.iter().rev().find(reaches)).or(self.tiers.last())?;
        let slots = (from / tier.step)..to.div_ceil(tier.step);
        // Still too many: some slots are one value.
        let together = ((slots.end - slots.start) as usize).div_ceil(points.max(1)).max(1);
        let mut cut = Cut {
            step: tier.step * together as u64,
            start: slots.start * tier.step,
            mean: Vec::new(),
            max: Vec::new(),
        };
        for column in 0..tier.columns.len() {
            let all: Vec<u64> = slots.clone().collect();
            let read = |slots: &[u64], highest: bool| {
                let values = slots.iter().map(|&slot| tier.value(slot, column, highest));
                let seen: Vec<f64> = values.filter(|v| *v != GAP).map(f64::from).collect();
                let mean = seen.iter().sum::<f64>() / seen.len().max(1) as f64;
                let most = seen.iter().copied().fold(0.0, f64::max);
                (!seen.is_empty()).then_some(if highest { most } else { mean })
            };
            cut.mean.push(all.chunks(together).map(|slots| read(slots, false)).collect());
            cut.max.push(all.chunks(together).map(|slots| read(slots, true)).collect());
        }
        Some(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: u64 = 1_800_000_000;

    #[test]
    fn the_finest_tier_that_reaches_back_answers() {
        let mut tiers = Tiers::new(1);
        for second in 0..3600 {
            tiers.add(BEGIN + second, &[(second % 100) as u16]);
        }
        let now = BEGIN + 3600;
        let fine = tiers.cut(now - 60, now, 600).unwrap();
        assert_eq!((fine.step, fine.start, fine.mean[0].len()), (1, now - 60, 60));
        assert_eq!(fine.mean[0][0], Some(40.0));
        assert_eq!(fine.mean, fine.max, "each second by itself");
        let hour = tiers.cut(now - 3600, now, 600).unwrap();
        assert_eq!((hour.step, hour.mean[0].len()), (10, 360));
        assert_eq!((hour.mean[0][1], hour.max[0][1]), (Some(14.0), Some(19.0)), "10 to 19");
        let coarse = tiers.cut(now - 3600, now, 10).unwrap();
        assert_eq!((coarse.step, coarse.mean[0].len()), (360, 10));
        assert_eq!(coarse.max[0][0], Some(99.0));
    }

    #[test]
    fn what_was_not_seen_is_a_gap_and_old_values_go() {
        let mut tiers = Tiers::new(2);
        tiers.add(BEGIN, &[5, GAP]);
        tiers.add(BEGIN + 30, &[7, 8]);
        let cut = tiers.cut(BEGIN, BEGIN + 31, 100).unwrap();
        assert_eq!(
            (cut.mean[0][0], cut.mean[0][15], cut.mean[0][30]),
            (Some(5.0), None, Some(7.0))
        );
        assert_eq!((cut.mean[1][0], cut.mean[1][30]), (None, Some(8.0)));
        tiers.add(BEGIN + 29, &[1, 1]);
        assert_eq!(tiers.cut(BEGIN + 29, BEGIN + 30, 9).unwrap().mean[0], [None], "time goes on");
        tiers.add(BEGIN + 3 * 86_400, &[9, 9]);
        let cut = tiers.cut(0, u64::MAX, 10_000).unwrap();
        assert_eq!(cut.mean[0].iter().flatten().count(), 1, "what is older than a day is gone");
    }

    #[test]
    fn a_gpu_takes_at_most_a_hundred_kilobytes_and_a_short_task_hardly_any() {
        let mut gpu = Tiers::new(6);
        for second in 0..100_000 {
            gpu.add(BEGIN + second, &[1; 6]);
        }
        // (900 + 2 x 2160 + 2 x 1440) x 6 columns x 2 bytes, and what vectors keep for growth.
        assert!(gpu.bytes() < 200_000, "{}", gpu.bytes());
        let exact = (900 + 2 * 2160 + 2 * 1440) * 6 * 2;
        assert!(gpu.bytes() >= exact, "{}", gpu.bytes());
        let mut task = Tiers::new(2);
        for second in 0..60 {
            task.add(BEGIN + second, &[1; 2]);
        }
        assert!(task.bytes() < 1000, "{}", task.bytes());
        let json = serde_json::to_string(&gpu).unwrap();
        assert_eq!(serde_json::from_str::<Tiers>(&json).unwrap(), gpu);
    }
}
