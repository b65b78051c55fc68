//! The pass over ranks: in the order of ranks, each task that fits gets GPUs; running tasks that lost their place go.

use super::order_key::OrderKey;
use super::{Ranked, Running};
use crate::demand::Demand;
use crate::place::{Gang, Search};
use crate::policy::Queue;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::TaskId;
use std::cmp::Reverse;

/// A waiting task with its class.
pub(super) type Candidate = (OrderKey, TaskId, usize);

/// One pass over all tasks.
pub(super) struct RankedPass {
    /// Running tasks, best first.
    pub(super) running: Vec<Running>,
    /// Running tasks before this one rank better than the task that is considered.
    pub(super) at_risk: usize,
    /// GPUs of the tasks from there on.
    pub(super) gpus_at_risk: u32,
    /// Waiting tasks to be considered, one of each class and the preempted ones; the best is last.
    pub(super) candidates: Vec<Candidate>,
    /// Classes of which one found no room.
    pub(super) blocked: Vec<bool>,
}

pub(crate) fn run(scheduler: &mut SchedulerState, pass: &mut Pass) {
    let now = pass.now;
    scheduler.promote_the_starving(now);
    scheduler.demote(now);
    let mut ranked_pass = RankedPass::new(scheduler, pass);
    if scheduler.counts_suffice() {
        ranked_pass.by_count(scheduler, pass);
    } else {
        ranked_pass.one_by_one(scheduler, pass);
    }
    scheduler.ranked.running = ranked_pass.running;
    scheduler.ranked.epoch += 1;
    scheduler.ranked.arrived = 0;
    scheduler.ranked.look_at = scheduler.next_change(now);
}

impl Ranked {
    /// The best waiting task of a class.
    fn head(&self, class: usize) -> Option<Candidate> {
        let (&order_key, &task) = self.classes[class].waiting.first_key_value()?;
        Some((order_key, task, class))
    }
}

impl RankedPass {
    fn new(scheduler: &mut SchedulerState, pass: &Pass) -> Self {
        let SchedulerState { policy, ranked, .. } = scheduler;
        let classes = ranked.classes.len();
        let mut candidates: Vec<_> = (0..classes).filter_map(|class| ranked.head(class)).collect();
        candidates.sort_unstable_by_key(|&candidate| Reverse(candidate));
        ranked.put_in_order(pass.now, policy, !candidates.is_empty());
        let running = std::mem::take(&mut ranked.running);
        // Under sjf no task is preempted.
        let at_risk = if policy.queue == Queue::Sjf { running.len() } else { 0 };
        let gpus_at_risk = gpus(&running[at_risk..]);
        RankedPass { running, at_risk, gpus_at_risk, candidates, blocked: vec![false; classes] }
    }

    /// Gives each task in turn what it gets.
    fn one_by_one(&mut self, scheduler: &mut SchedulerState, pass: &mut Pass) {
        let mut before = None;
        while let Some((order_key, task, class)) = self.candidates.pop() {
            if pass.is_over() {
                break;
            }
            // A task that was preempted in this pass may be named twice, the second time right after the first.
            if self.blocked[class] || before.replace(task) == Some(task) {
                continue;
            }
            if scheduler.is_barred(task) {
                self.blocked[class] = true;
                continue;
            }
            self.pass_better_ones(order_key);
            let Some((demand, gpus)) = self.room(scheduler, pass, task, class) else {
                self.blocked[class] = true;
                continue;
            };
            scheduler.start(pass, &demand, &gpus);
            self.insert(Running::new(order_key, scheduler.tasks.live(task)));
            self.consider(scheduler.ranked.head(class));
        }
    }

    pub(super) fn consider(&mut self, candidate: Option<Candidate>) {
        let Some(candidate) = candidate else { return };
        let better = self.candidates.iter().rev().take_while(|&&other| other < candidate).count();
        self.candidates.insert(self.candidates.len() - better, candidate);
    }

    /// Running tasks that rank better than the one that is considered now are not at risk any more.
    pub(super) fn pass_better_ones(&mut self, order_key: OrderKey) {
        let rest = &self.running[self.at_risk..];
        let better = rest.partition_point(|running| running.order_key < order_key);
        self.gpus_at_risk -= gpus(&rest[..better]);
        self.at_risk += better;
    }

    /// GPUs for a task: free ones, or those of tasks that rank worse, which then are preempted.
    fn room(
        &mut self,
        scheduler: &mut SchedulerState,
        pass: &mut Pass,
        task: TaskId,
        class: usize,
    ) -> Option<(Demand, Gang)> {
        let wanted = scheduler.ranked.classes[class].gpus;
        if scheduler.policy.needs_idle() && scheduler.gpus.idle() + self.gpus_at_risk < wanted {
            return None;
        }
        let demand = scheduler.demand(task);
        for victim in self.fewest_for(scheduler, pass, &demand)? {
            self.take_out(&victim);
            scheduler.lift_for_good(victim.task);
            let class = scheduler.preempt(pass, victim.task, victim.order_key);
            // It may find room elsewhere.
            self.consider(Some((victim.order_key, victim.task, class)));
        }
        let gpus = scheduler.find(pass, &demand, Search::Everywhere)?;
        Some((demand, gpus))
    }

    /// Puts a task that starts before all that rank worse.
    pub(super) fn insert(&mut self, running: Running) {
        self.running.insert(self.at_risk, running);
        self.at_risk += 1;
    }

    /// A task that was at risk loses its GPUs.
    pub(super) fn take_out(&mut self, victim: &Running) {
        // Victims are among the last.
        let at = self.running.iter().rposition(|running| running.task == victim.task);
        self.running.remove(at.expect("a victim runs"));
        self.gpus_at_risk -= victim.asks.gpus;
    }
}

/// GPUs that some tasks have together.
pub(super) fn gpus(running: &[Running]) -> u32 {
    running.iter().map(|running| running.asks.gpus).sum()
}

impl SchedulerState {
    pub(crate) fn lift_for_good(&mut self, task: TaskId) {
        let SchedulerState { tasks, gpus, .. } = self;
        for gpu in tasks.live(task).run.iter().flat_map(|run| run.placement.gpus()) {
            gpus.lift(gpu, task);
        }
    }
}
