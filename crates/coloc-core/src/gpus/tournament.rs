//! Tournament trees: the best value below every inner node, so that a search for "the GPU with the most
//! memory that is not too busy" visits a handful of GPUs out of ten thousand.

use coloc_model::{Bytes, GpuId};

/// What can be summed up over the children of a node.
pub(crate) trait Summarize: Copy + PartialEq {
    /// Nothing below.
    const EMPTY: Self;
    /// Both together.
    fn merge(a: &Self, b: &Self) -> Self;
}

/// What the GPUs below a node have to offer at best.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Summary {
    /// The lowest GPU id.
    pub(crate) first: u32,
    /// One past the highest GPU id.
    pub(crate) end: u32,
    /// The most available memory on any.
    pub(crate) max_available: Bytes,
    /// The least available memory on any.
    pub(crate) min_available: Bytes,
    /// The lowest load of any.
    pub(crate) min_load: f64,
    /// How many are idle.
    pub(crate) idle: u32,
}

impl Summarize for Summary {
    const EMPTY: Summary = Summary {
        first: u32::MAX,
        end: 0,
        max_available: Bytes::ZERO,
        min_available: Bytes::MAX,
        min_load: f64::INFINITY,
        idle: 0,
    };

    fn merge(a: &Summary, b: &Summary) -> Summary {
        Summary {
            first: a.first.min(b.first),
            end: a.end.max(b.end),
            max_available: a.max_available.max(b.max_available),
            min_available: a.min_available.min(b.min_available),
            min_load: a.min_load.min(b.min_load),
            idle: a.idle + b.idle,
        }
    }
}

impl Summary {
    pub(crate) fn leaf(gpu: GpuId, available: Bytes, load: f64, idle: bool) -> Self {
        Summary {
            first: gpu.0,
            end: gpu.0 + 1,
            max_available: available,
            min_available: available,
            min_load: load,
            idle: u32::from(idle),
        }
    }
}

/// Gangs up to this size are searched for exactly; larger ones by what this many GPUs offer.
const RANKS: usize = 8;

/// What the best node below has to offer to a gang of each size: the k-th best of its GPUs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct GangSummary {
    first: u32,
    end: u32,
    available: [Bytes; RANKS],
    load: [f64; RANKS],
    idle: u32,
}

impl Summarize for GangSummary {
    const EMPTY: GangSummary = GangSummary {
        first: u32::MAX,
        end: 0,
        available: [Bytes::ZERO; RANKS],
        load: [f64::INFINITY; RANKS],
        idle: 0,
    };

    fn merge(a: &GangSummary, b: &GangSummary) -> GangSummary {
        let mut merged = GangSummary {
            first: a.first.min(b.first),
            end: a.end.max(b.end),
            idle: a.idle.max(b.idle),
            ..*a
        };
        for rank in 0..RANKS {
            merged.available[rank] = a.available[rank].max(b.available[rank]);
            merged.load[rank] = a.load[rank].min(b.load[rank]);
        }
        merged
    }
}

impl GangSummary {
    /// The offer of one node with these GPUs.
    pub(crate) fn of_node(gpus: impl Iterator<Item = Summary>) -> Self {
        let mut node = Self::EMPTY;
        for gpu in gpus {
            node.first = node.first.min(gpu.first);
            node.end = node.end.max(gpu.end);
            node.idle += gpu.idle;
            let (mut available, mut load) = (gpu.max_available, gpu.min_load);
            // Insertion into two short sorted lists: memory falling, load rising.
            for rank in 0..RANKS {
                if available > node.available[rank] {
                    std::mem::swap(&mut available, &mut node.available[rank]);
                }
                if load < node.load[rank] {
                    std::mem::swap(&mut load, &mut node.load[rank]);
                }
            }
        }
        node
    }

    /// What a gang of this size can expect of its last GPU at best.
    pub(crate) fn for_gang(&self, gpus: u32) -> Summary {
        let rank = (gpus as usize).clamp(1, RANKS) - 1;
        Summary {
            first: self.first,
            end: self.end,
            max_available: self.available[rank],
            min_available: Bytes::ZERO,
            min_load: self.load[rank],
            idle: if self.idle >= gpus { self.idle } else { 0 },
        }
    }
}

/// The tree, laid out as an implicit heap: node `n` has children `2n` and `2n + 1`.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<S> {
    nodes: Vec<S>,
    leaves: usize,
}

impl<S: Summarize> Tournament<S> {
    pub(crate) fn new(players: usize) -> Self {
        let leaves = players.next_power_of_two();
        Tournament { nodes: vec![S::EMPTY; 2 * leaves], leaves }
    }

    pub(crate) const ROOT: u32 = 1;

    pub(crate) fn get(&self, node: u32) -> &S {
        &self.nodes[node as usize]
    }

    pub(crate) fn leaf(&self, player: usize) -> &S {
        &self.nodes[self.leaves + player]
    }

    /// The player at a leaf; `None` at inner nodes.
    pub(crate) fn player(&self, node: u32) -> Option<usize> {
        (node as usize).checked_sub(self.leaves)
    }

    pub(crate) fn children(node: u32) -> [u32; 2] {
        [2 * node, 2 * node + 1]
    }

    /// Changes a leaf alone; what is above it is not kept.
    pub(crate) fn set_leaf(&mut self, player: usize, summary: S) {
        self.nodes[self.leaves + player] = summary;
    }

    pub(crate) fn set(&mut self, player: usize, summary: S) {
        let mut node = self.leaves + player;
        self.nodes[node] = summary;
        while node > 1 {
            node /= 2;
            let merged = S::merge(&self.nodes[2 * node], &self.nodes[2 * node + 1]);
            if self.nodes[node] == merged {
                break;
            }
            self.nodes[node] = merged;
        }
    }
}
