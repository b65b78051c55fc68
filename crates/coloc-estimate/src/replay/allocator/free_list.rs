//! The free spans of one pool, in order of size and then of address.
//!
//! They are binned by size, sixteen bins for each power of two, with a bitmap of the bins that hold any. The
//! tightest fit is the smallest span of its own bin that is large enough, or the smallest of the next bin that
//! is not empty.

/// Sizes past the last bin share it; order within a bin keeps the search exact.
const BINS: usize = 512;

/// A free span: its size and address in grains, as one number, and the span's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Free {
    key: u128,
    pub(super) number: u32,
}

impl Free {
    pub(super) fn new(grains: u64, address: u64, number: u32) -> Self {
        Free { key: u128::from(grains) << 64 | u128::from(address), number }
    }

    pub(super) fn grains(self) -> u64 {
        (self.key >> 64) as u64
    }
}

/// See the module.
#[derive(Clone)]
pub(super) struct FreeList {
    /// Each backwards: blocks are freed from the last to the first more often than not, and taken from the first.
    bins: Vec<Vec<Free>>,
    occupied: [u64; BINS / 64],
}

impl Default for FreeList {
    fn default() -> Self {
        FreeList { bins: vec![Vec::new(); BINS], occupied: [0; BINS / 64] }
    }
}

impl FreeList {
    pub(super) fn insert(&mut self, span: Free) {
        let number = bin(span.grains());
        let bin = &mut self.bins[number];
        bin.insert(count_from_end(bin, |other| other.key > span.key), span);
        self.occupied[number / 64] |= 1 << (number % 64);
    }

    pub(super) fn remove(&mut self, span: Free) {
        let number = bin(span.grains());
        let place = count_from_end(&self.bins[number], |other| other.key > span.key);
        self.take(number, place);
    }

    /// Takes out the smallest span with at least this many grains, the one with the lowest address of several.
    pub(super) fn take_best(&mut self, grains: u64) -> Option<u32> {
        let own = bin(grains);
        let large_enough = count_from_end(&self.bins[own], |span| span.grains() >= grains);
        if large_enough > 0 {
            return Some(self.take(own, large_enough - 1));
        }
        let next = self.next_occupied(own + 1)?;
        Some(self.take(next, self.bins[next].len() - 1))
    }

    fn take(&mut self, bin: usize, place: usize) -> u32 {
        let Free { number, .. } = self.bins[bin].remove(place);
        if self.bins[bin].is_empty() {
            self.occupied[bin / 64] &= !(1 << (bin % 64));
        }
        number
    }

    fn next_occupied(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Free> + '_ {
        self.bins.iter().flatten().copied()
    }
}

/// Where spans of this size are listed.
fn bin(grains: u64) -> usize {
    let exponent = (grains | 16).ilog2() - 4;
    (exponent as usize * 16 + (grains >> exponent) as usize).min(BINS - 1)
}

/// How many spans come before the first that is not so: looked for from the end, where it mostly is.
fn count_from_end(bin: &[Free], before: impl Fn(&Free) -> bool) -> usize {
    bin.iter().rposition(before).map_or(0, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn bins_follow_the_order_of_sizes(size in 1u64..1 << 52, more in 0u64..1 << 20) {
            prop_assert!(bin(size) <= bin(size + more));
            prop_assert!(bin(size) < BINS);
        }

        #[test]
        fn the_best_fit_is_that_of_a_sorted_list(
            sizes in prop::collection::vec((1u64..8, 0u32..40), 1..80),
            wanted in prop::collection::vec((1u64..8, 0u32..40), 1..80),
        ) {
            let size = |(digit, zeros): (u64, u32)| digit << zeros;
            let mut list = FreeList::default();
            let mut sorted = BTreeSet::new();
            for (number, grains) in (0..).zip(sizes.iter().copied().map(size)) {
                // Thirteen segments, each with its spans in another order than that of their numbers.
                let address = u64::from(number * 7 % 13) << 32 | u64::from(100 - number);
                list.insert(Free::new(grains, address, number));
                sorted.insert((grains, address, number));
            }
            for grains in wanted.into_iter().map(size) {
                let expected = sorted.range((grains, 0, 0)..).next().copied();
                prop_assert_eq!(list.take_best(grains), expected.map(|(.., number)| number));
                if let Some(span) = expected {
                    // What is left of it, if anything, takes its place.
                    sorted.remove(&span);
                    let (whole, address, number) = span;
                    if whole > grains {
                        list.insert(Free::new(whole - grains, address + grains, number));
                        sorted.insert((whole - grains, address + grains, number));
                    }
                }
                // Now and then one merges and is taken out by its place.
                if let Some(span) = sorted.last().copied().filter(|_| grains % 3 == 0) {
                    sorted.remove(&span);
                    list.remove(Free::new(span.0, span.1, span.2));
                }
            }
            let mut left: Vec<u32> = list.iter().map(|span| span.number).collect();
            left.sort_unstable();
            let mut expected: Vec<u32> = sorted.iter().map(|span| span.2).collect();
            expected.sort_unstable();
            prop_assert_eq!(left, expected);
        }
    }
}
