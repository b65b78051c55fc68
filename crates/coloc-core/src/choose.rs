//! The choose stage: GPUs for one task, by the policy's placement.

use crate::demand::Demand;
use crate::place::{Gang, Preference, Question, Search};
use crate::policy::Place;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{GpuId, PoolSet, TaskId};

/// Beyond this many GPUs a search by list is slower than one by index.
const LONG_LIST: usize = 256;

impl SchedulerState {
    pub(crate) fn try_start(&mut self, pass: &mut Pass, task: TaskId, search: Search<'_>) -> bool {
        let demand = self.demand(task);
        match self.find(pass, &demand, search) {
            Some(gpus) => {
                self.start(pass, &demand, &gpus);
                true
            }
            None => {
                if demand.idle_only && self.policy.contract.is_some() {
                    let ticket = self.tasks.live(task).ticket;
                    self.overtaking.refused(task, ticket);
                }
                false
            }
        }
    }

    /// GPUs for a task: idle ones first where the policy says so, then by its placement.
    pub(crate) fn find(
        &self,
        pass: &mut Pass,
        demand: &Demand,
        search: Search<'_>,
    ) -> Option<Gang> {
        // Pools are tried in the order of the configuration.
        if let Some(pools) = demand.pools.filter(|pools| pools.len() > 1) {
            return pools.iter().find_map(|pool| {
                let pools = Some(PoolSet::from_iter([pool]));
                self.find(pass, &Demand { pools, ..*demand }, search)
            });
        }
        if self.policy.idle_first {
            let found = self.search(pass, &demand.on_idle(), Place::FirstFit, search);
            if found.is_some() || demand.idle_only {
                return found;
            }
        }
        self.search(pass, demand, self.policy.place, search)
    }

    fn search(
        &self,
        pass: &mut Pass,
        demand: &Demand,
        place: Place,
        search: Search<'_>,
    ) -> Option<Gang> {
        let question = Question {
            policy: &self.policy,
            gpus: &self.gpus,
            now: pass.now,
            demand,
            preference: Preference { place, cursor: self.cursor, demand },
        };
        match search {
            // A gang that did not fit may now take an improved GPU together with others: of any node,
            Search::Only(_) if demand.gpus > 1 && self.policy.spans_nodes() => {
                question.find(Search::Everywhere, &mut pass.counts)
            }
            // or of its own.
            Search::Only(improved) if demand.gpus > 1 => {
                let nodes = self.gpus_of_their_nodes(improved);
                // Of a great many, the index finds the best faster than a list does.
                let search = match nodes.len() {
                    0..=LONG_LIST => Search::Only(&nodes),
                    _ => Search::Everywhere,
                };
                question.find(search, &mut pass.counts)
            }
            search => question.find(search, &mut pass.counts),
        }
    }

    fn gpus_of_their_nodes(&self, gpus: &[GpuId]) -> Vec<GpuId> {
        let mut nodes: Vec<_> = gpus.iter().map(|&gpu| self.gpus.get(gpu).node).collect();
        nodes.dedup();
        nodes.iter().flat_map(|&node| self.fleet.node(node).gpus()).collect()
    }
}
