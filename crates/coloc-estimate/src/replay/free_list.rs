//! The free spans of one pool, ordered by size and then by address.
//!
//! Spans are binned by size, sixteen bins for each power of two, with a bitmap of the bins that hold
//! any. The tightest fit is the smallest span of its own bin that is large enough, or the smallest of
//! the next bin that is not empty.

/// Bins below this many grains hold one size each; above, sixteen bins share a power of two.
const EXACT: u64 = 16;
const BINS: usize = 16 + 29 * 16;
const WORDS: usize = BINS.div_ceil(64);

/// The end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// A run of bytes of one segment, in use or free.
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
    /// The bin that it is in, while it is free.
    bin: u16,
    pub(super) small: bool,
    pub(super) free: bool,
}

impl Span {
    /// A span that no list holds yet.
    pub(super) fn new(grains: u64, address: u64, small: bool) -> Self {
        Span {
            grains,
            address,
            previous: NONE,
            next: NONE,
            smaller: NONE,
            larger: NONE,
            bin: 0,
            small,
            free: false,
        }
    }

    fn rank(&self) -> (u64, u64) {
        (self.grains, self.address)
    }
}

/// The free spans of one pool. The lists run through the spans themselves, so that nothing is allocated
/// while a task is replayed.
pub(super) struct FreeList {
    /// The smallest span of each bin; the others follow in ascending order.
    heads: [u32; BINS],
    /// The largest span of each bin.
    tails: [u32; BINS],
    occupied: [u64; WORDS],
}

impl Default for FreeList {
    fn default() -> Self {
        FreeList { heads: [NONE; BINS], tails: [NONE; BINS], occupied: [0; WORDS] }
    }
}

impl FreeList {
    #[inline(always)]
    pub(super) fn insert(&mut self, spans: &mut [Span], index: u32) {
        let rank = spans[index as usize].rank();
        self.link(spans, index, rank, bin(rank.0));
    }

    #[inline(always)]
    fn link(&mut self, spans: &mut [Span], index: u32, rank: (u64, u64), bin: usize) {
        let (smaller, larger) = self.place(spans, bin, rank);
        let span = &mut spans[index as usize];
        (span.smaller, span.larger, span.bin) = (smaller, larger, bin as u16);
        *self.after(spans, bin, smaller) = index;
        *self.before(spans, bin, larger) = index;
        self.occupied[bin / 64] |= 1 << (bin % 64);
    }

    /// Takes out a span that is in the list.
    #[inline(always)]
    pub(super) fn remove(&mut self, spans: &mut [Span], index: u32) {
        let Span { smaller, larger, bin, .. } = spans[index as usize];
        let bin = usize::from(bin);
        *self.after(spans, bin, smaller) = larger;
        *self.before(spans, bin, larger) = smaller;
        if self.heads[bin] == NONE {
            self.occupied[bin / 64] &= !(1 << (bin % 64));
        }
    }

    /// Gives a span that is in the list another size and start. Where it still stands between the same
    /// two, nothing is linked anew.
    #[inline(always)]
    pub(super) fn resize(&mut self, spans: &mut [Span], index: u32, grains: u64, address: u64) {
        let span = &mut spans[index as usize];
        let (smaller, larger, new_bin) = (span.smaller, span.larger, bin(grains));
        let same_bin = usize::from(span.bin) == new_bin;
        let rank = (grains, address);
        (span.grains, span.address) = rank;
        let stays = same_bin
            && (smaller == NONE || spans[smaller as usize].rank() < rank)
            && (larger == NONE || rank < spans[larger as usize].rank());
        if !stays {
            self.remove(spans, index);
            self.link(spans, index, rank, new_bin);
        }
    }

    /// Between which two spans of a bin a new one belongs.
    #[inline(always)]
    fn place(&self, spans: &[Span], bin: usize, rank: (u64, u64)) -> (u32, u32) {
        // Equal activations are freed in the order of their addresses more often than not.
        let tail = self.tails[bin];
        if tail == NONE || spans[tail as usize].rank() < rank {
            return (tail, NONE);
        }
        let (mut smaller, mut larger) = (NONE, self.heads[bin]);
        while spans[larger as usize].rank() < rank {
            (smaller, larger) = (larger, spans[larger as usize].larger);
        }
        (smaller, larger)
    }

    /// The smallest span of at least this many grains, lowest address first.
    #[inline(always)]
    pub(super) fn best(&self, spans: &[Span], grains: u64) -> Option<u32> {
        let own = bin(grains);
        let mut index = self.heads[own];
        while index != NONE {
            let span = &spans[index as usize];
            if span.grains >= grains {
                return Some(index);
            }
            index = span.larger;
        }
        self.next_occupied(own + 1).map(|bin| self.heads[bin])
    }

    /// The largest span.
    pub(super) fn largest(&self) -> Option<u32> {
        let word = self.occupied.iter().rposition(|bits| *bits != 0)?;
        Some(self.tails[word * 64 + self.occupied[word].ilog2() as usize])
    }

    /// Every span of the list.
    pub(super) fn iter<'a>(&'a self, spans: &'a [Span]) -> impl Iterator<Item = u32> + Clone + 'a {
        let listed = |index: u32| (index != NONE).then_some(index);
        self.heads.iter().flat_map(move |&head| {
            std::iter::successors(listed(head), move |&index| listed(spans[index as usize].larger))
        })
    }

    /// Where it is written which span follows on `smaller`.
    #[inline(always)]
    fn after<'a>(&'a mut self, spans: &'a mut [Span], bin: usize, smaller: u32) -> &'a mut u32 {
        match smaller {
            NONE => &mut self.heads[bin],
            _ => &mut spans[smaller as usize].larger,
        }
    }

    /// Where it is written which span comes before `larger`.
    #[inline(always)]
    fn before<'a>(&'a mut self, spans: &'a mut [Span], bin: usize, larger: u32) -> &'a mut u32 {
        match larger {
            NONE => &mut self.tails[bin],
            _ => &mut spans[larger as usize].smaller,
        }
    }

    #[inline(always)]
    fn next_occupied(&self, from: usize) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

#[inline(always)]
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
            let mut spans = Vec::new();
            let mut sorted = std::collections::BTreeSet::new();
            for (index, &grains) in sizes.iter().enumerate() {
                // Thirteen segments, each with its spans in another order than that of their numbers.
                let address = (index as u64 * 7 % 13) << 32 | (100 - index as u64);
                spans.push(Span::new(grains, address, true));
                list.insert(&mut spans, index as u32);
                sorted.insert((grains, address, index as u32));
            }
            prop_assert_eq!(list.iter(&spans).count(), sizes.len());
            prop_assert_eq!(list.largest(), sorted.last().map(|(_, _, index)| *index));
            for grains in wanted {
                let expected = sorted.range((grains, 0, 0)..).next().copied();
                let found = list.best(&spans, grains);
                prop_assert_eq!(found, expected.map(|(_, _, index)| index));
                if let Some(span) = expected {
                    list.remove(&mut spans, span.2);
                    sorted.remove(&span);
                }
            }
            prop_assert_eq!(list.iter(&spans).count(), sorted.len());
        }

        #[test]
        fn bins_follow_the_order_of_sizes(small in 1u64..u64::from(u32::MAX), more in 0u64..1 << 20) {
            prop_assert!(bin(small) <= bin((small + more).min(u64::from(u32::MAX))));
        }
    }
}
