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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Place, Policy, Queue};
    use crate::{Effect, Event};
    use coloc_model::{Fleet, Millis, Share, SignatureId, Task, TaskId, UserId};

    fn task(id: u32) -> Task {
        Task {
            id: TaskId(id),
            signature: SignatureId(id),
            user: UserId(0),
            gpus: 1,
            exclusive: true,
            estimate: None,
            duration: None,
            priority: 0,
        }
    }

    fn preempts(effects: &[Effect]) -> bool {
        effects.iter().any(|effect| matches!(effect, Effect::Preempt(_)))
    }

    #[test]
    fn a_waiting_task_keeps_what_it_has_attained() {
        let fleet: Fleet = "1xA100-40GB".parse().unwrap();
        let policy = Policy::plain(Queue::Las2d, Place::Any, Share::Exclusive);
        let at = |seconds: u64| Time::START + Millis::from_secs(seconds);
        let mut old = Scheduler::new(&fleet, policy);
        old.on_event(at(0), Event::Submitted(task(0)));
        let effects = old.on_event(at(100), Event::Submitted(task(1)));
        assert!(preempts(&effects), "the newcomer has had less");
        let placement = effects.iter().find_map(|effect| match effect {
            Effect::Launch { placement, .. } => Some(placement.clone()),
            _ => None,
        });
        let placement = placement.unwrap();
        for remembers in [true, false] {
            let mut new = Scheduler::new(&fleet, policy);
            if remembers {
                new.remember(at(110), &old);
            }
            let (placement, started) = (placement.clone(), at(100));
            let found = Event::Adopted { task: task(1), placement, started };
            let mut effects = new.on_event(at(110), found);
            effects.extend(new.on_event(at(110), Event::Submitted(task(0))));
            assert_eq!(preempts(&effects), !remembers, "{effects:?}");
        }
    }
}
