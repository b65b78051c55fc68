//! PyTorch's CUDA caching allocator: one stream, default settings, no real memory.
//!
//! Requests are rounded to 512 B. Up to 1 MiB they come from 2 MiB segments of the small pool; larger
//! ones from the large pool, whose segments are 20 MiB below 10 MiB and else the request rounded to
//! 2 MiB. The smallest free block that fits is taken, lowest address first, and split when the rest is
//! worth keeping; freed neighbours merge. At the device's limit wholly free segments are given back and
//! the request is tried once more.

mod free_list;

use free_list::{Free, FreeList};

const MIB: u64 = 1 << 20;
/// Requests are rounded to this.
const GRAIN: u64 = 512;
const SMALL_REQUEST: u64 = MIB;
const SMALL_SEGMENT: u64 = 2 * MIB;
const LARGE_SEGMENT: u64 = 20 * MIB;
const LARGE_REQUEST: u64 = 10 * MIB;

/// The request does not fit under the limit, even after giving back every free segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the device has no room for {wanted} more bytes")]
pub struct OutOfMemory {
    /// Size of the segment that was asked of the device.
    pub wanted: u64,
}

/// A block in use, to be given back once.
#[derive(PartialEq, Eq, Debug)]
pub struct Block(u32);

/// A run of bytes of one segment, in use or free.
#[derive(Clone, Copy)]
struct Span {
    /// Size in grains.
    grains: u64,
    /// Segment number in the high half, offset within it in grains in the low half.
    address: u64,
    /// Neighbours in the segment.
    previous: Option<u32>,
    next: Option<u32>,
    free: bool,
}

/// Which pool a span belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pool {
    Small,
    Large,
}

impl Pool {
    /// The pool of a request, or of a block in use: those of the small pool are never larger than asked for.
    fn of(grains: u64) -> Self {
        if grains <= SMALL_REQUEST / GRAIN { Pool::Small } else { Pool::Large }
    }

    /// Whether the rest of a block becomes a block of its own.
    fn keeps(self, rest: u64) -> bool {
        rest > if self == Pool::Small { 0 } else { SMALL_REQUEST / GRAIN }
    }

    /// Size of a new segment for so many bytes.
    fn segment(self, bytes: u64) -> u64 {
        match bytes {
            _ if self == Pool::Small => SMALL_SEGMENT,
            bytes if bytes < LARGE_REQUEST => LARGE_SEGMENT,
            bytes => bytes.next_multiple_of(2 * MIB),
        }
    }
}

/// The allocator's state.
pub struct Allocator {
    spans: Vec<Span>,
    /// Places in the list that can be used again.
    unused: Vec<u32>,
    /// The free spans of each pool.
    free: [FreeList; 2],
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
        Allocator {
            spans: Vec::new(),
            unused: Vec::new(),
            free: Default::default(),
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

    /// Takes a block of at least `bytes`: the tightest fit, or its first grains when the rest is worth
    /// keeping.
    pub fn allocate(&mut self, bytes: u64) -> Result<Block, OutOfMemory> {
        let grains = bytes.max(1).div_ceil(GRAIN);
        let pool = Pool::of(grains);
        let index = match self.free[pool as usize].take_best(grains) {
            Some(index) => index,
            None => self.open_segment(grains, pool)?,
        };
        let span = &mut self.spans[index as usize];
        span.free = false;
        let rest = span.grains - grains;
        if pool.keeps(rest) {
            span.grains = grains;
            let (address, next) = (span.address + grains, span.next);
            let rest = Span { grains: rest, address, previous: Some(index), next, free: true };
            let rest = self.add_span(rest);
            self.spans[index as usize].next = Some(rest);
            if let Some(next) = next {
                self.spans[next as usize].previous = Some(rest);
            }
            self.list(pool, rest);
        }
        self.taken += self.spans[index as usize].grains;
        Ok(Block(index))
    }

    /// Gives a block back to its pool, merged with free neighbours.
    pub fn free(&mut self, Block(index): Block) {
        let Span { grains, previous, next, .. } = self.spans[index as usize];
        self.taken -= grains;
        let pool = Pool::of(grains);
        if let Some(next) = next.filter(|&next| self.unlist(pool, next)) {
            self.merge(index, next);
        }
        let index = match previous.filter(|&previous| self.unlist(pool, previous)) {
            Some(previous) => {
                self.merge(previous, index);
                previous
            }
            None => index,
        };
        self.spans[index as usize].free = true;
        self.list(pool, index);
    }

    fn list(&mut self, pool: Pool, index: u32) {
        let Span { grains, address, .. } = self.spans[index as usize];
        self.free[pool as usize].insert(Free::new(grains, address, index));
    }

    /// Takes a span out of the free ones; says whether it was one.
    fn unlist(&mut self, pool: Pool, index: u32) -> bool {
        let Span { grains, address, free, .. } = self.spans[index as usize];
        if free {
            self.free[pool as usize].remove(Free::new(grains, address, index));
        }
        free
    }

    /// A span takes over the one behind it.
    fn merge(&mut self, index: u32, behind: u32) {
        let Span { grains, next, .. } = self.spans[behind as usize];
        let span = &mut self.spans[index as usize];
        span.grains += grains;
        span.next = next;
        if let Some(next) = next {
            self.spans[next as usize].previous = Some(index);
        }
        self.unused.push(behind);
    }

    fn add_span(&mut self, span: Span) -> u32 {
        if let Some(place) = self.unused.pop() {
            self.spans[place as usize] = span;
            return place;
        }
        self.spans.push(span);
        (self.spans.len() - 1) as u32
    }

    /// A new segment in one piece, which is not listed as free.
    fn open_segment(&mut self, grains: u64, pool: Pool) -> Result<u32, OutOfMemory> {
        let wanted = pool.segment(grains * GRAIN);
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
        let (grains, address) = (wanted / GRAIN, self.segments << 32);
        Ok(self.add_span(Span { grains, address, previous: None, next: None, free: false }))
    }

    /// Gives back every segment that is free in one piece.
    fn release_free_segments(&mut self) {
        for pool in &mut self.free {
            let whole = |span: &Free| {
                let Span { previous, next, .. } = self.spans[span.number as usize];
                previous.is_none() && next.is_none()
            };
            for span in pool.iter().filter(whole).collect::<Vec<Free>>() {
                pool.remove(span);
                self.reserved -= span.grains() * GRAIN;
                self.unused.push(span.number);
            }
        }
    }
}

#[cfg(test)]
mod tests;
