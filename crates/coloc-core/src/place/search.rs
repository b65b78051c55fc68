//! Finds the GPUs for one task: best-first over an index, screened one by one.

use super::{Cost, Preference};
use crate::demand::Demand;
use crate::gpus::{Gpus, Summarize, Summary, Tournament};
use crate::pass::PassCounts;
use crate::policy::{Gate, Place, Policy};
use crate::screen::Case;
use coloc_model::{GpuId, NodeId, Time};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which GPUs are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search<'a> {
    /// All of the fleet.
    Everywhere,
    /// Only these, because all others were refused before and have not improved.
    Only(&'a [GpuId]),
}

/// Scratch memory of a search, kept between searches.
#[derive(Clone, Default, Debug)]
pub(crate) struct Searcher {
    frontier: Frontier,
    /// GPUs that passed so far, while a gang is put together, and how many of them each node has.
    passed: Vec<(NodeId, GpuId)>,
    on_node: FxHashMap<NodeId, u32>,
}

/// What is still to be opened, cheapest first, lower ids first among equals.
type Frontier = BinaryHeap<Reverse<(Cost, u32, u32)>>;

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
    if gpus.first >= gpus.end || (idle_only && gpus.idle == 0) {
        return false;
    }
    if blind || gpus.idle > 0 {
        return true;
    }
    let cool = match policy.gate {
        Gate::Expected { full, limit } => gpus.min_load < full && gpus.min_load + load <= limit,
        _ => true,
    };
    cool && gpus.max_available >= need
}

/// What a leaf of the index turned out to be.
enum Leaf {
    /// It cannot take the task.
    No,
    /// It costs this much, and can take the task if nothing cheaper can.
    Costs(Cost),
}

