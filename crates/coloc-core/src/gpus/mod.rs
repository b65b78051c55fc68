//! The GPUs as the scheduler believes them to be: which tasks are on each, what was promised, what was seen.

mod activity;
mod idle_by_node;
mod ledger;
mod number_set;
mod seen;
mod service;
mod tournament;

pub(crate) use activity::LAG;
pub(crate) use idle_by_node::IdleByNode;
pub(crate) use ledger::Clients;
pub use ledger::{Booking, GpuState, Reservation};
pub(crate) use tournament::{GangSummary, Offer, Summarize, Summary, Tournament};

use crate::place::Gang;
use crate::policy::{Gate, Place, Policy};
use crate::window::Window;
use coloc_model::{Bytes, Fleet, GpuId, Millis, Node, NodeId, TaskId, Time};
use number_set::NumberSet;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// GPUs of a node whose offer to gangs is worked out together: a node has mostly fewer.
const BLOCK: usize = 64;

/// Every GPU of the fleet, with an index over what placement asks for.
#[derive(Clone, Debug)]
pub struct Gpus {
    states: Vec<GpuState>,
    tree: Tournament<Summary>,
    /// Which nodes can take a gang; only where there is a choice of nodes.
    gangs: Option<Tournament<GangSummary>>,
    /// Of nodes with more GPUs than a block, what each block offers.
    blocks: FxHashMap<NodeId, Tournament<Offer>>,
    nodes: Vec<Range<u32>>,
    policy: Policy,
    idle: NumberSet,
    /// Idle GPUs by node, where whole GPUs are wanted close together.
    idle_by_node: Option<IdleByNode>,
    /// How many cannot be used, or are not ours alone.
    not_ours: usize,
    /// How many are lost or drained.
    out: usize,
    /// How many are kept for some users.
    kept: usize,
    alike: bool,
    /// Loads are expectations of ours (true) or what the monitor shows (false).
    expects_load: bool,
    /// GPUs that can take something since the last pass that they could not take before.
    improved: Vec<GpuId>,
    is_improved: Vec<bool>,
}

impl Gpus {
    pub(crate) fn new(fleet: &Fleet, policy: &Policy) -> Self {
        let window = match policy.gate {
            Gate::Open | Gate::Expected { .. } => None,
            // A full window may lie up to one window back.
            Gate::TumblingMean { window, .. } => Some(Millis(2 * window.0)),
            Gate::Risk { .. } => Some(Millis::from_secs(crate::window::RISK_SAMPLES as u64)),
        };
        let states: Vec<GpuState> = fleet
            .gpus()
            .iter()
            .map(|gpu| GpuState::new(gpu, policy.share, window.map(Window::new)))
            .collect();
        let wide = fleet.nodes().iter().enumerate().filter(|(_, node)| node.len() > BLOCK);
        let blocks =
            wide.map(|(at, node)| (NodeId::from(at), Tournament::new(node.len().div_ceil(BLOCK))));
        let mut gpus = Gpus {
            blocks: blocks.collect(),
            tree: Tournament::new(states.len()),
            gangs: (fleet.nodes().len() > 1 && !policy.spans_nodes())
                .then(|| Tournament::new(fleet.nodes().len())),
            nodes: fleet.nodes().iter().map(Node::range).collect(),
            alike: states.windows(2).all(|pair| pair[0].capacity == pair[1].capacity),
            idle: NumberSet::new(states.len()),
            idle_by_node: policy.packs_whole_gpus().then(|| IdleByNode::new(fleet)),
            not_ours: 0,
            out: 0,
            kept: 0,
            states,
            policy: *policy,
            // Only the other policies read loads from the monitor, where they change all the time.
            expects_load: matches!(policy.gate, Gate::Expected { .. })
                || policy.place == Place::LeastInterference
                || policy.learn
                || (policy.place != Place::Lug && policy.gate == Gate::Open),
            improved: Vec::new(),
            is_improved: vec![false; fleet.len()],
        };
        gpus.refresh_all();
        gpus
    }

    /// One GPU.
    pub fn get(&self, gpu: GpuId) -> &GpuState {
        &self.states[gpu.index()]
    }

    /// Every GPU in id order.
    pub fn iter(&self) -> impl Iterator<Item = (GpuId, &GpuState)> {
        self.states.iter().enumerate().map(|(index, state)| (GpuId::from(index), state))
    }

