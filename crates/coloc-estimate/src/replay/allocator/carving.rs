//! Blocks that are never freed one by one: weights, which stay for good, or an optimizer's temporaries,
//! which go together. They are cut off free spans and have no spans of their own.

use super::free_list::{LENT, Pool, Span, WALL};
use super::{Allocator, GRAIN, OutOfMemory, Request, is_small, pool_of, worth_keeping};
use crate::replay::reuse::{Reused, shelved};

shelved!((Pool, u32, Span), u64, Equal);

/// So many blocks of the same size, one after the other.
#[derive(Clone, Copy)]
struct Equal {
    bytes: u64,
    count: u32,
}

/// Blocks of these sizes, to be taken together.
pub(in crate::replay) struct Blocks {
    /// In bytes, in the order in which they are taken.
    pub(in crate::replay) sizes: Reused<u64>,
    /// All of them together.
    pub(in crate::replay) bytes: u64,
    /// The same for each pool alone.
    small_sizes: Reused<Equal>,
    large_sizes: Reused<Equal>,
    /// Grains of those of the small pool together, and of the largest of them.
    small: u64,
    largest_small: u64,
}

impl Blocks {
    /// None yet, with room for so many.
    pub(in crate::replay) fn with_capacity(blocks: usize) -> Self {
        Blocks {
            sizes: Reused::with_capacity(blocks),
            bytes: 0,
            small_sizes: Reused::with_capacity(blocks),
            large_sizes: Reused::with_capacity(0),
            small: 0,
            largest_small: 0,
        }
    }

    /// Adds a block; one without bytes is none.
    #[inline(always)]
    pub(in crate::replay) fn push(&mut self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.sizes.push(bytes);
        self.bytes += bytes;
        if !is_small(bytes) {
            add(&mut self.large_sizes, bytes);
        } else {
            add(&mut self.small_sizes, bytes);
            let grains = bytes.div_ceil(GRAIN);
            self.small += grains;
            self.largest_small = self.largest_small.max(grains);
        }
    }
}

#[inline(always)]
fn add(sizes: &mut Vec<Equal>, bytes: u64) {
    match sizes.last_mut() {
        Some(last) if last.bytes == bytes => last.count += 1,
        _ => sizes.push(Equal { bytes, count: 1 }),
    }
}

/// Blocks that are being taken, with nothing freed in between.
pub(in crate::replay) struct Run<'a> {
    allocator: &'a mut Allocator,
    /// What stands before a span that was cut.
    mark: u32,
    /// The spans that were cut, as they were before; only if they are given back.
    before: Reused<(Pool, u32, Span)>,
    taken_before: u64,
}

impl Allocator {
    /// Begins to take blocks that stay for good.
    pub(in crate::replay) fn keep(&mut self) -> Run<'_> {
        self.run(WALL)
    }

    /// Begins to take blocks that will be given back together.
    pub(in crate::replay) fn lend(&mut self) -> Run<'_> {
        self.run(LENT)
    }

    fn run(&mut self, mark: u32) -> Run<'_> {
        let taken_before = self.taken;
        Run { allocator: self, mark, before: Reused::with_capacity(0), taken_before }
    }
}

impl Run<'_> {
    /// Whether the device's room has an end.
    pub(in crate::replay) fn is_limited(&self) -> bool {
        self.allocator.limit.is_some()
    }

    /// Takes so many of each block, where the room has no end. There the pools never meet, and all blocks of
    /// one are taken before those of the other: weights and biases in turn would be one wrong guess after
    /// another.
    pub(in crate::replay) fn take_all(
        &mut self,
        blocks: &Blocks,
        copies: usize,
    ) -> Result<(), OutOfMemory> {
        // What is given back untouched may have been anywhere, if only there was room. That is not so for
        // blocks of the large pool: where they were tells how much larger they were than asked for.
        let Allocator { spans, free, taken, .. } = &mut *self.allocator;
        let small = copies as u64 * blocks.small;
        if self.mark == LENT && free.small_surely_fit(spans, small, blocks.largest_small) {
            *taken += small;
        } else {
            self.take_each(Pool::Small, &blocks.small_sizes, copies)?;
        }
        self.take_each(Pool::Large, &blocks.large_sizes, copies)
    }

    #[inline(always)]
    fn take_each(&mut self, pool: Pool, sizes: &[Equal], copies: usize) -> Result<(), OutOfMemory> {
        for equal in sizes {
            let request = Request::new(equal.bytes);
            let mut left = u64::from(equal.count) * copies as u64;
            while left > 0 {
                left -= self.take_some(pool, &request, left)?;
            }
        }
        Ok(())
    }

    /// Takes a block of at least `bytes`.
    pub(in crate::replay) fn take(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let request = &Request::new(bytes);
        self.take_some(pool_of(request.grains), request, 1).map(drop)
    }

    /// Takes equal blocks, as many of those wanted as the tightest fit has room for: what is left of it is the
    /// tightest fit for the next. Returns how many.
    #[inline(always)]
    fn take_some(
        &mut self,
        pool: Pool,
        request: &Request,
        wanted: u64,
    ) -> Result<u64, OutOfMemory> {
        let index = self.allocator.find(pool, request)?;
        if self.allocator.spans[index as usize].previous != self.mark {
            self.mark(pool, index);
        }
        let Allocator { spans, free, taken, .. } = &mut *self.allocator;
        let whole = spans[index as usize].grains;
        let mut count = 1;
        let mut grains = request.grains;
        while count < wanted && grains + request.grains <= whole {
            count += 1;
            grains += request.grains;
        }
        if worth_keeping(pool, whole - grains) {
            free.cut(spans, pool, index, request.grains, grains);
            *taken += grains;
        } else {
            free.remove(spans, pool, index);
            *taken += whole;
        }
        Ok(count)
    }

    /// A span is about to be cut: nothing that is freed later may merge with it over what is cut off.
    fn mark(&mut self, pool: Pool, index: u32) {
        let spans = &mut self.allocator.spans;
        let span = spans[index as usize];
        spans[span.previous as usize].next = self.mark;
        spans[index as usize].previous = self.mark;
        if self.mark == LENT {
            self.before.push((pool, index, span));
        }
    }

    /// From now on the device has room without end.
    pub(in crate::replay) fn lift_limit(&mut self) {
        self.allocator.lift_limit();
    }

    /// Ends the run. What was lent is given back. Returns the bytes that were in use.
    pub(in crate::replay) fn end(self) -> u64 {
        let Allocator { spans, free, taken, .. } = self.allocator;
        let in_use = *taken * GRAIN;
        for &(pool, index, span) in self.before.iter() {
            if spans[index as usize].is_free() {
                free.remove(spans, pool, index);
            }
            spans[index as usize] = span;
            spans[span.previous as usize].next = index;
            free.insert(spans, pool, index);
        }
        if self.mark == LENT {
            *taken = self.taken_before;
        }
        in_use
    }
}
