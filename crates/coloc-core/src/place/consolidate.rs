//! Gangs on as few nodes as possible (Tiresias). Of the nodes that can hold a task, the one with the least
//! room; a task that fits on no single node is spread over the roomiest ones, if it may be.

use super::Gang;
use super::search::Question;
use crate::pass::PassCounts;
use coloc_model::{GpuId, NodeId};

/// GPUs of one node that would take the task.
struct Room {
    node: NodeId,
    gpus: Vec<GpuId>,
}

impl Question<'_> {
    pub(super) fn consolidated(&self, counts: &mut PassCounts) -> Option<Gang> {
        if let Some(idle_by_node) = self.gpus.idle_by_node().filter(|_| self.any_idle_will_do()) {
            let chosen = idle_by_node.choose(self.demand.gpus, self.demand.packed)?;
            let mut taken = Gang::new();
            for (node, part) in chosen {
                let idle = self.gpus.of_node(node).filter(|&gpu| self.gpus.get(gpu).is_idle());
                taken.extend(idle.take(part as usize));
            }
            if taken.iter().all(|&gpu| self.screened(gpu, counts)) {
                return Some(taken);
            }
        }
        self.consolidated_by_screening(counts)
    }

    /// No rule refuses an idle GPU.
    pub(crate) fn any_idle_will_do(&self) -> bool {
        let Question { policy, gpus, demand, .. } = self;
        let any_time = !policy.time_matters() && !policy.reserves();
        demand.idle_only && demand.takes_any() && gpus.are_alike() && any_time
    }

    fn consolidated_by_screening(&self, counts: &mut PassCounts) -> Option<Gang> {
        let wanted = self.demand.gpus as usize;
        let mut idle_by_node = self.idle_by_node(counts);
        if let Some(room) = tightest(&idle_by_node, wanted) {
            return Some(idle_by_node[room].gpus[..wanted].into());
        }
        // The roomiest first, lower ids first among equals.
        idle_by_node.sort_by_key(|room| (std::cmp::Reverse(room.gpus.len()), room.node));
        let mut taken = Gang::new();
        let mut nodes = 0;
        while taken.len() < wanted {
            let missing = wanted - taken.len();
            // The last part goes where it leaves the least.
            let next =
                tightest(&idle_by_node, missing).or((!idle_by_node.is_empty()).then_some(0))?;
            taken.extend(idle_by_node.remove(next).gpus.into_iter().take(missing));
            nodes += 1;
        }
        let may = !self.demand.packed || nodes <= self.fewest_nodes(wanted);
        may.then_some(taken)
    }

    fn idle_by_node(&self, counts: &mut PassCounts) -> Vec<Room> {
        let mut idle_by_node: Vec<Room> = Vec::new();
        for node in self.gpus.node_ids() {
            let fit = self
                .gpus
                .of_node(node)
                .filter(|&gpu| self.hopeful(&self.gpus.summary(gpu)) && self.screened(gpu, counts));
            let gpus: Vec<GpuId> = fit.collect();
            if !gpus.is_empty() {
                idle_by_node.push(Room { node, gpus });
            }
        }
        idle_by_node
    }

    /// Nodes that a gang of this size needs when no other task is there.
    fn fewest_nodes(&self, wanted: usize) -> usize {
        let mut sizes: Vec<usize> =
            self.gpus.node_ids().map(|node| self.gpus.of_node(node).count()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let enough = sizes.iter().scan(0, |sum, size| {
            *sum += size;
            Some(*sum)
        });
        1 + enough.take_while(|&sum| sum < wanted).count()
    }
}

/// The room that holds this many with the least to spare, the first of several.
fn tightest(idle_by_node: &[Room], wanted: usize) -> Option<usize> {
    let large = idle_by_node.iter().enumerate().filter(|(_, room)| room.gpus.len() >= wanted);
    large.min_by_key(|(_, room)| (room.gpus.len(), room.node)).map(|(index, _)| index)
}
