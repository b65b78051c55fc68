//! The free spans of both pools, ordered by size and then by address.
//!
//! Spans are binned by size, sixteen bins for each power of two, with a bitmap of the bins that hold
//! any. The tightest fit is the smallest span of its own bin that is large enough, or the smallest of
//! the next bin that is not empty. A bin's list is a ring through the spans themselves that begins and
//! ends at the bin's own entry, so that nothing is allocated and no end is a special case.

/// Bins of both pools. Spans of the small pool are at most 4096 grains and in the bins below
/// `LARGE_BINS`; those of the large pool have at least 2049 and are in the bins from there on.
const BINS: u32 = 512;
const LARGE_BINS: u32 = 160;
const SHIFT: u32 = LARGE_BINS - 128;
const WORDS: usize = BINS as usize / 64;

/// Stands for a neighbour that does not exist: the entry of a bin that no span is small enough for.
/// It is never free, and what is written to it is never read.
pub(super) const NONE: u32 = 0;
/// Stands for a neighbour that is never freed and has no span of its own; as inert as [`NONE`].
pub(super) const WALL: u32 = BINS;
/// The same for what is lent together.
pub(super) const LENT: u32 = BINS + 1;

/// In place of a neighbour in the free list: the span is in use.
const IN_USE: u32 = u32::MAX;
/// The same: it is about to be freed, together with others.
const LEAVING: u32 = u32::MAX - 1;

/// Which pool a span belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pool {
    Large,
    Small,
}

/// A run of bytes of one segment, in use or free; or the entry of a bin.
#[derive(Clone, Copy)]
pub(super) struct Span {
    /// Size in 512 B grains.
    pub(super) grains: u64,
    /// Segment number in the high half, offset within it in grains in the low half.
    pub(super) address: u64,
    /// Neighbours in the segment.
    pub(super) previous: u32,
    pub(super) next: u32,
    /// Neighbours in the free list, while it is free.
    smaller: u32,
    larger: u32,
}

impl Span {
    /// A span in use.
    #[inline(always)]
    pub(super) const fn new(grains: u64, address: u64) -> Self {
        Span { grains, address, previous: NONE, next: NONE, smaller: IN_USE, larger: IN_USE }
    }

    pub(super) fn is_free(&self) -> bool {
        self.smaller < LEAVING
    }

    /// Whether it is about to be freed.
    pub(super) fn is_leaving(&self) -> bool {
        self.smaller == LEAVING
    }

    /// Says of a span in use whether it is about to be freed.
    pub(super) fn set_leaving(&mut self, leaving: bool) {
        self.smaller = if leaving { LEAVING } else { IN_USE };
    }

    /// Its whole segment is in one piece.
    pub(super) fn is_segment(&self) -> bool {
        self.previous == NONE && self.next == NONE
    }

    #[inline(always)]
    pub(super) fn is_below(&self, grains: u64, address: u64) -> bool {
        self.grains < grains || (self.grains == grains && self.address < address)
    }
}

/// A span of the free list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) index: u32,
    bin: u32,
}

/// The free spans of both pools. The methods take the spans, of which the first are [`ENTRIES`].
#[derive(Default)]
pub(super) struct FreeList {
    occupied: [u64; WORDS],
}

/// The bins' own entries, at the start of the spans: larger than any span, so that a search ends there.
/// The neighbours that are none stand behind them.
pub(super) static ENTRIES: [Span; LENT as usize + 1] = entries();

const fn entries() -> [Span; LENT as usize + 1] {
    let mut entries = [Span::new(u64::MAX, u64::MAX); LENT as usize + 1];
    let mut bin = NONE + 1;
    while bin < BINS {
        (entries[bin as usize].smaller, entries[bin as usize].larger) = (bin, bin);
        bin += 1;
    }
    entries
}

