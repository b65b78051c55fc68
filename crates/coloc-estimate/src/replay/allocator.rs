//! PyTorch's CUDA caching allocator: one stream, default settings, no real memory.
//!
//! Requests are rounded to 512 B. Up to 1 MiB they come from 2 MiB segments of the small pool; larger
//! ones from the large pool, whose segments are 20 MiB below 10 MiB and else the request rounded to
//! 2 MiB. The smallest free block that fits is taken, lowest address first, and split when the rest is
//! worth keeping; freed neighbours merge. At the device's limit wholly free segments are given back and
//! the request is tried once more.

use super::free_list::{FreeList, NONE, Span};

const MIB: u64 = 1 << 20;
/// Requests are rounded to this.
pub(super) const GRAIN: u64 = 512;
const SMALL_REQUEST: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const LARGE_REQUEST: u64 = 10 * MIB;
/// Spans that have room from the start: enough for most tasks, and little to ask for.
const FIRST_SPANS: usize = 1024;

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
        let (spans, unused) = (Vec::with_capacity(FIRST_SPANS), Vec::with_capacity(FIRST_SPANS));
        Allocator { limit, spans, unused, ..Allocator::default() }
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
    #[inline]
    pub fn allocate(&mut self, bytes: u64) -> Result<Block, OutOfMemory> {
        let grains = grains(bytes);
        let small = is_small(bytes);
        let index = match self.free[usize::from(small)].best(&self.spans, grains) {
            Some(index) => self.take(index, grains),
            None => self.open_segment(grains, small)?,
        };
        self.allocated += self.spans[index as usize].grains * GRAIN;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        Ok(Block(index))
    }

    /// Takes a block and gives it back at once. Returns the bytes that were in use in between.
    pub fn borrow(&mut self, bytes: u64) -> Result<u64, OutOfMemory> {
        let grains = grains(bytes);
        let small = is_small(bytes);
        let Some(index) = self.free[usize::from(small)].best(&self.spans, grains) else {
            let block = self.allocate(bytes)?;
            let in_use = self.allocated;
            self.free(block);
            return Ok(in_use);
        };
        // A free block has no free neighbours: what is split off it merges again, so only the peak can
        // tell that it was used.
        let span = &self.spans[index as usize];
        let taken =
            if worth_keeping(span.small, span.grains - grains) { grains } else { span.grains };
        let in_use = self.allocated + taken * GRAIN;
        self.peak_allocated = self.peak_allocated.max(in_use);
        Ok(in_use)
    }

    /// Size of the largest free block of the small pool.
    pub(super) fn largest_free_small(&self) -> u64 {
        self.free[1].largest().map_or(0, |index| self.spans[index as usize].grains * GRAIN)
    }

    /// Gives a block back to its pool, merged with free neighbours.
    #[inline]
    pub fn free(&mut self, block: Block) {
        let index = block.0;
        let Span { grains, address, previous, next, small, .. } = self.spans[index as usize];
        self.allocated -= grains * GRAIN;
        let pool = &mut self.free[usize::from(small)];
        let is_free = |index: u32| index != NONE && self.spans[index as usize].free;
        let (left, right) = (is_free(previous), is_free(next));
        if !left && !right {
            self.spans[index as usize].free = true;
            return pool.insert(&mut self.spans, index);
        }
        // The free neighbour takes the block over; of two, the left one takes the right one too.
        let heir = if left { previous } else { next };
        let mut size = grains + self.spans[heir as usize].grains;
        if left && right {
            pool.remove(&mut self.spans, next);
            size += self.spans[next as usize].grains;
        }
        let start = address.min(self.spans[heir as usize].address);
        pool.resize(&mut self.spans, heir, size, start);
        self.unlink(index);
        if left && right {
            self.unlink(next);
        }
    }

    /// Takes a span out of its segment's chain; its bytes belong to a neighbour now.
    #[inline(always)]
    fn unlink(&mut self, index: u32) {
        let Span { previous, next, .. } = self.spans[index as usize];
        if previous != NONE {
            self.spans[previous as usize].next = next;
        }
        if next != NONE {
            self.spans[next as usize].previous = previous;
        }
        self.unused.push(index);
    }

    /// A new segment; what is asked for stands at its start, the rest is free.
    #[cold]
    fn open_segment(&mut self, grains: u64, small: bool) -> Result<u32, OutOfMemory> {
        let size = grains * GRAIN;
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
        let mut span = Span::new(wanted / GRAIN, self.segments << 32, small);
        span.free = true;
        let index = self.add_span(span);
        self.free[usize::from(small)].insert(&mut self.spans, index);
        Ok(self.take(index, grains))
    }

    fn release_free_segments(&mut self) {
        for pool in &mut self.free {
            let whole = |index: &u32| {
                let span = &self.spans[*index as usize];
                span.previous == NONE && span.next == NONE
            };
            let returned: Vec<u32> = pool.iter(&self.spans).filter(whole).collect();
            for index in returned {
                pool.remove(&mut self.spans, index);
                self.reserved -= self.spans[index as usize].grains * GRAIN;
            }
        }
    }

    /// Takes a free span, or its first grains when the rest is worth keeping. The rest keeps its place in
    /// the free list more often than not.
    #[inline(always)]
    fn take(&mut self, index: u32, grains: u64) -> u32 {
        let Span { grains: whole, address, previous, small, .. } = self.spans[index as usize];
        let pool = &mut self.free[usize::from(small)];
        let rest = whole - grains;
        if !worth_keeping(small, rest) {
            pool.remove(&mut self.spans, index);
            self.spans[index as usize].free = false;
            return index;
        }
        pool.resize(&mut self.spans, index, rest, address + grains);
        let mut head = Span::new(grains, address, small);
        (head.previous, head.next) = (previous, index);
        let head = self.add_span(head);
        self.spans[index as usize].previous = head;
        if previous != NONE {
            self.spans[previous as usize].next = head;
        }
        head
    }

    #[inline(always)]
    fn add_span(&mut self, span: Span) -> u32 {
        if let Some(index) = self.unused.pop() {
            self.spans[index as usize] = span;
            return index;
        }
        self.spans.push(span);
        (self.spans.len() - 1) as u32
    }
}

/// Whether a request of this many bytes is met by the small pool.
pub(super) fn is_small(bytes: u64) -> bool {
    bytes <= SMALL_REQUEST
}

fn grains(bytes: u64) -> u64 {
    bytes.max(1).div_ceil(GRAIN)
}

/// Whether the rest of a block becomes a block of its own.
fn worth_keeping(small: bool, rest: u64) -> bool {
    if small { rest > 0 } else { rest > SMALL_REQUEST / GRAIN }
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
            let spans = allocator.free.iter()
                .flat_map(|pool| pool.iter(&allocator.spans))
                .map(|index| allocator.spans[index as usize]);
            let listed: u64 = spans.clone().map(|span| span.grains * GRAIN).sum();
            prop_assert_eq!(listed, allocator.reserved());
            let whole = |span: Span| span.previous == NONE && span.next == NONE;
            prop_assert!(spans.clone().all(whole), "free neighbours were merged");
        }
    }
}
