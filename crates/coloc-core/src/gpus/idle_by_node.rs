//! How many GPUs of each node are idle, and which nodes have how many: a gang that wants GPUs close together
//! asks for nodes.

use super::number_set::NumberSet;
use coloc_model::{Fleet, Node, NodeId};

/// The nodes by their idle GPUs.
#[derive(Clone, Debug)]
pub(crate) struct IdleByNode {
    idle: Vec<u32>,
    /// The nodes that have none, one, two and so on.
    by_idle: Vec<NumberSet>,
    total: u32,
    /// GPUs of the largest node, of the two largest, and so on.
    largest: Vec<u32>,
}

impl IdleByNode {
    /// Nodes of which nothing is known to be idle yet.
    pub(super) fn new(fleet: &Fleet) -> Self {
        let mut sizes: Vec<u32> =
            fleet.nodes().iter().map(|node| Node::range(node).len() as u32).collect();
        let nodes = sizes.len();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let widest = sizes.first().copied().unwrap_or(0) as usize;
        let mut by_idle = vec![NumberSet::new(nodes); widest + 1];
        for node in 0..nodes {
            by_idle[0].set(node, true);
        }
        let sums = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        IdleByNode { idle: vec![0; nodes], by_idle, total: 0, largest: sums.collect() }
    }

    /// A GPU of a node became idle, or is no longer.
    pub(crate) fn shift(&mut self, node: NodeId, idle: bool) {
        // No node has more than all of its GPUs idle, whatever is imagined to be gone.
        let most = self.by_idle.len() - 1;
        let count = &mut self.idle[node.index()];
        self.by_idle[most.min(*count as usize)].set(node.index(), false);
        if idle {
            *count += 1;
            self.total += 1;
        } else {
            *count -= 1;
            self.total -= 1;
        }
        self.by_idle[most.min(*count as usize)].set(node.index(), true);
    }

    /// Idle GPUs of a node.
    pub(crate) fn idle(&self, node: NodeId) -> u32 {
        self.idle[node.index()]
    }

    /// Nodes that a gang of this size needs when no other task is there.
    pub(crate) fn fewest_nodes(&self, wanted: u32) -> u32 {
        1 + self.largest.partition_point(|&sum| sum < wanted) as u32
    }

    /// Whether a gang finds room: on one node, or on several; on no more than necessary if it is packed.
    pub(crate) fn fit(&self, wanted: u32, packed: bool) -> bool {
        if self.total < wanted || !packed {
            return self.total >= wanted;
        }
        let (mut nodes, mut found) = (self.fewest_nodes(wanted), 0);
        for (idle, with) in self.by_idle.iter().enumerate().rev() {
            let taken = with.count().min(nodes);
            found += taken * idle as u32;
            nodes -= taken;
            if found >= wanted || nodes == 0 {
                break;
            }
        }
        found >= wanted
    }

    /// The nodes for a gang and how many GPUs it gets of each: the one with the least room to spare, else
    /// the roomiest first and the last part where it leaves the least. Lower ids first among equals.
    pub(crate) fn choose(&self, wanted: u32, packed: bool) -> Option<Vec<(NodeId, u32)>> {
        if !self.fit(wanted, packed) {
            return None;
        }
        let (mut chosen, mut missing): (Vec<(NodeId, u32)>, u32) = (Vec::new(), wanted);
        while missing > 0 {
            let is_left = |node: &usize| !chosen.iter().any(|(taken, _)| taken.index() == *node);
            let first = |idle: usize| self.by_idle[idle].iter().find(is_left);
            let from = (missing as usize).min(self.by_idle.len());
            let tightest = (from..self.by_idle.len()).find_map(first);
            let node = tightest.or_else(|| (1..from).rev().find_map(first))?;
            let part = self.idle[node].min(missing);
            chosen.push((NodeId::from(node), part));
            missing -= part;
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_by_node(spec: &str, idle: &[u32]) -> IdleByNode {
        let mut idle_by_node = IdleByNode::new(&spec.parse().unwrap());
        for (node, &idle) in idle.iter().enumerate() {
            (0..idle).for_each(|_| idle_by_node.shift(NodeId::from(node), true));
        }
        idle_by_node
    }

    fn chosen(idle_by_node: &IdleByNode, wanted: u32, packed: bool) -> Option<Vec<(u32, u32)>> {
        let chosen = idle_by_node.choose(wanted, packed)?;
        Some(chosen.into_iter().map(|(node, gpus)| (node.0, gpus)).collect())
    }

    #[test]
    fn the_tightest_node_then_the_roomiest() {
        let idle_by_node = idle_by_node("4x4xV100-16GB", &[3, 2, 3, 1]);
        assert_eq!(chosen(&idle_by_node, 1, true), Some(vec![(3, 1)]));
        assert_eq!(chosen(&idle_by_node, 3, true), Some(vec![(0, 3)]));
        assert_eq!(chosen(&idle_by_node, 4, true), None, "a node would hold it");
        assert_eq!(chosen(&idle_by_node, 4, false), Some(vec![(0, 3), (3, 1)]));
        assert_eq!(chosen(&idle_by_node, 6, true), Some(vec![(0, 3), (2, 3)]));
        assert_eq!(chosen(&idle_by_node, 7, true), None);
        assert_eq!(chosen(&idle_by_node, 9, false), Some(vec![(0, 3), (2, 3), (1, 2), (3, 1)]));
        assert_eq!(chosen(&idle_by_node, 10, false), None);
    }
}
