//! PyTorch's CUDA caching allocator: one stream, default settings, no real memory.
//!
//! Requests are rounded to 512 B. Up to 1 MiB they come from 2 MiB segments of the small pool; larger
//! ones from the large pool, whose segments are 20 MiB below 10 MiB and else the request rounded to
//! 2 MiB. The smallest free block that fits is taken, lowest address first, and split when the rest is
//! worth keeping; freed neighbours merge. At the device's limit wholly free segments are given back and
//! the request is tried once more.

use super::free_list::{FreeList, FreeSpan};

const MIB: u64 = 1 << 20;
const GRAIN: u64 = 512;
const SMALL_REQUEST: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const LARGE_REQUEST: u64 = 10 * MIB;
const NONE: u32 = u32::MAX;

/// The request does not fit under the limit, even after giving back every free segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the device has no room for {wanted} more bytes")]
pub struct OutOfMemory {
    /// Size of the segment that was asked of the device.
    pub wanted: u64,
}

/// A block in use. Not `Clone`: it is returned once.
#[derive(PartialEq, Eq, Debug)]
pub struct Block(u32);

#[derive(Clone, Copy)]
struct Span {
    size: u64,
    /// Segment number in the high half, offset within it in 512 B grains in the low half.
    address: u64,
    previous: u32,
    next: u32,
    small: bool,
    free: bool,
}

impl Span {
    fn as_free(&self, index: u32) -> FreeSpan {
        FreeSpan::new(self.size / GRAIN, self.address, index)
    }
}

/// The allocator's state.
#[derive(Default)]
pub struct Allocator {
    spans: Vec<Span>,
    unused: Vec<u32>,
    /// Free spans of the large and of the small pool.
    free: [FreeList; 2],
    segments: u64,
    reserved: u64,
    peak_reserved: u64,
    allocated: u64,
    peak_allocated: u64,
    limit: Option<u64>,
}

impl Allocator {
    /// An allocator on a device with this much room, or without end.
    pub fn new(limit: Option<u64>) -> Self {
        Allocator { limit, ..Allocator::default() }
    }

    /// Bytes asked of the device now.
    pub fn reserved(&self) -> u64 {
        self.reserved
    }

    /// The most bytes ever asked of the device: what the driver reports for the process.
    pub fn peak_reserved(&self) -> u64 {
        self.peak_reserved
    }

    /// Bytes in blocks that are in use.
    pub fn allocated(&self) -> u64 {
        self.allocated
    }

    /// The most bytes ever in use at once.
    pub fn peak_allocated(&self) -> u64 {
        self.peak_allocated
    }

    /// From now on the device has room without end.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }

    /// Takes a block of at least `bytes`.
    pub fn allocate(&mut self, bytes: u64) -> Result<Block, OutOfMemory> {
        let size = bytes.max(1).next_multiple_of(GRAIN);
        let small = size <= SMALL_REQUEST;
        let index = match self.free[usize::from(small)].take_best(size / GRAIN) {
            Some(span) => span.index(),
            None => self.open_segment(size, small)?,
        };
        self.split(index, size);
        let span = &mut self.spans[index as usize];
        span.free = false;
        self.allocated += span.size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        Ok(Block(index))
    }

    /// Gives a block back to its pool, merged with free neighbours.
    pub fn free(&mut self, block: Block) {
        let mut index = block.0;
        let Span { size, previous, next, .. } = self.spans[index as usize];
        self.allocated -= size;
        if previous != NONE && self.spans[previous as usize].free {
            self.forget_free(previous);
            self.absorb(previous, index);
            index = previous;
        }
        if next != NONE && self.spans[next as usize].free {
            self.forget_free(next);
            self.absorb(index, next);
        }
        self.spans[index as usize].free = true;
        self.remember_free(index);
    }

    fn open_segment(&mut self, size: u64, small: bool) -> Result<u32, OutOfMemory> {
        let wanted = match size {
            _ if small => SMALL_SEGMENT,
            size if size < LARGE_REQUEST => LARGE_SEGMENT,
            size => size.next_multiple_of(2 * MIB),
        };
        let limit = self.limit.unwrap_or(u64::MAX);
        if self.reserved.saturating_add(wanted) > limit {
            self.release_free_segments();
            if self.reserved.saturating_add(wanted) > limit {
                return Err(OutOfMemory { wanted });
            }
        }
        self.reserved += wanted;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.segments += 1;
        Ok(self.add_span(Span {
            size: wanted,
            address: self.segments << 32,
            previous: NONE,
            next: NONE,
            small,
            free: false,
        }))
    }

    fn release_free_segments(&mut self) {
        let spans = &self.spans;
        let mut returned = 0;
        for pool in &mut self.free {
            pool.retain(|free| {
                let span = spans[free.index() as usize];
                let whole = span.previous == NONE && span.next == NONE;
                if whole {
                    returned += span.size;
                }
                !whole
            });
        }
        self.reserved -= returned;
    }

