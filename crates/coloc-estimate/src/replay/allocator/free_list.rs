//! The free spans of both pools, ordered by size and then by address.
//!
//! Spans are binned by size, sixteen bins for each power of two, with a bitmap of the bins that hold
//! any. The tightest fit is the smallest span of its own bin that is large enough, or the smallest of
//! the next bin that is not empty. A bin's list is a ring through the spans themselves that begins and
//! ends at the bin's own entry, so that nothing is allocated and no end is a special case. One span of
//! each pool is at hand instead of listed.

use super::bins::{BINS, LARGE_BINS, bin};

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
/// The same: it is free and at hand.
const AT_HAND: u32 = u32::MAX - 1;

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
        self.smaller != IN_USE
    }

    /// Its whole segment is in one piece.
    pub(super) fn is_segment(&self) -> bool {
        self.previous == NONE && self.next == NONE
    }

    #[inline(always)]
    pub(super) fn is_below(&self, grains: u64, address: u64) -> bool {
        // As one number: a second question would have to be guessed too.
        let order = |grains: u64, address: u64| u128::from(grains) << 64 | u128::from(address);
        order(self.grains, self.address) < order(grains, address)
    }
}

/// The span of a pool that was freed or cut last. It is not listed: more often than not it is the next to
/// be taken, cut again or merged.
#[derive(Clone, Copy)]
struct Hand {
    index: u32,
    /// The least request that it was the tightest fit for. Nothing is listed while it is at hand, so it is
    /// the tightest fit for all from there on that it has room for.
    least: u64,
}

const EMPTY: Hand = Hand { index: NONE, least: u64::MAX };

/// The free spans of both pools. The methods take the spans, of which the first are [`ENTRIES`].
pub(super) struct FreeList {
    occupied: [u64; WORDS],
    hands: [Hand; 2],
}

impl Default for FreeList {
    fn default() -> Self {
        FreeList { occupied: [0; WORDS], hands: [EMPTY; 2] }
    }
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
    /// A span is free from now on.
    #[inline(always)]
    pub(super) fn insert(&mut self, spans: &mut [Span], pool: Pool, index: u32) {
        self.put_at_hand(spans, pool, Hand { index, least: u64::MAX });
    }

    #[inline(always)]
    fn put_at_hand(&mut self, spans: &mut [Span], pool: Pool, hand: Hand) {
        spans[hand.index as usize].smaller = AT_HAND;
        let before = std::mem::replace(&mut self.hands[pool as usize], hand).index;
        if before != NONE {
            self.link(spans, pool, before);
        }
    }

    #[inline(always)]
    fn link(&mut self, spans: &mut [Span], pool: Pool, index: u32) {
        let Span { grains, address, .. } = spans[index as usize];
        let bin = bin(pool, grains);
        let Span { smaller: last, larger: first, .. } = spans[bin as usize];
        let below = |index: u32| spans[index as usize].is_below(grains, address);
        // What is equal is freed from the last to the first more often than not: it comes first.
        let (smaller, larger) = if !below(first) {
            (bin, first)
        } else if below(last) {
            (last, bin)
        } else {
            place_between(spans, (first, last), below)
        };
        let span = &mut spans[index as usize];
        (span.smaller, span.larger) = (smaller, larger);
        spans[smaller as usize].larger = index;
        spans[larger as usize].smaller = index;
        self.occupied[bin as usize / 64 % WORDS] |= 1 << (bin % 64);
    }

    /// A span is no more free.
    #[inline(always)]
    pub(super) fn remove(&mut self, spans: &mut [Span], pool: Pool, index: u32) {
        if self.hands[pool as usize].index == index {
            self.hands[pool as usize] = EMPTY;
        } else {
            self.unlink(spans, index);
        }
        spans[index as usize].smaller = IN_USE;
    }

    #[inline(always)]
    fn unlink(&mut self, spans: &mut [Span], index: u32) {
        let Span { smaller, larger, .. } = spans[index as usize];
        spans[smaller as usize].larger = larger;
        spans[larger as usize].smaller = smaller;
        // Only a bin's own entry stands on both sides. Nothing is asked: the answer could not be guessed.
        let emptied = u64::from(smaller == larger);
        self.occupied[smaller as usize / 64 % WORDS] &= !(emptied << (smaller % 64));
    }

    /// The tightest fit for `least` loses this many grains at its start.
    #[inline(always)]
    pub(super) fn cut(
        &mut self,
        spans: &mut [Span],
        pool: Pool,
        index: u32,
        least: u64,
        grains: u64,
    ) {
        let span = &mut spans[index as usize];
        span.grains -= grains;
        span.address += grains;
        let hand = &mut self.hands[pool as usize];
        if hand.index == index {
            hand.least = hand.least.min(least);
        } else {
            self.unlink(spans, index);
            self.put_at_hand(spans, pool, Hand { index, least });
        }
    }

