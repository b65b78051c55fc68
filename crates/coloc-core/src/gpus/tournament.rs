//! Tournament trees: the best value below every inner node, so that a search for "the GPU with the most
//! memory that is not too busy" visits a handful of GPUs out of ten thousand.

use coloc_model::Bytes;
use std::ops::Range;

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
        max_available: Bytes::ZERO,
        min_available: Bytes::MAX,
        min_load: f64::INFINITY,
        idle: 0,
    };

    fn merge(a: &Summary, b: &Summary) -> Summary {
        Summary {
            max_available: a.max_available.max(b.max_available),
            min_available: a.min_available.min(b.min_available),
            min_load: a.min_load.min(b.min_load),
            idle: a.idle + b.idle,
        }
    }
}

impl Summary {
    pub(crate) fn leaf(available: Bytes, load: f64, idle: bool) -> Self {
        Summary {
            max_available: available,
            min_available: available,
            min_load: load,
            idle: u32::from(idle),
        }
    }
}

/// Gangs of these sizes are searched for exactly; others by what the next smaller one is offered.
const SIZES: [usize; 4] = [1, 2, 4, 8];
const RANKS: usize = SIZES.len();
const WIDEST: usize = SIZES[RANKS - 1];

/// What the best node below has to offer to a gang of each size: the k-th best of its GPUs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct GangSummary {
    available: [Bytes; RANKS],
    load: [f64; RANKS],
    idle: u32,
}

impl Summarize for GangSummary {
    const EMPTY: GangSummary =
        GangSummary { available: [Bytes::ZERO; RANKS], load: [f64::INFINITY; RANKS], idle: 0 };

    fn merge(a: &GangSummary, b: &GangSummary) -> GangSummary {
        let mut merged = GangSummary { idle: a.idle.max(b.idle), ..*a };
        for rank in 0..RANKS {
            merged.available[rank] = a.available[rank].max(b.available[rank]);
            merged.load[rank] = a.load[rank].min(b.load[rank]);
        }
        merged
    }
}

/// What some GPUs of one node have to offer to gangs: memory of the best, falling, and load of the best, rising.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Offer {
    available: [Bytes; WIDEST],
    load: [f64; WIDEST],
    idle: u32,
}

impl Summarize for Offer {
    const EMPTY: Offer =
        Offer { available: [Bytes::ZERO; WIDEST], load: [f64::INFINITY; WIDEST], idle: 0 };

    fn merge(a: &Offer, b: &Offer) -> Offer {
        let mut merged = Offer { idle: a.idle + b.idle, ..*a };
        for rank in 0..WIDEST {
            merged.insert(b.available[rank], b.load[rank]);
        }
        merged
    }
}

impl Offer {
    /// The offer of these GPUs.
    pub(crate) fn of(gpus: impl Iterator<Item = Summary>) -> Self {
        let mut offer = Offer::EMPTY;
        for gpu in gpus {
            offer.idle += gpu.idle;
            offer.insert(gpu.max_available, gpu.min_load);
        }
        offer
    }

    /// Insertion into two short sorted lists.
    fn insert(&mut self, mut more: Bytes, mut less: f64) {
        for rank in 0..WIDEST {
            if more > self.available[rank] {
                std::mem::swap(&mut more, &mut self.available[rank]);
            }
            if less < self.load[rank] {
                std::mem::swap(&mut less, &mut self.load[rank]);
            }
        }
    }
}

impl From<&Offer> for GangSummary {
    /// The offer of all GPUs of a node.
    fn from(node: &Offer) -> Self {
        GangSummary {
            available: SIZES.map(|size| node.available[size - 1]),
            load: SIZES.map(|size| node.load[size - 1]),
            idle: node.idle,
        }
    }
}

impl GangSummary {
    /// What a gang of this size can expect of its last GPU at best.
    pub(crate) fn for_gang(&self, gpus: u32) -> Summary {
        let rank = SIZES.partition_point(|&size| size <= gpus as usize).max(1) - 1;
        Summary {
            max_available: self.available[rank],
            min_available: Bytes::ZERO,
            min_load: self.load[rank],
            idle: if self.idle >= gpus { self.idle } else { 0 },
        }
    }
}

/// Two siblings, which are always looked at together, on as few cache lines as they need.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Pair<S>([S; 2]);

/// The tree, laid out as an implicit heap: node `n` has children `2n` and `2n + 1`.
#[derive(Clone, Debug)]
pub(crate) struct Tournament<S> {
    pairs: Vec<Pair<S>>,
    players: usize,
}

impl<S: Summarize> Tournament<S> {
    pub(crate) fn new(players: usize) -> Self {
        Tournament { pairs: vec![Pair([S::EMPTY; 2]); players.next_power_of_two()], players }
    }

    pub(crate) const ROOT: u32 = 1;

    fn leaves(&self) -> usize {
        self.pairs.len()
    }

    pub(crate) fn get(&self, node: u32) -> &S {
        &self.pairs[node as usize / 2].0[node as usize % 2]
    }

    pub(crate) fn leaf(&self, player: usize) -> &S {
        self.get((self.leaves() + player) as u32)
    }

    /// The player at a leaf; `None` at inner nodes.
    pub(crate) fn player(&self, node: u32) -> Option<usize> {
        (node as usize).checked_sub(self.leaves())
    }

    /// The players below a node; none below the padding at the end.
    pub(crate) fn players_below(&self, node: u32) -> Range<usize> {
        let width = self.leaves() >> node.ilog2();
        let first = node as usize * width - self.leaves();
        first.min(self.players)..(first + width).min(self.players)
    }

    pub(crate) fn children(node: u32) -> [u32; 2] {
        [2 * node, 2 * node + 1]
    }

    pub(crate) fn set(&mut self, player: usize, summary: S) {
        let mut node = self.leaves() + player;
        let mut summary = summary;
        loop {
            let pair = &mut self.pairs[node / 2].0;
            if std::mem::replace(&mut pair[node % 2], summary) == summary || node == 1 {
                return;
            }
            summary = S::merge(&pair[0], &pair[1]);
            node /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_of_parts_make_the_offer_of_all() {
        let leaf = |n: u64| {
            Summary::leaf(Bytes(n * 7919 % 101), (n * 31 % 17) as f64, n.is_multiple_of(3))
        };
        let all = Offer::of((0..50).map(leaf));
        let parts = [0..3, 3..20, 20..21, 21..50].map(|part| Offer::of(part.map(leaf)));
        let merged = parts.iter().fold(Offer::EMPTY, |sum, part| Offer::merge(&sum, part));
        assert_eq!(merged, all);
    }

    #[test]
    fn a_node_knows_its_players() {
        let tree = Tournament::<Summary>::new(5);
        assert_eq!(tree.players_below(1), 0..5);
        assert_eq!(tree.players_below(2), 0..4);
        assert_eq!(tree.players_below(3), 4..5);
        assert_eq!(tree.players_below(7), 5..5, "padding");
        assert_eq!((tree.players_below(8), tree.player(8)), (0..1, Some(0)));
        assert_eq!((tree.players_below(12), tree.player(12)), (4..5, Some(4)));
    }
}
