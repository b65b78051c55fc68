//! What one iteration does to memory, told once for every size of a batch.
//!
//! Which tensors are made and freed, and in which order, follows from the graph alone; only sizes grow
//! with the batch.

use super::allocator::Blocks;
use super::memory::Purpose;
use super::reuse::{Reused, shelved};
use super::workspace::ConvCall;
use std::ops::Range;

/// A tensor of the script. The first ones are what the iteration before has left.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Tensor(pub(super) u32);

/// The batch that the iteration before has left.
pub(super) const OLD_INPUT: Tensor = Tensor(0);
/// Its labels.
pub(super) const OLD_LABELS: Tensor = Tensor(1);
/// The result of the iteration before.
pub(super) const OLD_RESULT: Tensor = Tensor(2);
/// Its loss.
pub(super) const OLD_LOSS: Tensor = Tensor(3);
const OLD: usize = 4;

/// How large a tensor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size {
    bytes: u64,
    for_each_sample: bool,
}

impl Size {
    /// So many bytes, whatever the batch.
    pub(super) const fn fixed(bytes: u64) -> Self {
        Size { bytes, for_each_sample: false }
    }

    /// So many bytes for each sample of the batch.
    pub(super) const fn per_sample(bytes: u64) -> Self {
        Size { bytes, for_each_sample: true }
    }

    #[inline(always)]
    pub(super) fn of(self, batch: u64) -> u64 {
        self.bytes * if self.for_each_sample { batch } else { 1 }
    }
}

/// One of a script's sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SizeId(pub(super) u32);

/// A thread that multiplies matrices: each takes the library's workspace once, for good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Thread {
    Forward,
    Backward,
}

/// One thing that happens to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The next tensor is made.
    Make(SizeId, Purpose),
    /// A tensor is freed, if it has any memory.
    Free(Tensor),
    /// Anything else.
    Rare(Rare),
}

/// What seldom happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rare {
    /// A tensor is made and freed at once.
    Lend(SizeId, Purpose),
    /// Memory that lives only while a kernel runs.
    Scratch(SizeId),
    /// A convolution runs: this one of the script's calls.
    Convolve(u32),
    /// A thread multiplies matrices for the first time in the iteration.
    Multiply(Thread),
    /// The gradients of the iteration before are freed.
    ZeroGradients,
}

shelved!(Step, (u32, SizeId), Tensor, Size);

/// Steps that belong together; the first that makes a tensor makes `first`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Part {
    pub(super) steps: Range<usize>,
    pub(super) first: Tensor,
}

/// A training in parts, each for any batch.
pub(super) struct Script {
    pub(super) steps: Reused<Step>,
    /// How large tensors are: many tensors have few sizes.
    pub(super) sizes: Reused<Size>,
    /// Convolutions, for one sample.
    pub(super) calls: Vec<ConvCall>,
    /// How many tensors there are, with those of the iteration before.
    pub(super) tensors: usize,
    /// Bytes of parameters and running statistics.
    pub(super) weights: Blocks,
    /// Bytes of the optimizer's share of each parameter that is trained.
    pub(super) trained: Blocks,
    /// One iteration, from the batch to the last gradient.
    pub(super) iteration: Part,
    /// The forward pass within it.
    pub(super) forward: Part,
    /// The batch on the device.
    pub(super) input: Size,
    /// What is left for the next iteration, and as what it is known there.
    pub(super) left: Vec<(Tensor, Tensor)>,
    /// What is left too, and known as what it was: it is gone before it is made again.
    pub(super) gradients: Reused<Tensor>,
}

/// A place in a script that is being written.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Mark {
    pub(super) steps: usize,
    pub(super) tensors: u32,
}

/// How many sizes are remembered.
const RECENT: usize = 256;

/// Reference-counted tensors, written down as they come and go.
pub(super) struct Recorder {
    pub(super) steps: Reused<Step>,
    pub(super) calls: Vec<ConvCall>,
    pub(super) sizes: Reused<Size>,
    /// By a part of their bits, the sizes that were seen last.
    recent: [SizeId; RECENT],
    /// Handles and sizes.
    tensors: Reused<(u32, SizeId)>,
    /// Steps of parts that have ended.
    ended: usize,
}

impl Recorder {
    /// With room for so many tensors.
    pub(super) fn with_capacity(tensors: usize) -> Self {
        let mut sizes = Reused::with_capacity(RECENT / 4);
        sizes.push(Size::fixed(0));
        let mut known = Reused::with_capacity(tensors);
        known.resize(OLD, (1, SizeId(0)));
        Recorder {
            steps: Reused::with_capacity(2 * tensors),
            calls: Vec::new(),
            sizes,
            recent: [SizeId(0); RECENT],
            tensors: known,
            ended: 0,
        }
    }

