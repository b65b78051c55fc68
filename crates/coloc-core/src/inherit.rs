//! A scheduler in the place of another: what the old one learned is not learned again.

use crate::scheduler::Scheduler;
use crate::tasks::Record;
use coloc_model::{Time, UserId};

impl Scheduler {
    /// Is told that a user had this part of the GPUs from then until then, before this scheduler was there.
    pub fn recall(&mut self, now: Time, user: UserId, share: f64, from: Time, to: Time) {
        self.world.holdings.recall(now, user, share, from, to);
    }

    /// Takes over what another scheduler of the same fleet learned: of kinds of tasks, of what users have had, and of
    /// what each task has had that will be submitted again or adopted.
    pub fn remember(&mut self, now: Time, past: &Scheduler) {
        let (world, past) = (&mut self.world, &past.world);
        world.beliefs = past.beliefs.clone();
        world.speeds_seen = past.speeds_seen.clone();
        world.ranked.history.remember(&past.ranked.history);
        world.holdings.remember(now, &past.holdings);
        for (gpu, state) in past.gpus.iter() {
            world.gpus.see_foreign(gpu, state.foreign);
            world.gpus.set_there(gpu, !state.away);
        }
        let standing = |record: &Record| {
            let mut standing = record.standing;
            if record.run.is_some() {
                standing.preempted(now);
            }
            (record.task.id, standing)
        };
        world.past = past.tasks.iter().map(standing).collect();
    }
}
