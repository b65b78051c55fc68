//! Blocks that are never freed one by one: weights, which stay for good, or an optimizer's temporaries,
//! which go together. They are cut off free spans and have no spans of their own.

use super::free_list::{LENT, Pool, Span, WALL};
use super::{Allocator, GRAIN, OutOfMemory, Request, pool_of, worth_keeping};
use crate::replay::reuse::{Reused, shelved};

shelved!((Pool, u32, Span));

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
    /// Takes a block of at least `bytes`.
    #[inline(always)]
    pub(in crate::replay) fn take(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let request = &Request::new(bytes);
        match pool_of(request.grains) {
            Pool::Small => self.take_from(Pool::Small, request),
            Pool::Large => self.take_from(Pool::Large, request),
        }
    }

    #[inline(always)]
    fn take_from(&mut self, pool: Pool, request: &Request) -> Result<(), OutOfMemory> {
        let grains = request.grains;
        let index = self.allocator.find(pool, request)?;
        if self.allocator.spans[index as usize].previous != self.mark {
            self.mark(pool, index);
        }
        let Allocator { spans, free, taken, .. } = &mut *self.allocator;
        let whole = spans[index as usize].grains;
        if worth_keeping(pool, whole - grains) {
            free.cut(spans, pool, index, grains);
            *taken += grains;
        } else {
            free.remove(spans, pool, index);
            *taken += whole;
        }
        Ok(())
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