    /// The tensor that will be made next.
    pub(super) fn next(&self) -> Tensor {
        Tensor(self.tensors.len() as u32)
    }

    /// A new tensor with one handle.
    pub(super) fn make(&mut self, size: Size, purpose: Purpose) -> Tensor {
        let tensor = self.next();
        let size = self.known(size);
        self.steps.push(Step::Make(size, purpose));
        self.tensors.push((1, size));
        tensor
    }

    /// A size's number. The odd one that has two does no harm.
    #[inline(always)]
    fn known(&mut self, size: Size) -> SizeId {
        // Sizes are products of few numbers: the highest bits of this product tell them apart.
        let slot = (size.bytes.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % RECENT;
        let recent = self.recent[slot];
        if self.sizes[recent.0 as usize] == size {
            return recent;
        }
        let new = SizeId(self.sizes.len() as u32);
        self.sizes.push(size);
        self.recent[slot] = new;
        new
    }

    /// One more handle to the same tensor.
    pub(super) fn share(&mut self, tensor: Tensor) -> Tensor {
        self.tensors[tensor.0 as usize].0 += 1;
        tensor
    }

    /// One handle less; the last frees the memory.
    #[inline(always)]
    pub(super) fn drop(&mut self, tensor: Tensor) {
        let handles = &mut self.tensors[tensor.0 as usize].0;
        *handles -= 1;
        if *handles == 0 {
            self.free(tensor);
        }
    }

    fn free(&mut self, tensor: Tensor) {
        let newest = tensor.0 as usize + 1 == self.tensors.len();
        let begun = self.steps.len() > self.ended;
        match self.steps.last_mut().filter(|_| begun) {
            Some(&mut Step::Make(size, purpose)) if newest => {
                self.steps.pop();
                self.tensors.pop();
                self.lend(size, purpose);
            }
            _ => self.steps.push(Step::Free(tensor)),
        }
    }

    /// A tensor that nobody keeps. Twice the same in a row is once: nothing has changed.
    fn lend(&mut self, size: SizeId, purpose: Purpose) {
        let step = Step::Rare(Rare::Lend(size, purpose));
        if self.steps[self.ended..].last() != Some(&step) {
            self.steps.push(step);
        }
    }

    /// Nobody else holds this tensor, so a sum may be written into it.
    pub(super) fn sole(&self, tensor: Tensor) -> bool {
        self.handles_of(tensor) == 1
    }

    pub(super) fn handles_of(&self, tensor: Tensor) -> u32 {
        self.tensors[tensor.0 as usize].0
    }

    pub(super) fn size(&self, tensor: Tensor) -> Size {
        self.sizes[self.tensors[tensor.0 as usize].1.0 as usize]
    }

    /// Memory that lives only while a kernel runs.
    pub(super) fn scratch(&mut self, size: Size) {
        if size.bytes > 0 {
            let size = self.known(size);
            self.steps.push(Step::Rare(Rare::Scratch(size)));
        }
    }

    /// Where the script has come to.
    pub(super) fn mark(&self) -> Mark {
        Mark { steps: self.steps.len(), tensors: self.tensors.len() as u32 }
    }

    pub(super) fn last_step(&self) -> Option<Step> {
        self.steps[self.ended..].last().copied()
    }

    /// Writes the steps between two marks again. What was made in them is made again, and what they free is
    /// another tensor.
    pub(super) fn repeat(&mut self, steps: Range<Mark>, moved: impl Fn(Tensor) -> Tensor) {
        let copies = self.steps.len();
        self.steps.extend_from_within(steps.start.steps..steps.end.steps);
        for step in &mut self.steps[copies..] {
            if let Step::Free(tensor) = step {
                *tensor = moved(*tensor);
            }
        }
        let made = steps.start.tensors as usize..steps.end.tensors as usize;
        self.tensors.extend_from_within(made);
    }

    /// The handles to some tensors.
    pub(super) fn handles(&self, tensors: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        let tensors = tensors.start as usize..tensors.end as usize;
        self.tensors[tensors].iter().map(|(handles, _)| *handles)
    }

    /// One tensor has as many handles as another.
    pub(super) fn copy_handles(&mut self, from: Tensor, to: Tensor) {
        self.tensors[to.0 as usize].0 = self.tensors[from.0 as usize].0;
    }

    /// From here on.
    pub(super) fn begin(&self) -> Part {
        Part { steps: self.steps.len()..self.steps.len(), first: self.next() }
    }

    /// Up to here.
    pub(super) fn end(&mut self, mut part: Part) -> Part {
        self.ended = self.steps.len();
        part.steps.end = self.steps.len();
        part
    }

    /// A convolution's kernel runs.
    pub(super) fn convolve(&mut self, call: ConvCall) {
        self.steps.push(Step::Rare(Rare::Convolve(self.calls.len() as u32)));
        self.calls.push(call);
    }
}