    fn split(&mut self, index: u32, size: u64) {
        let span = self.spans[index as usize];
        let rest = span.size - size;
        let keep = if span.small { rest >= GRAIN } else { rest > SMALL_REQUEST };
        if !keep {
            return;
        }
        let tail = self.add_span(Span {
            size: rest,
            address: span.address + size / GRAIN,
            previous: index,
            next: span.next,
            small: span.small,
            free: true,
        });
        if span.next != NONE {
            self.spans[span.next as usize].previous = tail;
        }
        let head = &mut self.spans[index as usize];
        head.next = tail;
        head.size = size;
        self.remember_free(tail);
    }

    /// Appends the span `right` to its left neighbour.
    fn absorb(&mut self, left: u32, right: u32) {
        let Span { size, next, .. } = self.spans[right as usize];
        let merged = &mut self.spans[left as usize];
        merged.size += size;
        merged.next = next;
        if next != NONE {
            self.spans[next as usize].previous = left;
        }
        self.unused.push(right);
    }

    fn add_span(&mut self, span: Span) -> u32 {
        if let Some(index) = self.unused.pop() {
            self.spans[index as usize] = span;
            return index;
        }
        self.spans.push(span);
        (self.spans.len() - 1) as u32
    }

    fn remember_free(&mut self, index: u32) {
        let span = &self.spans[index as usize];
        self.free[usize::from(span.small)].insert(span.as_free(index));
    }

    fn forget_free(&mut self, index: u32) {
        let span = &self.spans[index as usize];
        self.free[usize::from(span.small)].remove(span.as_free(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn segments_have_the_sizes_of_pytorch() {
        let cases = [
            (1, 2 * MIB),
            (MIB, 2 * MIB),
            (MIB + 1, 20 * MIB),
            (10 * MIB - 512, 20 * MIB),
            (10 * MIB, 10 * MIB),
            (10 * MIB + 1, 12 * MIB),
            (33 * MIB, 34 * MIB),
        ];
        for (request, reserved) in cases {
            let mut allocator = Allocator::new(None);
            allocator.allocate(request).unwrap();
            assert_eq!(allocator.reserved(), reserved, "request of {request}");
        }
    }

    #[test]
    fn the_tightest_free_block_is_taken() {
        let mut allocator = Allocator::new(None);
        let wide = allocator.allocate(40 * MIB).unwrap();
        let tight = allocator.allocate(30 * MIB).unwrap();
        allocator.free(wide);
        allocator.free(tight);
        let _held = allocator.allocate(29 * MIB).unwrap();
        allocator.allocate(40 * MIB).unwrap();
        assert_eq!(allocator.reserved(), 70 * MIB, "the 40 MiB block was left whole");
    }

    #[test]
    fn a_large_rest_of_a_mebibyte_is_not_split_off() {
        let mut allocator = Allocator::new(None);
        let block = allocator.allocate(31 * MIB).unwrap();
        assert_eq!(allocator.allocated(), 32 * MIB);
        allocator.free(block);
        assert_eq!(allocator.allocated(), 0);
    }

    #[test]
    fn at_the_limit_free_segments_are_given_back_first() {
        let mut allocator = Allocator::new(Some(100 * MIB));
        let first = allocator.allocate(60 * MIB).unwrap();
        allocator.free(first);
        allocator.allocate(80 * MIB).unwrap();
        assert_eq!(allocator.reserved(), 80 * MIB);
        assert_eq!(allocator.allocate(30 * MIB), Err(OutOfMemory { wanted: 30 * MIB }));
    }

    proptest! {
        #[test]
        fn everything_freed_is_free_again(
            requests in prop::collection::vec((1u64..64 * MIB, any::<prop::sample::Index>()), 1..60)
        ) {
            let mut allocator = Allocator::new(None);
            let mut held = Vec::new();
            for (bytes, which) in requests {
                held.push(allocator.allocate(bytes).unwrap());
                if held.len() > 4 {
                    let block = held.swap_remove(which.index(held.len()));
                    allocator.free(block);
                }
                prop_assert!(allocator.allocated() <= allocator.reserved());
            }
            held.into_iter().for_each(|block| allocator.free(block));
            prop_assert_eq!(allocator.allocated(), 0);
            let spans = allocator.free.iter().flat_map(FreeList::iter).map(|free| allocator.spans[free.index() as usize]);
            let listed: u64 = spans.clone().map(|span| span.size).sum();
            prop_assert_eq!(listed, allocator.reserved());
            let whole = |span: Span| span.previous == NONE && span.next == NONE;
            prop_assert!(spans.clone().all(whole), "free neighbours were merged");
        }
    }
}