impl FreeList {
    #[inline(always)]
    pub(super) fn insert(&mut self, spans: &mut [Span], pool: Pool, index: u32) -> Place {
        let Span { grains, address, .. } = spans[index as usize];
        let bin = bin(pool, grains);
        self.link(spans, index, grains, address, bin);
        Place { index, bin }
    }

    #[inline(always)]
    fn link(&mut self, spans: &mut [Span], index: u32, grains: u64, address: u64, bin: u32) {
        // Equal activations are freed in the order of their addresses more often than not.
        let mut smaller = spans[bin as usize].smaller;
        let mut larger = bin;
        if smaller != bin && !spans[smaller as usize].is_below(grains, address) {
            smaller = bin;
            larger = spans[bin as usize].larger;
            while spans[larger as usize].is_below(grains, address) {
                (smaller, larger) = (larger, spans[larger as usize].larger);
            }
        }
        let span = &mut spans[index as usize];
        (span.smaller, span.larger) = (smaller, larger);
        spans[smaller as usize].larger = index;
        spans[larger as usize].smaller = index;
        self.occupied[bin as usize / 64 % WORDS] |= 1 << (bin % 64);
    }

    /// Takes out a span that is in the list.
    #[inline(always)]
    pub(super) fn remove(&mut self, spans: &mut [Span], index: u32) {
        let span = &mut spans[index as usize];
        let (smaller, larger) = (span.smaller, span.larger);
        span.smaller = IN_USE;
        spans[smaller as usize].larger = larger;
        spans[larger as usize].smaller = smaller;
        // Only a bin's own entry stands on both sides.
        if smaller == larger {
            self.occupied[smaller as usize / 64 % WORDS] &= !(1 << (smaller % 64));
        }
    }

    /// A span of this bin loses grains at its start. Where it still follows on the one before it, nothing
    /// is linked anew.
    #[inline(always)]
    pub(super) fn shrink(&mut self, spans: &mut [Span], pool: Pool, place: Place, grains: u64) {
        let Place { index, bin: old_bin } = place;
        let span = &mut spans[index as usize];
        let rest = span.grains - grains;
        let address = span.address + grains;
        (span.grains, span.address) = (rest, address);
        let smaller = span.smaller;
        let new_bin = bin(pool, rest);
        let stays = new_bin == old_bin
            && (smaller == old_bin || spans[smaller as usize].is_below(rest, address));
        if !stays {
            self.remove(spans, index);
            self.link(spans, index, rest, address, new_bin);
        }
    }

    /// A span grows to this size and begins at this address. Where it still stands before the one that
    /// follows on it, nothing is linked anew.
    #[inline(always)]
    pub(super) fn grow(
        &mut self,
        spans: &mut [Span],
        pool: Pool,
        index: u32,
        grains: u64,
        address: u64,
    ) {
        let span = &mut spans[index as usize];
        let (old_bin, new_bin) = (bin(pool, span.grains), bin(pool, grains));
        (span.grains, span.address) = (grains, address);
        let larger = span.larger;
        // A bin's entry is larger than any span.
        if old_bin != new_bin || spans[larger as usize].is_below(grains, address) {
            self.remove(spans, index);
            self.link(spans, index, grains, address, new_bin);
        }
    }

    /// The smallest span of a pool with at least this many grains, lowest address first.
    #[inline(always)]
    pub(super) fn best(&self, spans: &[Span], pool: Pool, grains: u64) -> Option<Place> {
        let own = bin(pool, grains);
        let mut index = spans[own as usize].larger;
        while spans[index as usize].grains < grains {
            index = spans[index as usize].larger;
        }
        if index != own {
            return Some(Place { index, bin: own });
        }
        let bin = self.next_occupied(own + 1)?;
        let index = spans[bin as usize].larger;
        (pool == Pool::Large || bin < LARGE_BINS).then_some(Place { index, bin })
    }

    /// The largest span of the small pool.
    pub(super) fn largest_small(&self, spans: &[Span]) -> Option<u32> {
        let listed = |bin: &u32| self.occupied[*bin as usize / 64] >> (bin % 64) & 1 == 1;
        let last = (0..LARGE_BINS).rev().find(listed)?;
        Some(spans[last as usize].smaller)
    }

