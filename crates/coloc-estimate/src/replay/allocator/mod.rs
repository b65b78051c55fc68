//! PyTorch's CUDA caching allocator: one stream, default settings, no real memory.
//!
//! Requests are rounded to 512 B. Up to 1 MiB they come from 2 MiB segments of the small pool; larger
//! ones from the large pool, whose segments are 20 MiB below 10 MiB and else the request rounded to
//! 2 MiB. The smallest free block that fits is taken, lowest address first, and split when the rest is
//! worth keeping; freed neighbours merge. At the device's limit wholly free segments are given back and
//! the request is tried once more.

mod bins;
mod carving;
mod free_list;

use super::reuse::{Reused, shelved};
use bins::bin;
use free_list::{ENTRIES, FreeList, NONE, Pool, Span};

pub(super) use carving::{Blocks, Run};

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

shelved!(Span);

/// What is asked of the allocator, in its own terms: worked out once for tensors of the same size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) bytes: u64,
    grains: u64,
    /// Where the search for it begins.
    bin: u32,
}

impl Request {
    #[inline(always)]
    pub(super) fn new(bytes: u64) -> Self {
        let grains = bytes.max(1).div_ceil(GRAIN);
        Request { bytes, grains, bin: bin(pool_of(grains), grains) }
    }
}

/// A block in use, to be given back once.
#[derive(PartialEq, Eq, Debug)]
pub struct Block(pub(super) u32);

/// The allocator's state.
pub struct Allocator {
    spans: Reused<Span>,
    /// The first place that can be used again; each names the one after it as its next.
    unused: u32,
    free: FreeList,
    segments: u64,
    reserved: u64,
    peak_reserved: u64,
    /// Grains in blocks that are in use.
    taken: u64,
    limit: Option<u64>,
}

impl Allocator {
    /// An allocator on a device with this much room, or without end.
    pub fn new(limit: Option<u64>) -> Self {
        Self::with_capacity(limit, FIRST_SPANS)
    }

    /// The same, with room for about so many blocks.
    pub(super) fn with_capacity(limit: Option<u64>, blocks: usize) -> Self {
        let mut spans = Reused::with_capacity(ENTRIES.len() + blocks);
        spans.extend_from_slice(&ENTRIES);
        Allocator {
            spans,
            unused: NONE,
            free: FreeList::default(),
            segments: 0,
            reserved: 0,
            peak_reserved: 0,
            taken: 0,
            limit,
        }
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
        self.taken * GRAIN
    }

    /// From now on the device has room without end.
    pub fn lift_limit(&mut self) {
        self.limit = None;
    }

    /// Takes a block of at least `bytes`.
    pub fn allocate(&mut self, bytes: u64) -> Result<Block, OutOfMemory> {
        self.take(&Request::new(bytes))
    }

    /// Takes a block.
    #[inline(always)]
    pub(super) fn take(&mut self, request: &Request) -> Result<Block, OutOfMemory> {
        // Twice in the program, each for a pool that is known: a tenth less to compute.
        match pool_of(request.grains) {
            Pool::Small => self.take_from(Pool::Small, request),
            Pool::Large => self.take_from(Pool::Large, request),
        }
    }

    /// Takes a block and gives it back at once. Returns the bytes that were in use in between.
    pub(super) fn borrow(&mut self, request: &Request) -> Result<u64, OutOfMemory> {
        let grains = request.grains;
        let pool = pool_of(grains);
        if pool == Pool::Small && self.free.has_small(&self.spans, grains, request.bin) {
            // Whichever it is, no more than was asked for is taken of it.
            return Ok((self.taken + grains) * GRAIN);
        }
        let index = self.find(pool, request)?;
        // A free block has no free neighbours: what is split off it merges again, so only the peak can
        // tell that it was used.
        let whole = self.spans[index as usize].grains;
        let taken = if worth_keeping(pool, whole - grains) { grains } else { whole };
        Ok((self.taken + taken) * GRAIN)
    }

    /// The tightest fit, in a new segment if need be.
    #[inline(always)]
    fn find(&mut self, pool: Pool, request: &Request) -> Result<u32, OutOfMemory> {
        match self.free.best(&self.spans, pool, request.grains, request.bin) {
            Some(index) => Ok(index),
            None => self.open_segment(request.grains, pool),
        }
    }

    /// Size of the largest free block of the small pool.
    pub(super) fn largest_free_small(&self) -> u64 {
        let largest = self.free.largest_small(&self.spans);
        largest.map_or(0, |index| self.spans[index as usize].grains * GRAIN)
    }

