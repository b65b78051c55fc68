//! Finds the GPUs for one task: by branch and bound over an index, screened one by one.

use super::{Cost, Gang, Preference};
use crate::demand::Demand;
use crate::gpus::{GangSummary, Gpus, Summarize, Summary, Tournament};
use crate::pass::PassCounts;
use crate::policy::{Gate, Place, Policy};
use crate::screen::Case;
use coloc_model::{GpuId, NodeId, Share, Time};
use rustc_hash::FxHashMap;
use smallvec::smallvec;
use std::ops::Range;

/// Which GPUs are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search<'a> {
    /// All of the fleet.
    Everywhere,
    /// Only these, because all others were refused before and have not improved.
    Only(&'a [GpuId]),
}

/// What a search works on.
pub(crate) struct Question<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) gpus: &'a Gpus,
    pub(crate) now: Time,
    pub(crate) demand: &'a Demand,
    pub(crate) preference: Preference<'a>,
}

/// Whether any of the GPUs summed up could pass the screen.
pub(crate) fn hopeful(policy: &Policy, demand: &Demand, gpus: &Summary) -> bool {
    let Demand { need, load, idle_only, blind, .. } = *demand;
    if idle_only && gpus.idle == 0 {
        return false;
    }
    if blind || gpus.idle > 0 {
        return true;
    }
    let cool = match policy.gate {
        Gate::Expected { limit } => gpus.min_load + load <= limit,
        _ => true,
    };
    cool && gpus.max_available >= need
}

impl Question<'_> {
    pub(super) fn hopeful(&self, below: &Summary) -> bool {
        hopeful(self.policy, self.demand, below)
    }

    pub(super) fn screened(&self, gpu: GpuId, counts: &mut PassCounts) -> bool {
        let Question { policy, gpus, now, demand, .. } = *self;
        match (Case { policy, state: gpus.get(gpu), now, demand }).refusal() {
            None => true,
            Some(refusal) => {
                counts.note(gpu, refusal);
                false
            }
        }
    }

    fn cost(&self, gpu: GpuId) -> Cost {
        self.preference.cost(self.policy, self.gpus, gpu, self.now)
    }

    /// The GPUs among these that pass the screen, cheapest first.
    fn ranked(
        &self,
        gpus: impl Iterator<Item = GpuId>,
        counts: &mut PassCounts,
    ) -> Vec<(Cost, GpuId)> {
        let mut ranked: Vec<(Cost, GpuId)> = gpus
            .filter(|&gpu| self.hopeful(&self.gpus.summary(gpu)) && self.screened(gpu, counts))
            .map(|gpu| (self.cost(gpu), gpu))
            .collect();
        ranked.sort_unstable();
        ranked
    }
}

impl Question<'_> {
    /// The GPUs for the task, or `None` if it does not fit now.
    pub(crate) fn find(&self, search: Search<'_>, counts: &mut PassCounts) -> Option<Gang> {
        let found = self.search(search, counts);
        if found.is_none() && counts.nearest_miss.is_none() {
            // The index refused them all at once: let the roomiest say what was short.
            self.screened(self.gpus.roomiest(), counts);
        }
        found
    }

    fn search(&self, search: Search<'_>, counts: &mut PassCounts) -> Option<Gang> {
        let one_node = self.demand.gpus > 1 && !self.policy.spans_nodes();
        if self.demand.idle_only && self.gpus.idle() < self.demand.gpus {
            return None;
        }
        if self.preference.place == Place::Consolidate {
            return self.consolidated(counts);
        }
        match (search, self.gpus.gang_tree()) {
            (Search::Only(gpus), _) => self.among(gpus.iter().copied(), counts),
            // Scores that age with time are not in the index.
            (Search::Everywhere, _) if self.policy.time_matters() => {
                self.among(self.gpus.ids(), counts)
            }
            (Search::Everywhere, Some(tree)) if one_node => self.best_node(tree, counts),
            (Search::Everywhere, _)
                if self.demand.idle_only && self.preference.is_by_position() =>
            {
                self.first_idle(counts)
            }
            (Search::Everywhere, _) => self.best_gpus(counts),
        }
    }

    /// The first idle GPUs, on whatever nodes.
    fn first_idle(&self, counts: &mut PassCounts) -> Option<Gang> {
        let wanted = self.demand.gpus as usize;
        let mut taken = Gang::new();
        if self.any_idle_will_do()
            && self.policy.share == Share::Exclusive
            && self.gpus.are_all_ours()
        {
            self.gpus.first_idle(wanted, &mut taken);
        } else {
            let passed = self.gpus.idle_ids().filter(|&gpu| self.screened(gpu, counts));
            taken.extend(passed.take(wanted));
        }
        (taken.len() == wanted).then_some(taken)
    }

    /// Sorts a list of GPUs and takes the best that pass: of any node for `any`, else of the first node
    /// that has enough of them.
    fn among(&self, gpus: impl Iterator<Item = GpuId>, counts: &mut PassCounts) -> Option<Gang> {
        let wanted = self.demand.gpus as usize;
        let ranked = self.ranked(gpus, counts);
        if wanted == 1 {
            return ranked.first().map(|&(_, gpu)| smallvec![gpu]);
        }
        let node = |gpu| match self.policy.place {
            Place::Any | Place::Consolidate => NodeId(0),
            _ => self.gpus.get(gpu).node,
        };
        let mut passed: FxHashMap<NodeId, Gang> = FxHashMap::default();
        ranked.into_iter().find_map(|(_, gpu)| {
            let on_node = passed.entry(node(gpu)).or_default();
            on_node.push(gpu);
            (on_node.len() == wanted).then(|| std::mem::take(on_node))
        })
    }

    /// The cheapest GPUs, on whatever nodes: there is one node, or it does not matter.
    fn best_gpus(&self, counts: &mut PassCounts) -> Option<Gang> {
        let wanted = self.demand.gpus as usize;
        let mut descent = Descent {
            tree: self.gpus.tree(),
            view: |summary: &Summary| *summary,
            ids: |players: Range<usize>| players.start as u32..players.end as u32,
            leaf: |player, rival: Option<(Cost, usize)>| {
                let gpu = GpuId::from(player);
                let cost = self.cost(gpu);
                let better = rival.is_none_or(|rival| (cost, player) < rival);
                (better && self.screened(gpu, counts)).then_some(cost)
            },
            best: Best::new(wanted),
        };
        descent.search_from_root(self);
        let best = descent.best.taken;
        (best.len() == wanted).then(|| best.into_iter().map(|(_, gpu)| GpuId::from(gpu)).collect())
    }

    /// The node whose worst GPU of the gang is cheapest.
    fn best_node(&self, tree: &Tournament<GangSummary>, counts: &mut PassCounts) -> Option<Gang> {
        let wanted = self.demand.gpus as usize;
        let gang = |node: usize, counts: &mut PassCounts| {
            let mut ranked = self.ranked(self.gpus.of_node(NodeId::from(node)), counts);
            ranked.truncate(wanted);
            ranked
        };
        let mut descent = Descent {
            tree,
            view: |summary: &GangSummary| summary.for_gang(self.demand.gpus),
            ids: |nodes| self.gpus.of_nodes(nodes),
            leaf: |node, _| gang(node, counts).get(wanted - 1).map(|&(cost, _)| cost),
            best: Best::new(1),
        };
        descent.search_from_root(self);
        let &(_, node) = descent.best.taken.first()?;
        Some(gang(node, &mut PassCounts::default()).into_iter().map(|(_, gpu)| gpu).collect())
    }
}

