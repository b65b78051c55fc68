//! Plays a tape on a device that may be too small.

use super::allocator::{Allocator, Block, Blocks, Request, Run};
use super::tape::{Peak, Step, Tape};
use super::workspace::WorkspaceProvider;

/// What playing a tape showed.
pub(super) struct Played {
    pub(super) reserved: u64,
    pub(super) peak: Peak,
    pub(super) ran_out: bool,
}

/// Plays every step against one allocator.
pub(super) fn play(tape: &Tape, limit: Option<u64>, workspaces: &dyn WorkspaceProvider) -> Played {
    let mut player = Player::new(limit, tape.made.len());
    let mut blocks: Vec<Option<Block>> = Vec::with_capacity(tape.made.len());
    let mut peak = Peak::default();
    for (step, at) in tape.steps.iter().zip(0..) {
        match *step {
            Step::Make => {
                let bytes = tape.made[blocks.len()].bytes;
                blocks.push((bytes > 0).then(|| player.take_or_lift(&Request::new(bytes))));
                peak.raise(player.allocated(), at, 0);
            }
            Step::Free(tensor) => {
                if let Some(block) = blocks[tensor as usize].take() {
                    player.free(block);
                }
            }
            Step::Scratch(bytes) => note(&mut peak, player.borrow(&[bytes]), at),
            Step::Convolve(call) => {
                let plans = workspaces.plans(&tape.calls[call as usize]);
                note(&mut peak, player.borrow(&plans), at);
            }
        }
    }
    Played { reserved: player.peak_reserved(), peak, ran_out: player.ran_out }
}

fn note(peak: &mut Peak, borrowed: Option<(u64, u64)>, at: u32) {
    if let Some((in_use, scratch)) = borrowed {
        peak.raise(in_use, at, scratch);
    }
}

/// An allocator on a device that may be too small.
pub(super) struct Player {
    allocator: Allocator,
    ran_out: bool,
}

impl Player {
    pub(super) fn new(limit: Option<u64>, tensors: usize) -> Self {
        Player { allocator: Allocator::with_capacity(limit, tensors), ran_out: false }
    }

    pub(super) fn ran_out(&self) -> bool {
        self.ran_out
    }

    pub(super) fn allocated(&self) -> u64 {
        self.allocator.allocated()
    }

    pub(super) fn peak_reserved(&self) -> u64 {
        self.allocator.peak_reserved()
    }

    #[inline(always)]
    pub(super) fn free(&mut self, block: Block) {
        self.allocator.free(block);
    }

    /// Memory that lives only while a kernel runs: the first plan that fits is taken. Returns the bytes
    /// in use meanwhile and those of the plan.
    pub(super) fn borrow(&mut self, plans: &[u64]) -> Option<(u64, u64)> {
        let wanted = plans.iter().copied().filter(|bytes| *bytes > 0);
        wanted
            .into_iter()
            .find_map(|bytes| Some((self.allocator.borrow(&Request::new(bytes)).ok()?, bytes)))
    }

    /// A tensor that must exist: past the limit the run is lost, but its need is still measured.
    #[inline(always)]
    pub(super) fn take_or_lift(&mut self, request: &Request) -> Block {
        self.allocator.take(request).unwrap_or_else(|_| self.lift_and_take(request))
    }

    /// So many tensors of each size that stay for good.
    pub(super) fn keep(&mut self, blocks: &Blocks, copies: usize) {
        let mut run = self.allocator.keep();
        self.ran_out |= take_all(&mut run, blocks, copies);
        run.end();
    }

    /// A tensor that goes before anything else happens. Returns the bytes in use meanwhile.
    pub(super) fn lend(&mut self, request: &Request) -> u64 {
        self.allocator.borrow(request).unwrap_or_else(|_| {
            self.lift();
            self.allocator.borrow(request).expect("without a limit every request is met")
        })
    }

    /// The same for tensors that live together.
    pub(super) fn lend_all(&mut self, blocks: &Blocks) -> u64 {
        let mut run = self.allocator.lend();
        self.ran_out |= take_all(&mut run, blocks, 1);
        run.end()
    }

    fn lift(&mut self) {
        self.ran_out = true;
        self.allocator.lift_limit();
    }

    #[cold]
    #[inline(never)]
    fn lift_and_take(&mut self, request: &Request) -> Block {
        self.lift();
        self.allocator.take(request).expect("without a limit every request is met")
    }
}

/// Takes so many blocks of each size. Says whether the limit was passed.
fn take_all(run: &mut Run<'_>, blocks: &Blocks, copies: usize) -> bool {
    if !run.is_limited() {
        run.take_all(blocks, copies).expect("without a limit every request is met");
        return false;
    }
    let mut ran_out = false;
    for &bytes in blocks.sizes.iter() {
        for _ in 0..copies {
            if run.take(bytes).is_err() {
                ran_out = true;
                run.lift_limit();
                run.take(bytes).expect("without a limit every request is met");
            }
        }
    }
    ran_out
}