    /// Gives a block back to its pool.
    #[inline(always)]
    pub fn free(&mut self, block: Block) {
        let grains = self.spans[block.0 as usize].grains;
        self.taken -= grains;
        match pool_of(grains) {
            Pool::Small => self.release(block.0, Pool::Small),
            Pool::Large => self.release(block.0, Pool::Large),
        }
    }

    /// Puts a span that is no more in use into the free list, merged with free neighbours.
    #[inline(always)]
    fn release(&mut self, index: u32, pool: Pool) {
        let spans = self.spans.as_mut_slice();
        let Span { grains, address, previous, next, .. } = spans[index as usize];
        let left = spans[previous as usize].is_free();
        // The free neighbour takes the block over; of two, the left one takes the right one too.
        if spans[next as usize].is_free() {
            let Span { grains: after, next: end, .. } = spans[next as usize];
            if left {
                let before = &spans[previous as usize];
                let (size, start) = (before.grains + grains + after, before.address);
                self.free.remove(spans, pool, next);
                self.free.grow(spans, pool, previous, size, start);
                spans[previous as usize].next = end;
                spans[end as usize].previous = previous;
                self.put_aside(next);
            } else {
                self.free.grow(spans, pool, next, grains + after, address);
                spans[next as usize].previous = previous;
                spans[previous as usize].next = next;
            }
        } else if left {
            let before = &spans[previous as usize];
            let (size, start) = (before.grains + grains, before.address);
            self.free.grow(spans, pool, previous, size, start);
            spans[previous as usize].next = next;
            spans[next as usize].previous = previous;
        } else {
            self.free.insert(spans, pool, index);
            return;
        }
        self.put_aside(index);
    }

    /// The place of a span that is no more can be used again.
    #[inline(always)]
    fn put_aside(&mut self, index: u32) {
        self.spans[index as usize].next = self.unused;
        self.unused = index;
    }

    /// A new segment, all of it free.
    #[cold]
    fn open_segment(&mut self, grains: u64, pool: Pool) -> Result<u32, OutOfMemory> {
        let size = grains * GRAIN;
        let wanted = match size {
            _ if pool == Pool::Small => SMALL_SEGMENT,
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
        let index = self.add_span(Span::new(wanted / GRAIN, self.segments << 32));
        self.free.insert(&mut self.spans, pool, index);
        Ok(index)
    }

    fn release_free_segments(&mut self) {
        let whole = |(_, index): &(Pool, u32)| self.spans[*index as usize].is_segment();
        let returned: Vec<(Pool, u32)> = self.free.iter(&self.spans).filter(whole).collect();
        for (pool, index) in returned {
            self.free.remove(&mut self.spans, pool, index);
            self.reserved -= self.spans[index as usize].grains * GRAIN;
            self.put_aside(index);
        }
    }

    /// Takes the tightest fit, or its first grains when the rest is worth keeping.
    #[inline(always)]
    fn take_from(&mut self, pool: Pool, request: &Request) -> Result<Block, OutOfMemory> {
        let grains = request.grains;
        let index = self.find(pool, request)?;
        let spans = self.spans.as_mut_slice();
        let Span { grains: whole, address, previous, .. } = spans[index as usize];
        let rest = whole - grains;
        if !worth_keeping(pool, rest) {
            self.free.remove(spans, pool, index);
            self.taken += whole;
            return Ok(Block(index));
        }
        self.taken += grains;
        let mut head = Span::new(grains, address);
        (head.previous, head.next) = (previous, index);
        let head = self.add_span(head);
        let spans = self.spans.as_mut_slice();
        spans[index as usize].previous = head;
        spans[previous as usize].next = head;
        self.free.cut(spans, pool, index, grains, grains);
        Ok(Block(head))
    }

    #[inline(always)]
    fn add_span(&mut self, span: Span) -> u32 {
        let index = self.unused;
        if index != NONE {
            let place = &mut self.spans[index as usize];
            self.unused = place.next;
            *place = span;
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

/// The pool of a request, or of a block in use: those of the small pool are never larger than asked for.
fn pool_of(grains: u64) -> Pool {
    if grains <= SMALL_REQUEST / GRAIN { Pool::Small } else { Pool::Large }
}

/// Whether the rest of a block becomes a block of its own.
fn worth_keeping(pool: Pool, rest: u64) -> bool {
    rest > if pool == Pool::Small { 0 } else { SMALL_REQUEST / GRAIN }
}

#[cfg(test)]
mod tests;