/// The cheapest so far, lower numbers first among equals.
struct Best {
    wanted: usize,
    taken: Vec<(Cost, usize)>,
}

impl Best {
    fn new(wanted: usize) -> Self {
        Best { wanted, taken: Vec::new() }
    }

    /// What a newcomer must be better than.
    fn rival(&self) -> Option<(Cost, usize)> {
        self.taken.get(self.wanted - 1).copied()
    }

    fn offer(&mut self, candidate: (Cost, usize)) {
        let place = self.taken.partition_point(|taken| *taken < candidate);
        self.taken.insert(place, candidate);
        self.taken.truncate(self.wanted);
    }
}

/// A descent down an index, into the most promising half first and into the other only if it may hold
/// something better than what was found.
struct Descent<'a, S, View, Ids, Leaf> {
    tree: &'a Tournament<S>,
    view: View,
    ids: Ids,
    leaf: Leaf,
    best: Best,
}

impl<S, View, Ids, Leaf> Descent<'_, S, View, Ids, Leaf>
where
    S: Summarize,
    View: Fn(&S) -> Summary,
    Ids: Fn(Range<usize>) -> Range<u32>,
    Leaf: FnMut(usize, Option<(Cost, usize)>) -> Option<Cost>,
{
    fn search_from_root(&mut self, question: &Question<'_>) {
        let root = Tournament::<S>::ROOT;
        if let Some(promise) = self.promise(question, root) {
            self.open(question, root, promise);
        }
    }

    /// The least cost that can be found below, if anything can.
    fn promise(&self, question: &Question<'_>, node: u32) -> Option<Cost> {
        let players = self.tree.players_below(node);
        let below = (self.view)(self.tree.get(node));
        (!players.is_empty() && question.hopeful(&below))
            .then(|| question.preference.bound(&below, (self.ids)(players), question.gpus.len()))
    }

    fn open(&mut self, question: &Question<'_>, node: u32, promise: Cost) {
        let first = self.tree.players_below(node).start;
        if self.best.rival().is_some_and(|rival| rival <= (promise, first)) {
            return;
        }
        if let Some(player) = self.tree.player(node) {
            if let Some(cost) = (self.leaf)(player, self.best.rival()) {
                self.best.offer((cost, player));
            }
            return;
        }
        let [left, right] = Tournament::<S>::children(node);
        match (self.promise(question, left), self.promise(question, right)) {
            (Some(near), Some(far)) if near <= far => {
                self.open(question, left, near);
                self.open(question, right, far);
            }
            (Some(far), Some(near)) => {
                self.open(question, right, near);
                self.open(question, left, far);
            }
            (Some(only), None) => self.open(question, left, only),
            (None, Some(only)) => self.open(question, right, only),
            (None, None) => {}
        }
    }
}
