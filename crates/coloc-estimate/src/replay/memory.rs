//! What memory is held for, and who keeps account of it.

use super::allocator::{Blocks, Request};
use super::workspace::ConvCall;
use serde::Serialize;

/// What memory is held for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Purpose {
    #[default]
    Weights,
    Gradients,
    Optimizer,
    Activations,
    Workspace,
}

/// Bytes by purpose, in the order of the purposes.
pub(super) type ByPurpose = [u64; 5];

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

impl Usage {
    /// From the tensors that lived, the scratch memory beside them and all that was reserved.
    pub(super) fn of(mut live: ByPurpose, scratch: u64, reserved: u64) -> Self {
        live[Purpose::Workspace as usize] += scratch;
        let [weights, gradients, optimizer, activations, workspace] = live;
        let fragmentation = reserved.saturating_sub(live.iter().sum());
        Usage { weights, gradients, optimizer, activations, workspace, fragmentation }
    }
}

/// A tensor that has its memory; of 0 bytes: none.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Held {
    pub(super) bytes: u64,
    pub(super) purpose: Purpose,
    /// Whatever the memory finds it by.
    pub(super) place: u32,
}

/// Memory in which a training is performed, or which writes it down.
pub(super) trait Memory {
    /// A tensor appears.
    fn make(&mut self, request: &Request, purpose: Purpose) -> Held;
    /// So many tensors of each size appear that stay for good.
    fn keep(&mut self, blocks: &Blocks, copies: usize, purpose: Purpose);
    /// A tensor appears and goes before anything else happens.
    fn lend(&mut self, request: &Request, purpose: Purpose);
    /// The same for tensors that live together.
    fn lend_all(&mut self, blocks: &Blocks, purpose: Purpose);
    /// A tensor's memory is given back.
    fn free(&mut self, tensor: Held);
    /// Memory that lives only while a kernel runs.
    fn scratch(&mut self, bytes: u64);
    /// A convolution's kernel runs.
    fn convolve(&mut self, call: ConvCall);
}
