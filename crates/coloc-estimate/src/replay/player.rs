//! Plays a tape on a device that may be too small.

use super::allocator::{Allocator, Block};
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
    let mut player = Player { allocator: Allocator::new(limit), ran_out: false };
    let mut blocks: Vec<Option<Block>> = Vec::with_capacity(tape.made.len());
    let mut peak = Peak::default();
    for (step, at) in tape.steps.iter().zip(0..) {
        match *step {
            Step::Make => {
                let bytes = tape.made[blocks.len()].bytes;
                blocks.push((bytes > 0).then(|| player.allocate_or_lift(bytes)));
                peak.raise(player.allocator.allocated(), at, 0);
            }
            Step::Free(tensor) => {
                if let Some(block) = blocks[tensor as usize].take() {
                    player.allocator.free(block);
                }
            }
            Step::Scratch(bytes) => player.scratch(&[bytes], at, &mut peak),
            Step::Convolve(call) => {
                let plans = workspaces.plans(&tape.calls[call as usize]);
                player.scratch(&plans, at, &mut peak);
            }
        }
    }
    Played { reserved: player.allocator.peak_reserved(), peak, ran_out: player.ran_out }
}

struct Player {
    allocator: Allocator,
    ran_out: bool,
}

impl Player {
    /// Memory that lives only while a kernel runs; the first plan that fits is taken.
    fn scratch(&mut self, plans: &[u64], at: u32, peak: &mut Peak) {
        for &bytes in plans.iter().filter(|bytes| **bytes > 0) {
            if let Ok(in_use) = self.allocator.borrow(bytes) {
                peak.raise(in_use, at, bytes);
                return;
            }
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