impl Question<'_> {
    fn hopeful(&self, below: &Summary) -> bool {
        hopeful(self.policy, self.demand, below)
    }

    fn screened(&self, gpu: GpuId, counts: &mut PassCounts) -> bool {
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

    /// Those of these GPUs that pass the screen, cheapest first.
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

impl Searcher {
    /// The GPUs for the task, or `None` if it does not fit now.
    pub(crate) fn find(
        &mut self,
        question: &Question<'_>,
        search: Search<'_>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        let found = self.search(question, search, counts);
        if found.is_none() && counts.nearest_miss.is_none() {
            // The index refused them all at once: let the roomiest say what was short.
            question.screened(question.gpus.roomiest(), counts);
        }
        found
    }

    fn search(
        &mut self,
        question: &Question<'_>,
        search: Search<'_>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        let Question { policy, gpus, demand, preference, .. } = question;
        let one_each = demand.gpus > 1 && policy.place != Place::Any;
        if demand.idle_only && gpus.idle() < demand.gpus {
            return None;
        }
        match (search, question.gpus.gang_tree()) {
            (Search::Only(gpus), _) => self.among(question, gpus.iter().copied(), counts),
            // Scores that age with time are not in the index.
            (Search::Everywhere, _) if question.policy.time_matters() => {
                self.among(question, question.gpus.ids(), counts)
            }
            (Search::Everywhere, Some(tree)) if one_each => self.best_node(question, tree, counts),
            (Search::Everywhere, _) if preference.is_by_position() => {
                self.first_gpus(question, counts)
            }
            (Search::Everywhere, _) => self.best_gpus(question, counts),
        }
    }

    /// GPUs in the order of their ids, until there are enough.
    fn first_gpus(
        &mut self,
        question: &Question<'_>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        self.passed.clear();
        self.on_node.clear();
        if question.demand.idle_only {
            let mut idle = question.gpus.idle_ids();
            return idle.find_map(|gpu| {
                question.screened(gpu, counts).then(|| self.complete(question, gpu)).flatten()
            });
        }
        let tree = question.gpus.tree();
        // Left to right: what is still to be opened is a stack of at most one node a level.
        let mut open = [Tournament::<Summary>::ROOT; 2 * u32::BITS as usize];
        let mut count = 1;
        while count > 0 {
            count -= 1;
            let node = open[count];
            if !question.hopeful(tree.get(node)) {
                continue;
            }
            let Some(gpu) = tree.player(node).map(GpuId::from) else {
                let [left, right] = Tournament::<Summary>::children(node);
                (open[count], open[count + 1]) = (right, left);
                count += 2;
                continue;
            };
            if question.screened(gpu, counts)
                && let Some(found) = self.complete(question, gpu)
            {
                return Some(found);
            }
        }
        None
    }

    /// Sorts a list of GPUs and takes the best that pass.
    fn among(
        &mut self,
        question: &Question<'_>,
        gpus: impl Iterator<Item = GpuId>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        self.passed.clear();
        self.on_node.clear();
        let ranked = question.ranked(gpus, counts);
        ranked.into_iter().find_map(|(_, gpu)| self.complete(question, gpu))
    }

    /// GPUs of any node in order of cost, until there are enough.
    fn best_gpus(
        &mut self,
        question: &Question<'_>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        self.passed.clear();
        self.on_node.clear();
        let mut frontier = std::mem::take(&mut self.frontier);
        let leaf = |gpu: usize| Leaf::Costs(question.cost(GpuId::from(gpu)));
        let found = best_first(
            &mut frontier,
            question,
            question.gpus.tree(),
            |summary| *summary,
            leaf,
            |gpu| {
                let gpu = GpuId::from(gpu);
                question.screened(gpu, counts).then(|| self.complete(question, gpu)).flatten()
            },
        );
        self.frontier = frontier;
        found
    }

    /// The node whose worst GPU of the gang is cheapest.
    fn best_node(
        &mut self,
        question: &Question<'_>,
        tree: &Tournament<crate::gpus::GangSummary>,
        counts: &mut PassCounts,
    ) -> Option<Vec<GpuId>> {
        let wanted = question.demand.gpus as usize;
        let gang = |node: usize, counts: &mut PassCounts| {
            let mut ranked = question.ranked(question.gpus.of_node(NodeId::from(node)), counts);
            ranked.truncate(wanted);
            ranked
        };
        let leaf = |node: usize| match gang(node, counts).get(wanted - 1) {
            Some(&(cost, _)) => Leaf::Costs(cost),
            None => Leaf::No,
        };
        let node = best_first(
            &mut self.frontier,
            question,
            tree,
            |summary| summary.for_gang(question.demand.gpus),
            leaf,
            Some,
        )?;
        Some(gang(node, &mut PassCounts::default()).into_iter().map(|(_, gpu)| gpu).collect())
    }

    /// Adds a GPU that passed; says which GPUs to take once a node, or the fleet for `any`, has enough.
    fn complete(&mut self, question: &Question<'_>, gpu: GpuId) -> Option<Vec<GpuId>> {
        let wanted = question.demand.gpus;
        if wanted == 1 {
            return Some(vec![gpu]);
        }
        let node = match question.policy.place {
            Place::Any => NodeId(0),
            _ => question.gpus.get(gpu).node,
        };
        self.passed.push((node, gpu));
        let count = match question.policy.place {
            Place::Any => self.passed.len() as u32,
            _ => {
                let count = self.on_node.entry(node).or_default();
                *count += 1;
                *count
            }
        };
        let on_node = self.passed.iter().filter(|(of, _)| *of == node).map(|&(_, gpu)| gpu);
        (count == wanted).then(|| on_node.collect())
    }
}

/// Opens the most promising node of an index first, so that leaves come out in order of cost; ends when
/// `take` accepts one.
fn best_first<S: Summarize, T>(
    frontier: &mut Frontier,
    question: &Question<'_>,
    tree: &Tournament<S>,
    view: impl Fn(&S) -> Summary,
    mut leaf: impl FnMut(usize) -> Leaf,
    mut take: impl FnMut(usize) -> Option<T>,
) -> Option<T> {
    frontier.clear();
    let root = Tournament::<S>::ROOT;
    if question.hopeful(&view(tree.get(root))) {
        frontier.push(Reverse((0, 0, root)));
    }
    while let Some(Reverse((bound, first, node))) = frontier.pop() {
        if let Some(player) = tree.player(node) {
            match leaf(player) {
                Leaf::No => {}
                // The bound was too hopeful: others may be cheaper.
                Leaf::Costs(cost) if cost > bound => frontier.push(Reverse((cost, first, node))),
                Leaf::Costs(_) => {
                    if let Some(found) = take(player) {
                        return Some(found);
                    }
                }
            }
            continue;
        }
        for child in Tournament::<S>::children(node) {
            let below = view(tree.get(child));
            if question.hopeful(&below) {
                let bound = question.preference.bound(&below, question.gpus.len());
                frontier.push(Reverse((bound, below.first, child)));
            }
        }
    }
    None
}
