//! A whole training: parameters, rehearsal, iterations, optimizer steps.

use super::allocator::{Blocks, Request};
use super::memory::{Held, Memory, Purpose};
use super::reuse::{Reused, shelved};
use super::script::{Part, Rare, Script, Step, Tensor, Thread};
use super::workspace::ConvCall;
use crate::run::RunConfig;

/// cuBLAS takes this through the allocator, once for each thread that multiplies.
const CUBLAS_WORKSPACE: u64 = 8_519_680;

shelved!(Held, Request);

/// A training under way.
struct Performance<'a, M> {
    script: &'a Script,
    memory: &'a mut M,
    tensors: Reused<Held>,
    /// The script's sizes for the batch that is played.
    requests: Reused<Request>,
    multiplied: [bool; 2],
}

/// Trains as the run says.
pub(super) fn perform<M: Memory>(script: &Script, run: &RunConfig, memory: &mut M) {
    let tensors = Reused::filled(Held::default(), script.tensors);
    let requests = Reused::with_capacity(script.sizes.len());
    let mut performance = Performance { script, memory, tensors, requests, multiplied: [false; 2] };
    performance.memory.keep(&script.weights, 1, Purpose::Weights);
    if let Some(rehearsal) = run.rehearsal {
        (0..rehearsal.passes).for_each(|_| performance.rehearse(u64::from(rehearsal.batch)));
    }
    for (iteration, batch) in run.batches().enumerate() {
        performance.play(&script.iteration, u64::from(batch));
        for &(new, old) in &script.left {
            performance.tensors[old.0 as usize] = performance.tensors[new.0 as usize];
        }
        if iteration == 0 {
            performance.memory.keep(&script.trained, run.optimizer.states(), Purpose::Optimizer);
        }
        for _ in 0..run.optimizer.temporaries() {
            performance.memory.lend_all(&script.trained, Purpose::Optimizer);
        }
    }
}

impl<M: Memory> Performance<'_, M> {
    /// A forward pass before training. In which order its tensors go does not matter: nothing is made
    /// in between.
    fn rehearse(&mut self, batch: u64) {
        let Script { forward, input, .. } = self.script;
        let held = self.memory.make(&Request::new(input.of(batch)), Purpose::Activations);
        let end = self.play(forward, batch);
        (forward.first.0..end).rev().for_each(|tensor| self.free(Tensor(tensor)));
        if held.bytes > 0 {
            self.memory.free(held);
        }
    }

    /// Plays some steps. Returns the number of the tensor that would be made next.
    #[inline(never)]
    fn play(&mut self, part: &Part, batch: u64) -> u32 {
        let script = self.script;
        self.requests.clear();
        self.requests.extend(script.sizes.iter().map(|size| Request::new(size.of(batch))));
        let Tensor(mut next) = part.first;
        for step in &script.steps[part.steps.clone()] {
            match *step {
                Step::Make(size, purpose) => {
                    let tensor = self.memory.make(&self.requests[size.0 as usize], purpose);
                    self.tensors[next as usize] = tensor;
                    next += 1;
                }
                Step::Free(tensor) => self.free(tensor),
                Step::Rare(rare) => self.play_rare(rare, batch),
            }
        }
        next
    }

    #[inline(never)]
    fn play_rare(&mut self, step: Rare, batch: u64) {
        match step {
            Rare::Lend(size, purpose) => {
                self.memory.lend(&self.requests[size.0 as usize], purpose);
            }
            Rare::Scratch(size) => self.memory.scratch(self.requests[size.0 as usize].bytes),
            Rare::Convolve(call) => {
                let call = self.script.calls[call as usize];
                self.memory.convolve(ConvCall { batch, ..call });
            }
            Rare::Multiply(thread) => self.multiply(thread),
            Rare::ZeroGradients => {
                self.script.gradients.iter().for_each(|gradient| self.free(*gradient));
            }
        }
    }

    /// Frees a tensor if it has any memory.
    #[inline(always)]
    fn free(&mut self, tensor: Tensor) {
        let tensor = &mut self.tensors[tensor.0 as usize];
        let held = *tensor;
        if held.bytes > 0 {
            tensor.bytes = 0;
            self.memory.free(held);
        }
    }

    fn multiply(&mut self, thread: Thread) {
        if !std::mem::replace(&mut self.multiplied[thread as usize], true) {
            self.take_workspace();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_workspace(&mut self) {
        let mut workspace = Blocks::with_capacity(1);
        workspace.push(CUBLAS_WORKSPACE);
        self.memory.keep(&workspace, 1, Purpose::Workspace);
    }
}
