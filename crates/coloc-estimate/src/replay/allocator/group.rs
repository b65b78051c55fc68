//! Blocks that are given back together. Those that lie beside each other are one from the start.

use super::free_list::{Pool, Span};
use super::{Allocator, OutOfMemory, Request, pool_of, worth_keeping};
use crate::replay::reuse::Reused;

/// Blocks that will be given back together.
pub(in crate::replay) struct Group {
    /// By pool: a block that has grown does not tell its own any more.
    blocks: [Reused<u32>; 2],
}

impl Default for Group {
    fn default() -> Self {
        Group { blocks: [Reused::with_capacity(0), Reused::with_capacity(0)] }
    }
}

impl Allocator {
    /// Takes a block for a group. Right behind the group's latest block, that one grows instead.
    #[inline(always)]
    pub(in crate::replay) fn join(
        &mut self,
        group: &mut Group,
        request: &Request,
    ) -> Result<(), OutOfMemory> {
        match pool_of(request.grains) {
            Pool::Small => self.join_in(Pool::Small, group, request),
            Pool::Large => self.join_in(Pool::Large, group, request),
        }
    }

    #[inline(always)]
    fn join_in(
        &mut self,
        pool: Pool,
        group: &mut Group,
        request: &Request,
    ) -> Result<(), OutOfMemory> {
        let grains = request.grains;
        let index = self.find(pool, request)?;
        let Span { grains: whole, address, previous, .. } = self.spans[index as usize];
        let blocks = &mut group.blocks[pool as usize];
        if !worth_keeping(pool, whole - grains) {
            self.free.remove(&mut self.spans, pool, index);
            self.taken += whole;
            blocks.push(index);
            return Ok(());
        }
        self.taken += grains;
        if blocks.last() == Some(&previous) {
            self.spans[previous as usize].grains += grains;
        } else {
            blocks.push(self.add_head(index, Span::new(grains, address), previous));
        }
        self.free.cut(&mut self.spans, pool, index, grains);
        Ok(())
    }

    /// Gives all blocks of a group back.
    pub(in crate::replay) fn free_group(&mut self, group: &mut Group) {
        for pool in [Pool::Small, Pool::Large] {
            for index in group.blocks[pool as usize].drain(..) {
                self.taken -= self.spans[index as usize].grains;
                self.release(index, pool);
            }
        }
    }
}
