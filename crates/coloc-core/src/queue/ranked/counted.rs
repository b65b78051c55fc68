//! The pass where any free GPU will do: which tasks run is worked out by counting, and only then are tasks
//! moved. A task that loses GPUs to another and finds others a moment later was never preempted.

use super::Running;
use super::pass::RankedPass;
use super::victims::Counted;
use crate::place::Search;
use crate::policy::Place;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::{Millis, TaskId};
use std::ops::Bound::{Excluded, Unbounded};

impl SchedulerState {
    /// Counting is enough: every idle GPU will do for every task, at once, of any user.
    pub(super) fn counts_suffice(&self) -> bool {
        let policy = &self.policy;
        let any_time = policy.pace.idle == Millis::ZERO && !policy.time_matters();
        let any_task = !self.bars_some() && self.reserved.is_none();
        let any_gpu =
            self.gpus.are_alike() && !self.bindings_matter() && self.gpus.are_all_in_service();
        policy.place == Place::Any && any_time && any_task && any_gpu
    }
}

/// What a pass comes to.
#[derive(Default)]
struct Moves {
    /// Running tasks that are to go.
    leaving: Vec<Running>,
    /// Waiting tasks that are to come, best first.
    coming: Vec<TaskId>,
}

impl RankedPass {
    /// Decides for all, then carries it out.
    pub(super) fn by_count(&mut self, scheduler: &mut SchedulerState, pass: &mut Pass) {
        let mut moves = Moves::default();
        let mut free = scheduler.gpus.idle();
        while let Some((order_key, task, class)) = self.candidates.pop() {
            if free + self.gpus_at_risk == 0 {
                break;
            }
            if self.blocked[class] {
                continue;
            }
            self.pass_better_ones(order_key);
            let peers = &scheduler.ranked.classes[class];
            let Some(victims) = self.fewest(Counted { free, wanted: peers.gpus }) else {
                self.blocked[class] = true;
                continue;
            };
            for victim in victims {
                free += victim.asks.gpus;
                self.take_out(&victim);
                // It may find other GPUs.
                let class = victim.service_record.class as usize;
                self.consider(Some((victim.order_key, victim.task, class)));
                moves.leaving.push(victim);
            }
            free -= peers.gpus;
            let stays = moves.leaving.iter().position(|running| running.task == task);
            if let Some(at) = stays {
                self.insert(moves.leaving.remove(at));
                continue;
            }
            moves.coming.push(task);
            self.insert(Running::new(order_key, scheduler.tasks.live(task)));
            let next = peers.waiting.range((Excluded(order_key), Unbounded)).next();
            self.consider(next.map(|(&order_key, &task)| (order_key, task, class)));
        }
        self.carry_out(scheduler, pass, &moves);
    }

    fn carry_out(&mut self, scheduler: &mut SchedulerState, pass: &mut Pass, moves: &Moves) {
        for running in &moves.leaving {
            scheduler.lift_for_good(running.task);
            scheduler.preempt(pass, running.task, running.order_key);
        }
        for &task in &moves.coming {
            let place = self.running.iter().position(|running| running.task == task);
            let place = place.expect("a task that is to start has its place");
            let demand = scheduler.demand(task);
            // A GPU that left the fleet with a task on it was counted and is not there.
            let Some(gpus) = scheduler.find(pass, &demand, Search::Everywhere) else {
                self.running.remove(place);
                continue;
            };
            scheduler.start(pass, &demand, &gpus);
            let order_key = self.running[place].order_key;
            self.running[place] = Running::new(order_key, scheduler.tasks.live(task));
        }
    }
}
