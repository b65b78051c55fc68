//! Plays a tape on a device with room enough, where the allocator's two pools never meet.
//!
//! While no limit is reached, small tensors never touch the pool of the large ones. Most tensors are
//! small and are the same under every rule of workspaces: they are played once, and only the large ones
//! again for each rule.

use super::allocator::{Allocator, Block, GRAIN, OutOfMemory, Request, is_small};
use super::player::Played;
use super::tape::{Peak, Step, Tape};
use super::workspace::WorkspaceProvider;

#[derive(Clone, Copy)]
enum Large {
    Make(u64),
    /// The n-th of those that were made.
    Free(u32),
    Scratch(u64),
    /// The rule says which pool's.
    Convolve(u32),
}

/// A step that the small pool alone does not explain.
#[derive(Clone, Copy)]
struct Event {
    what: Large,
    at: u32,
    /// The most that the small pool held since the event before.
    before: Peak,
    /// What the small pool holds now.
    small: u64,
}

/// A tape whose small pool was played.
pub(super) struct Pools {
    events: Vec<Event>,
    /// The most that the small pool held since the last event.
    after: Peak,
    small_reserved: u64,
    /// The largest free block of the small pool, at each convolution.
    small_room: Vec<u64>,
}

enum Place {
    Nowhere,
    Small(Block),
    Large(u32),
}

impl Pools {
    /// Plays the small pool.
    pub(super) fn of(tape: &Tape) -> Self {
        let mut pool = Allocator::new(None);
        let mut places: Vec<Place> = Vec::with_capacity(tape.made.len());
        let mut events = Vec::with_capacity(tape.steps.len() / 2);
        let mut small_room = Vec::with_capacity(tape.calls.len());
        let mut before = Peak::default();
        let mut large = 0;
        for (step, at) in tape.steps.iter().zip(0..) {
            let what = match *step {
                Step::Make => match tape.made[places.len()].bytes {
                    0 => {
                        places.push(Place::Nowhere);
                        continue;
                    }
                    bytes if is_small(bytes) => {
                        places.push(Place::Small(unlimited(pool.allocate(bytes))));
                        before.raise(pool.allocated(), at, 0);
                        continue;
                    }
                    bytes => {
                        places.push(Place::Large(large));
                        large += 1;
                        Large::Make(bytes)
                    }
                },
                Step::Free(tensor) => {
                    match std::mem::replace(&mut places[tensor as usize], Place::Nowhere) {
                        Place::Nowhere => continue,
                        Place::Small(block) => {
                            pool.free(block);
                            continue;
                        }
                        Place::Large(index) => Large::Free(index),
                    }
                }
                Step::Scratch(bytes) if is_small(bytes) => {
                    before.raise(unlimited(pool.borrow(&Request::new(bytes))), at, bytes);
                    continue;
                }
                Step::Scratch(bytes) => Large::Scratch(bytes),
                Step::Convolve(call) => {
                    small_room.push(pool.largest_free_small());
                    Large::Convolve(call)
                }
            };
            let small = pool.allocated();
            events.push(Event { what, at, before, small });
            before = Peak::default();
        }
        Pools { events, after: before, small_reserved: pool.reserved(), small_room }
    }

    /// Plays the large pool. `None` when the pools meet after all: at the limit, or when a small
    /// workspace needs a new segment.
    pub(super) fn play(
        &self,
        tape: &Tape,
        limit: Option<u64>,
        workspaces: &dyn WorkspaceProvider,
    ) -> Option<Played> {
        let mut pool = Allocator::new(None);
        let mut blocks: Vec<Option<Block>> = Vec::with_capacity(self.events.len());
        let mut peak = Peak::default();
        for event in &self.events {
            let Event { what, at, before, small } = *event;
            peak.raise_over(pool.allocated(), before);
            let workspace = match what {
                Large::Make(bytes) => {
                    blocks.push(Some(unlimited(pool.allocate(bytes))));
                    peak.raise(pool.allocated() + small, at, 0);
                    continue;
                }
                Large::Free(index) => {
                    let block = blocks[index as usize].take();
                    pool.free(block.expect("a tensor is freed once"));
                    continue;
                }
                Large::Scratch(bytes) => bytes,
                Large::Convolve(call) => {
                    // Where nothing is short the first plan is taken.
                    let plans = workspaces.plans(&tape.calls[call as usize]);
                    let Some(bytes) = plans.into_iter().find(|bytes| *bytes > 0) else { continue };
                    if is_small(bytes) {
                        let rounded = bytes.next_multiple_of(GRAIN);
                        if rounded > self.small_room[call as usize] {
                            return None;
                        }
                        peak.raise(pool.allocated() + small + rounded, at, bytes);
                        continue;
                    }
                    bytes
                }
            };
            peak.raise(unlimited(pool.borrow(&Request::new(workspace))) + small, at, workspace);
        }
        peak.raise_over(pool.allocated(), self.after);
        // Without a limit nothing is given back, so the last is the most.
        let reserved = self.small_reserved + pool.reserved();
        let fits = limit.is_none_or(|limit| reserved <= limit);
        fits.then_some(Played { reserved, peak, ran_out: false })
    }
}

fn unlimited<T>(taken: Result<T, OutOfMemory>) -> T {
    taken.expect("without a limit every request is met")
}
