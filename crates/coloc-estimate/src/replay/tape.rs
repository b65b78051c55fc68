//! What training asks of the allocator, in order: recorded once, played under any rule of workspaces.
//!
//! Which tensors are made and freed follows from the graph alone. Only the scratch memory of
//! convolutions depends on what cuDNN is thought to do, so the tape names the call and leaves the size
//! to whoever plays it.

use super::allocator::{Blocks, Request};
use super::memory::{Held, Memory, Purpose, Usage};
use super::workspace::ConvCall;

/// One thing that happens to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// The next tensor is made: the n-th of these steps makes tensor n.
    Make,
    /// This tensor's memory is given back.
    Free(u32),
    /// Memory of this many bytes that lives only while a kernel runs.
    Scratch(u64),
    /// A convolution runs: this one of the tape's calls.
    Convolve(u32),
}

#[derive(Clone, Copy)]
pub(super) struct Made {
    pub(super) bytes: u64,
    pub(super) purpose: Purpose,
}

/// The moment at which most bytes were in use.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Peak {
    pub(super) bytes: u64,
    /// The step that reached it.
    at: u32,
    /// Bytes asked for scratch memory at that step.
    scratch: u64,
}

impl Peak {
    /// Notes how much is in use after a step.
    pub(super) fn raise(&mut self, bytes: u64, at: u32, scratch: u64) {
        if bytes > self.bytes {
            *self = Peak { bytes, at, scratch };
        }
    }

    /// Notes a peak of one pool while the other held `bytes`.
    pub(super) fn raise_over(&mut self, bytes: u64, peak: Peak) {
        self.raise(bytes + peak.bytes, peak.at, peak.scratch);
    }
}

/// The steps of a whole training.
#[derive(Default)]
pub(super) struct Tape {
    pub(super) steps: Vec<Step>,
    /// Every tensor ever made.
    pub(super) made: Vec<Made>,
    pub(super) calls: Vec<ConvCall>,
}

impl Tape {
    /// What memory was held for at a peak.
    pub(super) fn usage(&self, peak: Peak, reserved: u64) -> Usage {
        let mut live = [0; 5];
        let mut made = self.made.iter();
        for step in self.steps.iter().take(peak.at as usize + 1) {
            match *step {
                Step::Make => {
                    let tensor = made.next().expect("as many tensors as steps that make one");
                    live[tensor.purpose as usize] += tensor.bytes;
                }
                Step::Free(tensor) => {
                    let tensor = self.made[tensor as usize];
                    live[tensor.purpose as usize] -= tensor.bytes;
                }
                Step::Scratch(_) | Step::Convolve(_) => {}
            }
        }
        Usage::of(live, peak.scratch, reserved)
    }
}

impl Tape {
    /// With room for about this many tensors.
    pub(super) fn with_capacity(tensors: usize) -> Self {
        Tape {
            steps: Vec::with_capacity(2 * tensors),
            made: Vec::with_capacity(tensors),
            calls: Vec::new(),
        }
    }

    fn add(&mut self, bytes: u64, purpose: Purpose) -> Held {
        let place = self.made.len() as u32;
        self.steps.push(Step::Make);
        self.made.push(Made { bytes, purpose });
        Held { bytes, purpose, place }
    }
}

impl Memory for Tape {
    fn make(&mut self, request: &Request, purpose: Purpose) -> Held {
        self.add(request.bytes, purpose)
    }

    fn keep(&mut self, blocks: &Blocks, copies: usize, purpose: Purpose) {
        for &bytes in blocks.sizes.iter() {
            for _ in 0..copies {
                self.add(bytes, purpose);
            }
        }
    }

    fn lend(&mut self, request: &Request, purpose: Purpose) {
        let tensor = self.add(request.bytes, purpose);
        self.free(tensor);
    }

    fn lend_all(&mut self, blocks: &Blocks, purpose: Purpose) {
        let first = self.made.len() as u32;
        self.keep(blocks, 1, purpose);
        self.steps.extend((first..self.made.len() as u32).map(Step::Free));
    }

    fn free(&mut self, tensor: Held) {
        self.steps.push(Step::Free(tensor.place));
    }

    fn scratch(&mut self, bytes: u64) {
        if bytes > 0 {
            self.steps.push(Step::Scratch(bytes));
        }
    }

    fn convolve(&mut self, call: ConvCall) {
        self.steps.push(Step::Convolve(self.calls.len() as u32));
        self.calls.push(call);
    }
}