    /// All have the same memory.
    pub(crate) fn are_alike(&self) -> bool {
        self.alike
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn tree(&self) -> &Tournament<Summary> {
        &self.tree
    }

    /// The GPU with the most available memory, the first of several; an idle one where whole GPUs are
    /// given.
    pub(crate) fn roomiest(&self) -> GpuId {
        if !self.is_indexed() {
            return self.idle_ids().next().unwrap_or(GpuId(0));
        }
        let mut node = Tournament::<Summary>::ROOT;
        while self.tree.player(node).is_none() {
            let [left, right] = Tournament::<Summary>::children(node);
            let most = self.tree.get(node).max_available;
            node = if self.tree.get(left).max_available == most { left } else { right };
        }
        GpuId::from(self.tree.player(node).unwrap_or_default().min(self.states.len() - 1))
    }

    /// The GPUs of some adjacent nodes.
    pub(crate) fn of_nodes(&self, nodes: Range<usize>) -> Range<u32> {
        let first = self.nodes.get(nodes.start).map_or(0, |gpus| gpus.start);
        let end = nodes.end.checked_sub(1).and_then(|last| self.nodes.get(last));
        first..end.map_or(first, |gpus| gpus.end)
    }

    pub(crate) fn gang_tree(&self) -> Option<&Tournament<GangSummary>> {
        self.gangs.as_ref()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = GpuId> + use<> {
        (0..self.states.len()).map(GpuId::from)
    }

    pub(crate) fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len()).map(NodeId::from)
    }

    pub(crate) fn of_node(&self, node: NodeId) -> impl Iterator<Item = GpuId> + use<> {
        self.nodes[node.index()].clone().map(GpuId)
    }

    /// Memory that may be promised to a newcomer on this GPU.
    pub fn available(&self, gpu: GpuId) -> Bytes {
        self.get(gpu).available(&self.policy)
    }

    /// How busy the GPU counts as: expected demand or seen SM activity.
    pub fn load(&self, gpu: GpuId) -> f64 {
        let state = self.get(gpu);
        if self.expects_load { state.load } else { state.signal.activity.sm.get() }
    }

    pub(crate) fn summary(&self, gpu: GpuId) -> Summary {
        Summary::leaf(self.available(gpu), self.load(gpu), self.get(gpu).is_idle())
    }

    /// The same, from the index where one is kept.
    pub(crate) fn offer(&self, gpu: GpuId) -> Summary {
        if self.is_indexed() { *self.tree.leaf(gpu.index()) } else { self.summary(gpu) }
    }

    /// Where the first idle GPUs are taken, no search needs the index.
    fn is_indexed(&self) -> bool {
        self.policy.place != Place::Any && self.idle_by_node.is_none()
    }

    fn refresh(&mut self, gpu: GpuId) {
        self.refresh_idle(gpu);
        if self.is_indexed() {
            self.refresh_index(gpu);
        }
    }

    fn refresh_idle(&mut self, gpu: GpuId) {
        let state = self.get(gpu);
        let (node, idle) = (state.node, state.is_idle());
        if self.idle.set(gpu.index(), idle)
            && let Some(idle_by_node) = &mut self.idle_by_node
        {
            idle_by_node.shift(node, idle);
        }
    }

    /// Apart, so that what every policy needs is inlined.
    #[inline(never)]
    fn refresh_index(&mut self, gpu: GpuId) {
        self.tree.set(gpu.index(), self.summary(gpu));
        self.refresh_node(gpu);
    }

    /// Everything, once: each GPU, then each block of GPUs of a node.
    fn refresh_all(&mut self) {
        self.ids().for_each(|gpu| self.refresh_idle(gpu));
        if !self.is_indexed() {
            return;
        }
        self.ids().for_each(|gpu| self.tree.set(gpu.index(), self.summary(gpu)));
        for node in self.node_ids() {
            self.of_node(node).step_by(BLOCK).for_each(|gpu| self.refresh_node(gpu));
        }
    }

    /// What the GPU's node has to offer to gangs: worked out anew from its block, however many GPUs the node has.
    fn refresh_node(&mut self, gpu: GpuId) {
        let Some(gangs) = &mut self.gangs else { return };
        let node = self.states[gpu.index()].node;
        let gpus = self.nodes[node.index()].clone();
        let tree = &self.tree;
        let offer = |gpus: Range<u32>| Offer::of(gpus.map(|gpu| *tree.leaf(gpu as usize)));
        let summary = match self.blocks.get_mut(&node) {
            None => GangSummary::from(&offer(gpus)),
            Some(blocks) => {
                let block = (gpu.0 - gpus.start) as usize / BLOCK;
                let first = gpus.start + (block * BLOCK) as u32;
                blocks.set(block, offer(first..gpus.end.min(first + BLOCK as u32)));
                GangSummary::from(blocks.get(Tournament::<Offer>::ROOT))
            }
        };
        gangs.set(node.index(), summary);
    }