    /// A span grows to this size and begins at this address.
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
        (span.grains, span.address) = (grains, address);
        let hand = &mut self.hands[pool as usize];
        if hand.index == index {
            hand.least = u64::MAX;
        } else {
            self.unlink(spans, index);
            self.insert(spans, pool, index);
        }
    }

    /// The smallest span of a pool with at least this many grains, whose bin is `own`; lowest address first.
    #[inline(always)]
    pub(super) fn best(&self, spans: &[Span], pool: Pool, grains: u64, own: u32) -> Option<u32> {
        let Hand { index, least } = self.hands[pool as usize];
        let hand = &spans[index as usize];
        if (least <= grains) & (grains <= hand.grains) {
            return Some(index);
        }
        let listed = self.best_listed(spans, pool, grains, own);
        // Where there is none, its entry is larger than any span.
        let Span { grains: other, address, .. } = spans[listed as usize];
        let at_hand = (grains <= hand.grains) & hand.is_below(other, address);
        let best = if at_hand { index } else { listed };
        (best > LENT).then_some(best)
    }

    /// The same of those that are listed, or an entry.
    #[inline(always)]
    fn best_listed(&self, spans: &[Span], pool: Pool, grains: u64, own: u32) -> u32 {
        // Of its own bin all may be too small, or there may be none.
        let largest = spans[own as usize].smaller;
        if (largest != own) & (spans[largest as usize].grains >= grains) {
            let mut index = spans[own as usize].larger;
            while spans[index as usize].grains < grains {
                index = spans[index as usize].larger;
            }
            return index;
        }
        match self.next_occupied(own + 1) {
            Some(bin) if pool == Pool::Large || bin < LARGE_BINS => spans[bin as usize].larger,
            _ => NONE,
        }
    }

    /// Whether a span of the small pool surely has so many grains, which belong into bin `own`: one of a later bin,
    /// or the one at hand.
    #[inline(always)]
    pub(super) fn has_small(&self, spans: &[Span], grains: u64, own: u32) -> bool {
        let hand = self.hands[Pool::Small as usize].index;
        let at_hand = (hand != NONE) & (spans[hand as usize].grains >= grains);
        at_hand || self.next_occupied(own + 1).is_some_and(|bin| bin < LARGE_BINS)
    }

    /// Whether blocks of the small pool, of so many grains together and none larger than `largest`, find room
    /// whatever their order.
    pub(super) fn small_surely_fit(&self, spans: &[Span], grains: u64, largest: u64) -> bool {
        // One that did not would have found every span smaller than itself: each that is larger now would
        // have lost all but that.
        let mut room = 0;
        self.small_at_hand().into_iter().chain(self.listed_small(spans)).any(|index| {
            room += spans[index as usize].grains.saturating_sub(largest);
            room >= grains
        })
    }

    /// The largest span of the small pool.
    pub(super) fn largest_small(&self, spans: &[Span]) -> Option<u32> {
        let listed = self.listed_small(spans).next();
        let size = |index: &u32| (spans[*index as usize].grains, spans[*index as usize].address);
        listed.into_iter().chain(self.small_at_hand()).max_by_key(size)
    }

    fn small_at_hand(&self) -> Option<u32> {
        Some(self.hands[Pool::Small as usize].index).filter(|index| *index != NONE)
    }

    /// The listed spans of the small pool, from the largest down.
    fn listed_small<'a>(&'a self, spans: &'a [Span]) -> impl Iterator<Item = u32> + 'a {
        let occupied = |bin: &u32| self.occupied[*bin as usize / 64] >> (bin % 64) & 1 == 1;
        let smaller =
            |index: u32| Some(spans[index as usize].smaller).filter(|index| *index > LENT);
        (0..LARGE_BINS)
            .rev()
            .filter(occupied)
            .flat_map(move |bin| std::iter::successors(smaller(bin), move |&index| smaller(index)))
    }

    /// Every free span of both pools.
    pub(super) fn iter<'a>(
        &'a self,
        spans: &'a [Span],
    ) -> impl Iterator<Item = (Pool, u32)> + Clone + 'a {
        let listed = |index: u32| (index > LENT).then_some(index);
        let linked = (1..BINS).flat_map(move |bin| {
            let pool = if bin < LARGE_BINS { Pool::Small } else { Pool::Large };
            let larger = move |index: u32| listed(spans[index as usize].larger);
            std::iter::successors(larger(bin), move |&index| larger(index))
                .map(move |index| (pool, index))
        });
        let at_hand =
            [Pool::Small, Pool::Large].map(|pool| (pool, self.hands[pool as usize].index));
        linked.chain(at_hand.into_iter().filter(|(_, index)| *index != NONE))
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

/// The two of a bin that a span belongs between, looked for from both ends; neither before the first nor
/// behind the last.
#[inline(always)]
fn place_between(
    spans: &[Span],
    (mut larger, mut smaller): (u32, u32),
    below: impl Fn(u32) -> bool,
) -> (u32, u32) {
    loop {
        larger = spans[larger as usize].larger;
        if !below(larger) {
            return (spans[larger as usize].smaller, larger);
        }
        smaller = spans[smaller as usize].smaller;
        if below(smaller) {
            return (smaller, spans[smaller as usize].larger);
        }
    }
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
                let found = list.best(&spans, pool, grains, bin(pool, grains));
                prop_assert_eq!(found, expected.map(|(_, _, index)| index));
                if let Some(span) = expected {
                    // What is left of it, if that is of the same pool, takes its place.
                    sorted.remove(&span);
                    let (whole, address, index) = span;
                    let rest = whole - grains;
                    if rest > 0 && super::tests::pool(rest) == pool {
                        list.cut(&mut spans, pool, index, grains, grains);
                        sorted.insert((rest, address + grains, index));
                    } else {
                        list.remove(&mut spans, pool, index);
                    }
                }
            }
            let left: usize = sorted.iter().map(|pool| pool.len()).sum();
            prop_assert_eq!(list.iter(&spans).count(), left);
        }
    }
}
