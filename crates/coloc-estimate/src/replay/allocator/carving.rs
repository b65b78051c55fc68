//! Blocks that are never freed one by one: weights, which stay for good, or an optimizer's temporaries,
//! which go together. They are cut off free spans and have no spans of their own.

use super::free_list::{LENT, NONE, Place, Pool, Span, WALL};
use super::{Allocator, GRAIN, OutOfMemory, grains, pool_of, worth_keeping};

/// A free span that is being cut, out of the free list meanwhile.
#[derive(Clone, Copy)]
struct Cut {
    index: u32,
    /// The least request that it was the tightest fit for. Listed spans that are large enough for that
    /// are larger than this one was then, so it stays the tightest fit for all that it has room for.
    least: u64,
    /// What is left of it.
    grains: u64,
    address: u64,
}

const NO_CUT: Cut = Cut { index: NONE, least: u64::MAX, grains: 0, address: 0 };

impl Cut {
    fn fits(&self, grains: u64) -> bool {
        self.least <= grains && grains <= self.grains
    }

    /// Takes the first grains, or all where the rest is not worth keeping. Returns how many.
    #[inline(always)]
    fn take(&mut self, pool: Pool, grains: u64) -> u64 {
        let rest = self.grains - grains;
        if worth_keeping(pool, rest) {
            self.grains = rest;
            self.address += grains;
            return grains;
        }
        std::mem::replace(self, NO_CUT).grains
    }
}

/// What is being cut of one pool: matrices come from the wide span, vectors between them from the tight
/// one. The tight one is smaller than the least that the wide one fits, and the wide one is not.
#[derive(Clone, Copy)]
struct Cuts {
    wide: Cut,
    tight: Cut,
}

const NO_CUTS: Cuts = Cuts { wide: NO_CUT, tight: NO_CUT };

/// Blocks that are being taken, with nothing freed in between.
pub(in crate::replay) struct Run<'a> {
    allocator: &'a mut Allocator,
    /// One for each pool.
    cuts: [Cuts; 2],
    /// What stands before a span that was cut.
    mark: u32,
    /// The spans that were cut, as they were before; only if they are given back.
    before: Vec<(u32, Pool, Span)>,
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
        Run { allocator: self, cuts: [NO_CUTS; 2], mark, before: Vec::new(), taken_before }
    }
}

impl Run<'_> {
    /// Takes a block of at least `bytes`.
    #[inline(always)]
    pub(in crate::replay) fn take(&mut self, bytes: u64) -> Result<(), OutOfMemory> {
        let grains = grains(bytes);
        let pool = pool_of(grains);
        let Cuts { wide, tight } = &mut self.cuts[pool as usize];
        if wide.fits(grains) {
            self.allocator.taken += wide.take(pool, grains);
            if wide.grains < wide.least {
                self.put_back(pool);
            }
        } else if tight.fits(grains) {
            self.allocator.taken += tight.take(pool, grains);
        } else {
            self.take_elsewhere(pool, grains)?;
        }
        Ok(())
    }

    /// From the tightest fit of all.
    #[inline(never)]
    fn take_elsewhere(&mut self, pool: Pool, grains: u64) -> Result<(), OutOfMemory> {
        let wide = self.cuts[pool as usize].wide;
        let cut = if grains > wide.grains {
            self.put_back(pool);
            let place = self.allocator.find(pool, grains)?;
            let cut = self.take_out(place, pool);
            self.cuts[pool as usize].wide = cut;
            &mut self.cuts[pool as usize].wide
        } else {
            let tight = std::mem::replace(&mut self.cuts[pool as usize].tight, NO_CUT);
            self.insert(tight, pool);
            let Allocator { spans, free, .. } = &*self.allocator;
            match free.best(spans, pool, grains) {
                Some(place) if spans[place.index as usize].is_below(wide.grains, wide.address) => {
                    let cut = self.take_out(place, pool);
                    self.cuts[pool as usize].tight = cut;
                    &mut self.cuts[pool as usize].tight
                }
                _ => &mut self.cuts[pool as usize].wide,
            }
        };
        cut.least = grains;
        self.allocator.taken += cut.take(pool, grains);
        Ok(())
    }

    /// Takes a span out of the free list, to be cut.
    fn take_out(&mut self, place: Place, pool: Pool) -> Cut {
        self.mark(place.index, pool);
        let Allocator { spans, free, .. } = &mut *self.allocator;
        free.remove(spans, place.index);
        let Span { grains, address, .. } = spans[place.index as usize];
        Cut { index: place.index, least: grains, grains, address }
    }

    /// A span is cut: nothing that is freed may merge with it over what was cut off.
    fn mark(&mut self, index: u32, pool: Pool) {
        let spans = &mut self.allocator.spans;
        let span = spans[index as usize];
        if span.previous != self.mark {
            spans[span.previous as usize].next = self.mark;
            spans[index as usize].previous = self.mark;
            if self.mark == LENT {
                self.before.push((index, pool, span));
            }
        }
    }

    /// Puts what is left of a pool's spans back into the free list.
    #[inline(never)]
    fn put_back(&mut self, pool: Pool) {
        let Cuts { wide, tight } = std::mem::replace(&mut self.cuts[pool as usize], NO_CUTS);
        self.insert(wide, pool);
        self.insert(tight, pool);
    }

    fn insert(&mut self, cut: Cut, pool: Pool) {
        let Cut { index, grains, address, .. } = cut;
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

    /// Ends the run. What was lent is given back. Returns the bytes that were in use.
    pub(in crate::replay) fn end(mut self) -> u64 {
        self.put_back(Pool::Small);
        self.put_back(Pool::Large);
        let Allocator { spans, free, taken, .. } = self.allocator;
        let in_use = *taken * GRAIN;
        for (index, pool, span) in self.before {
            if spans[index as usize].is_free() {
                free.remove(spans, index);
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
