//! The free spans of one pool, ordered by size and then by address.
//!
//! Spans are binned by size, sixteen bins for each power of two, with a bitmap of the bins that hold
//! any. The tightest fit is the smallest span of its own bin that is large enough, or the smallest of
//! the next bin that is not empty.

/// Bins below this many grains hold one size each; above, sixteen bins share a power of two.
const EXACT: u64 = 16;
const BINS: usize = 16 + 29 * 16;
const WORDS: usize = BINS.div_ceil(64);

/// A free span as one number, so that order by size, then address, is a plain comparison: size in
/// grains, segment, offset in grains and index, 32 bits each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FreeSpan(u128);

impl FreeSpan {
    pub(super) fn new(grains: u64, address: u64, index: u32) -> Self {
        FreeSpan(u128::from(grains) << 96 | u128::from(address) << 32 | u128::from(index))
    }

    pub(super) fn index(self) -> u32 {
        self.0 as u32
    }

    fn grains(self) -> u64 {
        (self.0 >> 96) as u64
    }
}

/// The free spans of one pool.
pub(super) struct FreeList {
    /// Each bin in descending order: the best fit is popped from the end.
    bins: Vec<Vec<FreeSpan>>,
    occupied: [u64; WORDS],
}

impl Default for FreeList {
    fn default() -> Self {
        FreeList { bins: vec![Vec::new(); BINS], occupied: [0; WORDS] }
    }
}

impl FreeList {
    pub(super) fn insert(&mut self, span: FreeSpan) {
        let bin = bin(span.grains());
        let spans = &mut self.bins[bin];
        let place = spans.iter().rposition(|other| *other > span).map_or(0, |last| last + 1);
        spans.insert(place, span);
        self.occupied[bin / 64] |= 1 << (bin % 64);
    }

    /// Takes out a span that is in the list.
    pub(super) fn remove(&mut self, span: FreeSpan) {
        let bin = bin(span.grains());
        let place = self.bins[bin].iter().rposition(|other| *other == span);
        self.bins[bin].remove(place.expect("a free span is always listed"));
        self.note_if_empty(bin);
    }

    /// Takes out the smallest span of at least this many grains, lowest address first.
    pub(super) fn take_best(&mut self, grains: u64) -> Option<FreeSpan> {
        let own = bin(grains);
        let in_own = self.bins[own].iter().rposition(|span| span.grains() >= grains);
        let (bin, place) = match in_own {
            Some(place) => (own, place),
            None => {
                let next = self.next_occupied(own + 1)?;
                (next, self.bins[next].len() - 1)
            }
        };
        let span = self.bins[bin].remove(place);
        self.note_if_empty(bin);
        Some(span)
    }

    /// Keeps only what `keep` says.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(FreeSpan) -> bool) {
        for bin in 0..BINS {
            self.bins[bin].retain(|span| keep(*span));
            self.note_if_empty(bin);
        }
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = FreeSpan> + Clone + '_ {
        self.bins.iter().flatten().copied()
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

    fn note_if_empty(&mut self, bin: usize) {
        if self.bins[bin].is_empty() {
            self.occupied[bin / 64] &= !(1 << (bin % 64));
        }
    }
}

fn bin(grains: u64) -> usize {
    if grains < EXACT {
        return grains as usize;
    }
    let exponent = u64::from(grains.ilog2());
    let within = (grains >> (exponent - 4)) & 15;
    // Anything past the last bin shares it; order within a bin keeps the search exact.
    ((EXACT + (exponent - 4) * 16 + within) as usize).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_fit_is_that_of_a_sorted_list(
            sizes in prop::collection::vec(1u64..100_000, 1..80),
            wanted in prop::collection::vec(1u64..120_000, 1..80),
        ) {
            let mut list = FreeList::default();
            let mut sorted = std::collections::BTreeSet::new();
            for (index, &grains) in sizes.iter().enumerate() {
                let span = FreeSpan::new(grains, index as u64 * 7 % 13, index as u32);
                list.insert(span);
                sorted.insert(span);
            }
            for grains in wanted {
                let expected = sorted.range(FreeSpan::new(grains, 0, 0)..).next().copied();
                prop_assert_eq!(list.take_best(grains), expected);
                if let Some(span) = expected {
                    sorted.remove(&span);
                }
            }
        }

        #[test]
        fn bins_follow_the_order_of_sizes(small in 1u64..u64::from(u32::MAX), more in 0u64..1 << 20) {
            prop_assert!(bin(small) <= bin((small + more).min(u64::from(u32::MAX))));
        }
    }
}
