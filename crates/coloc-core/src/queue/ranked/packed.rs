//! Whom to preempt where whole GPUs are wanted close together: idle GPUs are counted by node, which says
//! who fits without a search.

use super::Holder;
use super::pass::Walk;
use crate::demand::Demand;
use crate::gpus::Rooms;
use crate::scheduler::World;
use coloc_model::{NodeId, TaskId};

impl World {
    /// Counting idle GPUs by node is enough to say whether a task fits.
    pub(super) fn rooms_suffice(&self, demand: &Demand) -> bool {
        let policy = &self.policy;
        let any_time = !policy.time_matters() && policy.patience.is_none() && !policy.idle_first;
        let any_gpu = demand.barred.is_empty() && self.gpus.are_alike() && self.gpus.are_all_ours();
        // Nobody else is on GPUs, and nobody beside others.
        let counted = self.ranked.books.gpus() + self.gpus.idle() == self.gpus.len() as u32;
        policy.packs_whole_gpus() && any_time && any_gpu && counted
    }

    /// The node that a running task has all of its GPUs on, where anybody asks for that.
    pub(super) fn only_node(&self, task: TaskId) -> Option<NodeId> {
        if !self.policy.packs_whole_gpus() {
            return None;
        }
        let mut nodes = self.nodes_of(task);
        let first = nodes.next()?;
        nodes.all(|node| node == first).then_some(first)
    }

    /// The node of each of its GPUs.
    fn nodes_of(&self, task: TaskId) -> impl Iterator<Item = NodeId> + '_ {
        let run = self.tasks.live(task).run.iter();
        run.flat_map(|run| run.placement.gpus()).map(|gpu| self.gpus.get(gpu).node)
    }
}

/// Idle GPUs as they would be if some tasks were gone, in front of a gang that wants as few nodes as
/// possible.
struct Imagined {
    idle: Vec<u32>,
    /// How many nodes have none, one, two and so on.
    with: Vec<u32>,
    wanted: u32,
    /// Nodes that the gang may have.
    nodes: u32,
    /// A node with less does not help, whatever the others have.
    least: u32,
}

impl Imagined {
    fn new(rooms: &Rooms, wanted: u32) -> Self {
        let (idle, with) = rooms.counts();
        let (nodes, widest) = (rooms.fewest_nodes(wanted), with.len() as u32 - 1);
        let least = wanted.saturating_sub((nodes - 1) * widest);
        Imagined { idle, with, wanted, nodes, least }
    }

    /// The most that so many nodes have together is enough.
    fn fits(&self) -> bool {
        let (mut nodes, mut found) = (self.nodes, 0);
        for (idle, &with) in self.with.iter().enumerate().rev() {
            let taken = with.min(nodes);
            found += taken * idle as u32;
            nodes -= taken;
            if nodes == 0 {
                break;
            }
        }
        found >= self.wanted
    }

    /// A node has more idle GPUs, or fewer; says whether that may matter.
    #[inline]
    fn shift(&mut self, node: NodeId, gpus: u32, gone: bool) -> bool {
        let idle = &mut self.idle[node.index()];
        let before = *idle;
        *idle = if gone { before + gpus } else { before - gpus };
        let after = *idle;
        // No node has more than all of its GPUs idle, whatever was found running there.
        let most = self.with.len() - 1;
        self.with[most.min(before as usize)] -= 1;
        self.with[most.min(after as usize)] += 1;
        before.max(after) >= self.least
    }

    /// A task is gone, or back; says whether that may matter.
    #[inline]
    fn shift_task(&mut self, world: &World, holder: &Holder, gone: bool) -> bool {
        match holder.node {
            Some(node) => self.shift(node, holder.gpus, gone),
            None => {
                let nodes = world.nodes_of(holder.task);
                nodes.filter(|&node| self.shift(node, 1, gone)).count() > 0
            }
        }
    }
}

impl Walk {
    /// From the worst on until there is room, and of those, best first, whoever need not go stays.
    pub(super) fn fewest_by_rooms(&mut self, world: &World, demand: &Demand) -> bool {
        if !demand.packed {
            return self.fewest_by_count(world.gpus.idle(), demand.gpus);
        }
        let Some(rooms) = world.gpus.rooms() else { return false };
        let mut imagined = Imagined::new(rooms, demand.gpus);
        let mut found = imagined.fits();
        let mut first = self.holders.len();
        while !found && first > self.at_risk {
            first -= 1;
            let holder = &self.holders[first];
            if !holder.cancelled && imagined.shift_task(world, holder, true) {
                found = imagined.fits();
            }
        }
        self.victims.clear();
        if !found {
            return false;
        }
        self.number_from(first);
        for holder in self.holders[first..].iter().filter(|holder| !holder.cancelled) {
            if imagined.shift_task(world, holder, false) && !imagined.fits() {
                imagined.shift_task(world, holder, true);
                self.victims.push(*holder);
            }
        }
        true
    }
}
