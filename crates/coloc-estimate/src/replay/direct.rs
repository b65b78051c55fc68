//! Performs a training on an allocator at once, without a tape: for tasks with one rule of workspaces.

use super::Replayed;
use super::allocator::{Block, Blocks, Request};
use super::memory::{ByPurpose, Held, Memory, Purpose, Usage};
use super::player::Player;
use super::workspace::{ConvCall, WorkspaceProvider};
use coloc_model::Bytes;

/// Tensors on an allocator.
pub(super) struct Direct<'w> {
    player: Player,
    workspaces: &'w dyn WorkspaceProvider,
    live: ByPurpose,
    peak: u64,
    live_at_peak: ByPurpose,
    scratch_at_peak: u64,
}

impl<'w> Direct<'w> {
    /// On a device with this much room, or without end; for about so many tensors.
    pub(super) fn new(
        limit: Option<u64>,
        workspaces: &'w dyn WorkspaceProvider,
        tensors: usize,
    ) -> Self {
        Direct {
            player: Player::new(limit, tensors),
            workspaces,
            live: ByPurpose::default(),
            peak: 0,
            live_at_peak: ByPurpose::default(),
            scratch_at_peak: 0,
        }
    }

    /// What was seen.
    pub(super) fn replayed(&mut self) -> Replayed {
        self.note_peak();
        let reserved = self.player.peak_reserved();
        Replayed {
            reserved: Bytes(reserved),
            allocated: Bytes(self.peak),
            usage: Usage::of(self.live_at_peak, self.scratch_at_peak, reserved),
            ran_out: self.player.ran_out(),
        }
    }

    fn raise(&mut self, bytes: u64, scratch: u64) {
        if bytes > self.peak {
            (self.peak, self.live_at_peak, self.scratch_at_peak) = (bytes, self.live, scratch);
        }
    }

    /// Notes a peak before it is left: a tensor that is made is followed by others more often than not.
    #[inline(always)]
    fn note_peak(&mut self) {
        self.raise(self.player.allocated(), 0);
    }

    fn borrow(&mut self, plans: &[u64]) {
        self.note_peak();
        if let Some((in_use, scratch)) = self.player.borrow(plans) {
            self.raise(in_use, scratch);
        }
    }
}

impl Memory for Direct<'_> {
    #[inline(always)]
    fn make(&mut self, request: &Request, purpose: Purpose) -> Held {
        let bytes = request.bytes;
        if bytes == 0 {
            return Held { bytes, purpose, place: 0 };
        }
        let block = self.player.take_or_lift(request);
        self.live[purpose as usize] += bytes;
        Held { bytes, purpose, place: block.0 }
    }

    fn keep(&mut self, blocks: &Blocks, copies: usize, purpose: Purpose) {
        self.player.keep(blocks, copies);
        self.live[purpose as usize] += blocks.bytes * copies as u64;
    }

    fn lend(&mut self, request: &Request, purpose: Purpose) {
        let bytes = request.bytes;
        if bytes > 0 {
            self.note_peak();
            let in_use = self.player.lend(request);
            self.live[purpose as usize] += bytes;
            self.raise(in_use, 0);
            self.live[purpose as usize] -= bytes;
        }
    }

    fn lend_all(&mut self, blocks: &Blocks, purpose: Purpose) {
        self.note_peak();
        let in_use = self.player.lend_all(blocks);
        self.live[purpose as usize] += blocks.bytes;
        self.raise(in_use, 0);
        self.live[purpose as usize] -= blocks.bytes;
    }

    #[inline(always)]
    fn free(&mut self, tensor: Held) {
        self.note_peak();
        self.live[tensor.purpose as usize] -= tensor.bytes;
        self.player.free(Block(tensor.place));
    }

    fn scratch(&mut self, bytes: u64) {
        self.borrow(&[bytes]);
    }

    fn convolve(&mut self, call: ConvCall) {
        self.borrow(&self.workspaces.plans(&call));
    }
}
