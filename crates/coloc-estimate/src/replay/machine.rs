//! Reference-counted tensors on the allocator, and what they are for.

use super::allocator::{Allocator, Block};
use serde::Serialize;

/// What memory is held for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Weights,
    Gradients,
    Optimizer,
    Activations,
    Workspace,
}

const PURPOSES: usize = 5;

/// Bytes by purpose at the moment when most were in use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Usage {
    /// Parameters and running statistics.
    pub weights: u64,
    /// Gradients of parameters.
    pub gradients: u64,
    /// Optimizer states and temporaries.
    pub optimizer: u64,
    /// Inputs, results, what autograd keeps, gradients that flow.
    pub activations: u64,
    /// Scratch memory of matrix products and convolutions.
    pub workspace: u64,
    /// What the allocator reserved at its own peak beyond that.
    pub fragmentation: u64,
}

/// A handle; the tensor lives until every handle was dropped through the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tensor(u32);

struct Slot {
    block: Option<Block>,
    bytes: u64,
    handles: u32,
    purpose: Purpose,
}

/// The device's memory as one process sees it.
pub(super) struct Machine {
    allocator: Allocator,
    slots: Vec<Slot>,
    unused: Vec<u32>,
    live: [u64; PURPOSES],
    at_peak: [u64; PURPOSES],
    pub(super) ran_out: bool,
}

impl Machine {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Machine {
            allocator: Allocator::new(limit),
            slots: Vec::with_capacity(256),
            unused: Vec::new(),
            live: [0; PURPOSES],
            at_peak: [0; PURPOSES],
            ran_out: false,
        }
    }

    pub(super) fn peak_reserved(&self) -> u64 {
        self.allocator.peak_reserved()
    }

    pub(super) fn peak_allocated(&self) -> u64 {
        self.allocator.peak_allocated()
    }

    pub(super) fn at_peak(&self) -> Usage {
        let [weights, gradients, optimizer, activations, workspace] = self.at_peak;
        let used: u64 = self.at_peak.iter().sum();
        let fragmentation = self.peak_reserved().saturating_sub(used);
        Usage { weights, gradients, optimizer, activations, workspace, fragmentation }
    }

    /// A new tensor with one handle.
    pub(super) fn new_tensor(&mut self, bytes: u64, purpose: Purpose) -> Tensor {
        let before = self.allocator.peak_allocated();
        let block = (bytes > 0).then(|| self.allocate_or_lift(bytes));
        self.live[purpose as usize] += bytes;
        if self.allocator.peak_allocated() > before {
            self.at_peak = self.live;
        }
        let slot = Slot { block, bytes, handles: 1, purpose };
        if let Some(index) = self.unused.pop() {
            self.slots[index as usize] = slot;
            return Tensor(index);
        }
        self.slots.push(slot);
        Tensor((self.slots.len() - 1) as u32)
    }

    /// One more handle to the same tensor.
    pub(super) fn share(&mut self, tensor: Tensor) -> Tensor {
        self.slots[tensor.0 as usize].handles += 1;
        tensor
    }

    /// One handle less; the last frees the memory.
    pub(super) fn drop(&mut self, tensor: Tensor) {
        let slot = &mut self.slots[tensor.0 as usize];
        slot.handles -= 1;
        if slot.handles > 0 {
            return;
        }
        self.live[slot.purpose as usize] -= slot.bytes;
        if let Some(block) = slot.block.take() {
            self.allocator.free(block);
        }
        self.unused.push(tensor.0);
    }

    /// Nobody else holds this tensor, so a sum may be written into it.
    pub(super) fn sole(&self, tensor: Tensor) -> bool {
        self.slots[tensor.0 as usize].handles == 1
    }

    pub(super) fn bytes(&self, tensor: Tensor) -> u64 {
        self.slots[tensor.0 as usize].bytes
    }

    /// Memory that lives only while a kernel runs; the first plan that fits is taken.
    pub(super) fn scratch(&mut self, plans: &[u64]) {
        for &bytes in plans.iter().filter(|bytes| **bytes > 0) {
            let before = self.allocator.peak_allocated();
            let Ok(block) = self.allocator.allocate(bytes) else { continue };
            if self.allocator.peak_allocated() > before {
                self.at_peak = self.live;
                self.at_peak[Purpose::Workspace as usize] += bytes;
            }
            self.allocator.free(block);
            return;
        }
    }

    /// A tensor that must exist: past the limit the run is lost, but its need is still measured.
    fn allocate_or_lift(&mut self, bytes: u64) -> Block {
        self.allocator.allocate(bytes).unwrap_or_else(|_| {
            self.ran_out = true;
            self.allocator.lift_limit();
            self.allocator.allocate(bytes).expect("without a limit every request is met")
        })
    }
}