    fn note_improved(&mut self, gpu: GpuId) {
        if !std::mem::replace(&mut self.is_improved[gpu.index()], true) {
            self.improved.push(gpu);
        }
    }

    /// GPUs that improved since this was last asked.
    pub(crate) fn take_improved(&mut self, into: &mut Vec<GpuId>) {
        into.clear();
        into.append(&mut self.improved);
        into.sort_unstable();
        into.iter().for_each(|gpu| self.is_improved[gpu.index()] = false);
    }

    pub(crate) fn book(&mut self, now: Time, gpu: GpuId, booking: Booking) {
        self.states[gpu.index()].book(now, booking);
        self.refresh(gpu);
    }

    pub(crate) fn release(&mut self, now: Time, gpu: GpuId, task: TaskId) {
        self.states[gpu.index()].release(now, task);
        self.refresh(gpu);
        self.note_improved(gpu);
    }

    pub(crate) fn lift(&mut self, gpu: GpuId, task: TaskId) -> Booking {
        let booking = self.states[gpu.index()].lift(task);
        self.refresh(gpu);
        booking
    }

    pub(crate) fn put_back(&mut self, gpu: GpuId, booking: Booking) {
        self.states[gpu.index()].put_back(booking);
        self.refresh(gpu);
    }

    /// A task that was lifted does not come back.
    pub(crate) fn left(&mut self, now: Time, gpu: GpuId) {
        self.states[gpu.index()].left(now);
        self.note_improved(gpu);
    }

    /// How many are idle.
    pub(crate) fn idle(&self) -> u32 {
        self.idle.count()
    }

    /// Adds the first idle GPUs.
    pub(crate) fn first_idle(&self, count: usize, into: &mut Gang) {
        self.idle.first(count, |number| into.push(GpuId::from(number)));
    }

    /// The idle GPUs, in id order.
    pub(crate) fn idle_ids(&self) -> impl Iterator<Item = GpuId> + '_ {
        self.idle.iter().map(GpuId::from)
    }

    /// Idle GPUs by node, where that is kept.
    pub(crate) fn idle_by_node(&self) -> Option<&IdleByNode> {
        self.idle_by_node.as_ref()
    }

    pub(crate) fn rebook(&mut self, gpu: GpuId, task: TaskId, bytes: Bytes) {
        let lower = self.states[gpu.index()].rebook(task, bytes);
        self.refresh(gpu);
        if lower {
            self.note_improved(gpu);
        }
    }

    /// A monitor can tell what a task itself does, or can no longer. No search goes by that.
    pub(crate) fn set_told(&mut self, gpu: GpuId, task: TaskId, told: bool) {
        self.states[gpu.index()].amend(task, |booking| booking.told = told);
    }

    /// A monitor saw what a task does itself, or could not tell. No search goes by that.
    pub(crate) fn see_own(&mut self, now: Time, gpu: GpuId, task: TaskId, level: Option<f64>) {
        self.states[gpu.index()].see_own(now, task, level);
    }

    /// Changes a task's booking.
    pub(crate) fn amend(&mut self, gpu: GpuId, task: TaskId, change: impl FnOnce(&mut Booking)) {
        let better = self.states[gpu.index()].amend(task, change);
        self.refresh(gpu);
        if better {
            self.note_improved(gpu);
        }
    }

    pub(crate) fn expect_load(&mut self, gpu: GpuId, task: TaskId, load: f64) {
        let lower = self.states[gpu.index()].expect_load(task, load);
        self.refresh(gpu);
        if lower {
            self.note_improved(gpu);
        }
    }

    pub(crate) fn reserve(&mut self, gpu: GpuId, reservation: Option<Reservation>) {
        let state = &mut self.states[gpu.index()];
        if state.reserved != reservation {
            state.reserved = reservation;
            self.note_improved(gpu);
        }
    }

    pub(crate) fn hold_until(&mut self, gpu: GpuId, until: Time) {
        self.states[gpu.index()].busy_until = until;
    }
}
