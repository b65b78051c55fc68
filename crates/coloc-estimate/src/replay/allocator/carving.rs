//! Blocks that are never freed one by one: weights, which stay for good, or an optimizer's temporaries,
//! which go together. They are cut off free spans and have no spans of their own.

use super::free_list::{NONE, Pool, Span, WALL};
use super::{Allocator, GRAIN, OutOfMemory, grains, pool_of, worth_keeping};

/// A free span that is being cut, out of the free list meanwhile.
#[derive(Clone, Copy)]
struct Cut {
    index: u32,
    /// The least request it was the tightest fit for. Of the listed spans, those that are large enough
    /// for that are larger than this one, so that it is the tightest fit for anything between.
    least: u64,
    /// What is left of it.
    grains: u64,
    address: u64,
}

const NO_CUT: Cut = Cut { index: NONE, least: u64::MAX, grains: 0, address: 0 };

/// Blocks that are being taken, with nothing freed in between.
pub(in crate::replay) struct Run<'a> {
    allocator: &'a mut Allocator,
    /// One for each pool.
    cuts: [Cut; 2],
    /// The spans that were cut, as they were before.
    before: Vec<(u32, Pool, Span)>,
    taken_before: u64,
}

impl Allocator {
    /// Begins to take blocks that are not freed one by one.
    pub(in crate::replay) fn run(&mut self) -> Run<'_> {
        let taken_before = self.taken;
        Run { allocator: self, cuts: [NO_CUT; 2], before: Vec::new(), taken_before }
    }
}

impl Run<'_> {
    /// Takes a block of at least `bytes`.
    #[inline(always)]
    pub(in crate::replay) fn take(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let grains = grains(bytes);
        let pool = pool_of(grains);
        let cut = self.cuts[pool as usize];
        if grains < cut.least || grains > cut.grains {
            self.change_span(pool, grains)?;
        }
        let cut = &mut self.cuts[pool as usize];
        let rest = cut.grains - grains;
        if worth_keeping(pool, rest) {
            self.allocator.taken += grains;
            cut.grains = rest;
            cut.address += grains;
        } else {
            self.allocator.taken += cut.grains;
            *cut = NO_CUT;
        }
        Ok(())
    }

    /// Puts the span that is being cut back into the free list and takes the tightest fit out.
    #[inline(never)]
    fn change_span(&mut self, pool: Pool, grains: u64) -> Result<(), OutOfMemory> {
        self.put_back(pool);
        let index = self.allocator.find(pool, grains)?.index;
        let Allocator { spans, free, .. } = &mut *self.allocator;
        free.remove(spans, index);
        let span = spans[index as usize];
        self.before.push((index, pool, span));
        spans[span.previous as usize].next = WALL;
        spans[index as usize].previous = WALL;
        let Span { grains: whole, address, .. } = span;
        self.cuts[pool as usize] = Cut { index, least: grains, grains: whole, address };
        Ok(())
    }

    fn put_back(&mut self, pool: Pool) {
        let Cut { index, grains, address, .. } =
            std::mem::replace(&mut self.cuts[pool as usize], NO_CUT);
        if index != NONE {
            let Allocator { spans, free, .. } = &mut *self.allocator;
            (spans[index as usize].grains, spans[index as usize].address) = (grains, address);
            free.insert(spans, pool, index);
        }
    }

    /// From now on the device has room without end.
    pub(in crate::replay) fn lift_limit(&mut self) {
        self.allocator.lift_limit();
    }

    /// The blocks stay for good.
    pub(in crate::replay) fn keep(mut self) {
        self.put_back(Pool::Small);
        self.put_back(Pool::Large);
    }

    /// Gives all blocks back. Returns the bytes that were in use.
    pub(in crate::replay) fn give_back(mut self) -> u64 {
        self.put_back(Pool::Small);
        self.put_back(Pool::Large);
        let Allocator { spans, free, taken, .. } = self.allocator;
        // A span may have been cut, put back and cut again: the last that is restored is the first cut.
        for (index, pool, span) in self.before.into_iter().rev() {
            if spans[index as usize].is_free() {
                free.remove(spans, index);
            }
            spans[index as usize] = span;
            spans[span.previous as usize].next = index;
            free.insert(spans, pool, index);
        }
        std::mem::replace(taken, self.taken_before) * GRAIN
    }
}