    /// Every free span of both pools.
    pub(super) fn iter<'a>(&'a self, spans: &'a [Span]) -> impl Iterator<Item = u32> + Clone + 'a {
        let listed = |index: u32| (index > LENT).then_some(index);
        (1..BINS).flat_map(move |bin| {
            let larger = move |index: u32| listed(spans[index as usize].larger);
            std::iter::successors(larger(bin), move |&index| larger(index))
        })
    }

    #[inline(always)]
    fn next_occupied(&self, from: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }
}

#[inline(always)]
fn bin(pool: Pool, grains: u64) -> u32 {
    let exponent = (grains | 16).ilog2() - 4;
    let within_pool = exponent * 16 + (grains >> exponent) as u32;
    let shift = if pool == Pool::Large { SHIFT } else { 0 };
    // Anything past the last bin shares it; order within a bin keeps the search exact.
    (within_pool + shift).min(BINS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pool(grains: u64) -> Pool {
        if grains > 4096 { Pool::Large } else { Pool::Small }
    }

    proptest! {
        #[test]
        fn the_best_fit_is_that_of_a_sorted_list(
            sizes in prop::collection::vec((1u64..8, 0u32..20), 1..80),
            wanted in prop::collection::vec((1u64..8, 0u32..20), 1..80),
        ) {
            let size = |(digit, zeros): (u64, u32)| digit << zeros;
            let mut list = FreeList::default();
            let mut spans: Vec<Span> = ENTRIES.to_vec();
            let mut sorted = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
            for (index, grains) in sizes.iter().copied().map(size).enumerate() {
                // Thirteen segments, each with its spans in another order than that of their numbers.
                let address = (index as u64 * 7 % 13) << 32 | (100 - index as u64);
                let index = spans.len() as u32;
                spans.push(Span::new(grains, address));
                list.insert(&mut spans, pool(grains), index);
                sorted[pool(grains) as usize].insert((grains, address, index));
            }
            prop_assert_eq!(list.iter(&spans).count(), sizes.len());
            let largest = sorted[Pool::Small as usize].last().map(|(_, _, index)| *index);
            prop_assert_eq!(list.largest_small(&spans), largest);
            for grains in wanted.into_iter().map(size) {
                let pool = pool(grains);
                let sorted = &mut sorted[pool as usize];
                let expected = sorted.range((grains, 0, 0)..).next().copied();
                let found = list.best(&spans, pool, grains);
                prop_assert_eq!(
                    found.map(|place| place.index),
                    expected.map(|(_, _, index)| index)
                );
                if let (Some(place), Some(span)) = (found, expected) {
                    // What is left of it, if that is of the same pool, is listed in its place.
                    sorted.remove(&span);
                    let (whole, address, index) = span;
                    let rest = whole - grains;
                    if rest > 0 && super::tests::pool(rest) == pool {
                        list.shrink(&mut spans, pool, place, grains);
                        sorted.insert((rest, address + grains, index));
                    } else {
                        list.remove(&mut spans, index);
                    }
                }
            }
            let left: usize = sorted.iter().map(|pool| pool.len()).sum();
            prop_assert_eq!(list.iter(&spans).count(), left);
        }

        #[test]
        fn bins_follow_the_order_of_sizes(size in 1u64..u64::from(u32::MAX), more in 0u64..1 << 20) {
            prop_assert!(bin(Pool::Small, size.min(4096)) <= bin(Pool::Small, (size + more).min(4096)));
            prop_assert!(bin(Pool::Small, size.min(4096)) < LARGE_BINS);
            let large = size.max(2049);
            prop_assert!(bin(Pool::Large, large) <= bin(Pool::Large, large + more));
            prop_assert!((LARGE_BINS..BINS).contains(&bin(Pool::Large, large)));
        }
    }
}
