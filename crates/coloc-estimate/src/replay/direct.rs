//! Plays a training while it is told, without a tape: for tasks that are played under one rule only.

use super::Replayed;
use super::allocator::Block;
use super::memory::{ByPurpose, Memory, Purpose, Tensor, Usage};
use super::player::Player;
use super::workspace::{ConvCall, WorkspaceProvider};
use coloc_model::Bytes;

struct Held {
    bytes: u64,
    block: Option<Block>,
    handles: u32,
    purpose: Purpose,
}

/// Tensors that have room from the start.
const FIRST_TENSORS: usize = 1024;

/// Reference-counted tensors on an allocator.
pub(super) struct Direct<'w> {
    player: Player,
    workspaces: &'w dyn WorkspaceProvider,
    tensors: Vec<Held>,
    /// Places of tensors that are gone; few places are used again and again, so they stay in the cache.
    vacant: Vec<u32>,
    live: ByPurpose,
    peak: u64,
    live_at_peak: ByPurpose,
    scratch_at_peak: u64,
}

impl<'w> Direct<'w> {
    /// On a device with this much room, or without end.
    pub(super) fn new(limit: Option<u64>, workspaces: &'w dyn WorkspaceProvider) -> Self {
        Direct {
            player: Player::new(limit),
            workspaces,
            tensors: Vec::with_capacity(FIRST_TENSORS),
            vacant: Vec::with_capacity(FIRST_TENSORS),
            live: ByPurpose::default(),
            peak: 0,
            live_at_peak: ByPurpose::default(),
            scratch_at_peak: 0,
        }
    }

    /// What was seen.
    pub(super) fn replayed(&self) -> Replayed {
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

    fn borrow(&mut self, plans: &[u64]) {
        if let Some((in_use, scratch)) = self.player.borrow(plans) {
            self.raise(in_use, scratch);
        }
    }
}

impl Memory for Direct<'_> {
    fn new_tensor(&mut self, bytes: u64, purpose: Purpose) -> Tensor {
        let block = (bytes > 0).then(|| self.player.allocate_or_lift(bytes));
        let held = Held { bytes, block, handles: 1, purpose };
        self.live[purpose as usize] += bytes;
        self.raise(self.player.allocated(), 0);
        if let Some(place) = self.vacant.pop() {
            self.tensors[place as usize] = held;
            return Tensor(place);
        }
        self.tensors.push(held);
        Tensor((self.tensors.len() - 1) as u32)
    }

    fn share(&mut self, tensor: Tensor) -> Tensor {
        self.tensors[tensor.0 as usize].handles += 1;
        tensor
    }

    fn drop(&mut self, tensor: Tensor) {
        let held = &mut self.tensors[tensor.0 as usize];
        held.handles -= 1;
        if held.handles > 0 {
            return;
        }
        self.live[held.purpose as usize] -= held.bytes;
        if let Some(block) = held.block.take() {
            self.player.free(block);
        }
        self.vacant.push(tensor.0);
    }

    fn sole(&self, tensor: Tensor) -> bool {
        self.tensors[tensor.0 as usize].handles == 1
    }

    fn bytes(&self, tensor: Tensor) -> u64 {
        self.tensors[tensor.0 as usize].bytes
    }

    fn scratch(&mut self, bytes: u64) {
        self.borrow(&[bytes]);
    }

    fn convolve(&mut self, call: ConvCall) {
        self.borrow(&self.workspaces.plans(&call));
    }
}
