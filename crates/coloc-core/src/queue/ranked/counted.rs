//! The walk where any free GPU will do: who runs is worked out by counting, and only then is anybody
//! moved. Whoever loses GPUs to one task and finds others a moment later was never preempted.

use super::Holder;
use super::pass::{Candidate, Walk};
use crate::place::Search;
use crate::policy::Place;
use crate::scheduler::{Turn, World};
use coloc_model::{Millis, TaskId};

impl World {
    /// Counting is enough: every idle GPU will do for every task, at once, whosever it is.
    pub(super) fn counts_suffice(&self) -> bool {
        let policy = &self.policy;
        let any_time = policy.pace.idle == Millis::ZERO && !policy.time_matters();
        let anybody = !self.holdings.are_limited() && self.reserved.is_none();
        let any_gpu = self.gpus.are_alike() && !self.kinds.matter();
        policy.place == Place::Any && any_time && anybody && any_gpu
    }
}

/// What a walk comes to.
#[derive(Clone, Default, Debug)]
pub(super) struct Moves {
    /// Running tasks that are to go.
    leaving: Vec<Holder>,
    /// Waiting tasks that are to come, best first, and their places. Nobody moves before them any more.
    coming: Vec<(usize, TaskId)>,
}

impl Walk {
    /// Decides for all, then carries it out.
    pub(super) fn by_count(&mut self, world: &mut World, turn: &mut Turn) {
        let mut moves = std::mem::take(&mut world.ranked.scratch.moves);
        let mut free = world.gpus.idle();
        while let Some(candidate) = self.candidates.pop() {
            if free + self.gpus_at_risk == 0 {
                break;
            }
            let (seat, _, class) = candidate;
            if self.blocked[class] {
                continue;
            }
            self.pass_better_holders(seat);
            let wanted = world.ranked.classes[class].gang;
            if !self.fewest_by_count(free, wanted) {
                self.blocked[class] = true;
                continue;
            }
            let victims = std::mem::take(&mut self.victims);
            for victim in &victims {
                free += victim.gpus;
                self.send_off(world, victim);
                moves.leaving.push(*victim);
            }
            self.victims = victims;
            free -= wanted;
            self.bring_in(world, candidate, &mut moves);
        }
        self.carry_out(world, turn, &moves);
        moves.leaving.clear();
        moves.coming.clear();
        world.ranked.scratch.moves = moves;
    }

    /// A running task loses its GPUs; it may find others.
    fn send_off(&mut self, world: &World, victim: &Holder) {
        self.drop_holder(victim.task);
        self.gpus_at_risk -= victim.gpus;
        let class = world.tasks.live(victim.task).standing.class as usize;
        self.consider(Some((victim.seat, victim.task, class)));
    }

    /// A task gets GPUs: one that waits, or one that just lost others.
    fn bring_in(&mut self, world: &World, (seat, task, class): Candidate, moves: &mut Moves) {
        let stays = moves.leaving.iter().position(|holder| holder.task == task);
        let holder = match stays {
            Some(at) => moves.leaving.remove(at),
            None => {
                moves.coming.push((self.at_risk, task));
                let peers = &world.ranked.classes[class];
                self.consider(peers.after(seat).map(|(seat, task)| (seat, task, class)));
                Holder::expected(seat, task, peers.gang)
            }
        };
        self.insert(holder);
    }

    fn carry_out(&mut self, world: &mut World, turn: &mut Turn, moves: &Moves) {
        for holder in &moves.leaving {
            world.lift_for_good(holder.task);
            world.ranked.close(holder);
            world.preempt(turn, holder.task, holder.seat);
        }
        let mut vacant = Vec::new();
        for &(place, task) in &moves.coming {
            let demand = world.demand(task);
            // A GPU that left the fleet with a task on it was counted and is not there.
            let Some(gpus) = world.find(turn, &demand, Search::Everywhere) else {
                vacant.push(place);
                continue;
            };
            world.start(turn, &demand, &gpus);
            self.holders[place] = world.hold(turn.now, self.holders[place].seat, task);
        }
        for place in vacant.into_iter().rev() {
            self.holders.remove(place);
        }
    }
}
