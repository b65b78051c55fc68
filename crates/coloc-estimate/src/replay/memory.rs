//! Tensors on a device: how many handles there are to each, what they are for, and the moment when most
//! memory was in use.

use super::Replayed;
use super::allocator::{Allocator, Block};
use super::workspace::{ConvCall, WorkspaceProvider};
use coloc_model::Bytes;
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

/// Bytes by purpose, in the order of the purposes.
type ByPurpose = [u64; 5];

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

/// A handle to a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tensor(u32);

/// What a handle stands for.
struct Held {
    handles: u32,
    purpose: Purpose,
    bytes: u64,
    /// A tensor of 0 bytes has none.
    block: Option<Block>,
}

/// Reference-counted tensors on a device that may be too small.
pub(super) struct Memory<'w> {
    allocator: Allocator,
    workspaces: &'w dyn WorkspaceProvider,
    tensors: Vec<Held>,
    /// Places in the list that can be used again.
    unused: Vec<Tensor>,
    live: ByPurpose,
    /// The most bytes that were in use, and what they were for.
    peak: (u64, ByPurpose),
    ran_out: bool,
}

impl<'w> Memory<'w> {
    /// On a device with this much room, or without end.
    pub(super) fn new(limit: Option<u64>, workspaces: &'w dyn WorkspaceProvider) -> Self {
        Memory {
            allocator: Allocator::new(limit),
            workspaces,
            tensors: Vec::new(),
            unused: Vec::new(),
            live: ByPurpose::default(),
            peak: (0, ByPurpose::default()),
            ran_out: false,
        }
    }

    /// What was seen so far.
    pub(super) fn replayed(&self) -> Replayed {
        let (allocated, live) = self.peak;
        let reserved = self.allocator.peak_reserved();
        let [weights, gradients, optimizer, activations, workspace] = live;
        let fragmentation = reserved.saturating_sub(live.iter().sum());
        Replayed {
            reserved: Bytes(reserved),
            allocated: Bytes(allocated),
            usage: Usage { weights, gradients, optimizer, activations, workspace, fragmentation },
            ran_out: self.ran_out,
        }
    }

    /// A new tensor with one handle. Past the limit the run is lost, but its need is still measured.
    pub(super) fn make(&mut self, bytes: u64, purpose: Purpose) -> Tensor {
        let block = (bytes > 0).then(|| {
            self.allocator.allocate(bytes).unwrap_or_else(|_| {
                self.ran_out = true;
                self.allocator.lift_limit();
                self.allocator.allocate(bytes).expect("without a limit every request is met")
            })
        });
        self.live[purpose as usize] += bytes;
        self.note_peak(0);
        let held = Held { handles: 1, purpose, bytes, block };
        if let Some(place) = self.unused.pop() {
            self.tensors[place.0 as usize] = held;
            return place;
        }
        self.tensors.push(held);
        Tensor(self.tensors.len() as u32 - 1)
    }

    /// One more handle to the same tensor.
    pub(super) fn share(&mut self, tensor: Tensor) -> Tensor {
        self.tensors[tensor.0 as usize].handles += 1;
        tensor
    }

    /// One handle less; the last frees the memory.
    pub(super) fn drop(&mut self, tensor: Tensor) {
        let held = &mut self.tensors[tensor.0 as usize];
        held.handles -= 1;
        if held.handles == 0 {
            self.live[held.purpose as usize] -= held.bytes;
            if let Some(block) = held.block.take() {
                self.allocator.free(block);
            }
            self.unused.push(tensor);
        }
    }

    /// This is the only handle, so a sum may be written into the tensor.
    pub(super) fn sole(&self, tensor: Tensor) -> bool {
        self.tensors[tensor.0 as usize].handles == 1
    }

    pub(super) fn size(&self, tensor: Tensor) -> u64 {
        self.tensors[tensor.0 as usize].bytes
    }

    /// Memory that lives only while a kernel runs.
    pub(super) fn scratch(&mut self, bytes: u64) {
        self.borrow(&[bytes]);
    }

    /// A convolution's kernel runs.
    pub(super) fn convolve(&mut self, call: &ConvCall) {
        self.borrow(&self.workspaces.plans(call));
    }

    /// The first plan that fits is taken while a kernel runs.
    fn borrow(&mut self, plans: &[u64]) {
        for &bytes in plans.iter().filter(|bytes| **bytes > 0) {
            if let Ok(block) = self.allocator.allocate(bytes) {
                self.note_peak(bytes);
                return self.allocator.free(block);
            }
        }
    }

    /// Bytes that are held for a purpose.
    #[cfg(test)]
    pub(super) fn live(&self, purpose: Purpose) -> u64 {
        self.live[purpose as usize]
    }

    fn note_peak(&mut self, scratch: u64) {
        let in_use = self.allocator.allocated();
        if in_use > self.peak.0 {
            self.peak = (in_use, self.live);
            self.peak.1[Purpose::Workspace as usize] += scratch;
        }
    }
}
