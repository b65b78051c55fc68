//! What GPUs said to a task when it was started: kept for explanations, and for nothing else.

use crate::demand::Demand;
use crate::explain::GpuVerdict;
use crate::place::Preference;
use crate::scheduler::SchedulerState;
use crate::screen::Refusal;
use coloc_model::{GpuId, TaskId, Time};

/// Decisions that are kept until they are taken: a pass that starts very many must not take long for it.
pub(crate) const MOST_DECIDED: usize = 256;

/// A task that was started, and what each GPU said to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Decided {
    /// The task.
    pub task: TaskId,
    /// The GPUs that it got.
    pub chosen: Vec<GpuId>,
    /// What each GPU said.
    pub opinions: Vec<Opinion>,
}

/// What one GPU said to a task, before the task was on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Opinion {
    /// The GPU.
    pub gpu: GpuId,
    /// Every rule that failed.
    pub refusals: Vec<Refusal>,
    /// What the placement went by, the lowest being the best; `None` if the GPU would not have taken the task.
    pub score: Option<f64>,
}

impl SchedulerState {
    /// What each GPU says to a task that gets some of them.
    pub(crate) fn decided(&self, now: Time, demand: &Demand, chosen: &[GpuId]) -> Decided {
        let preference = Preference { place: self.policy.place, cursor: self.cursor, demand };
        let opinion = |GpuVerdict { gpu, refusals }| {
            let fits = refusals.is_empty();
            let cost = fits.then(|| preference.cost(&self.policy, &self.gpus, gpu, now));
            Opinion { gpu, refusals, score: cost.map(|cost| preference.score(cost)) }
        };
        let opinions = self.verdicts(now, demand).into_iter().map(opinion).collect();
        Decided { task: demand.task, chosen: chosen.to_vec(), opinions }
    }
}

#[cfg(test)]
mod tests {
    use crate::policy::{Place, Queue};
    use crate::{Event, Policy, Scheduler};
    use coloc_model::{Fleet, Memory, Share, SignatureId, Task, TaskId, Time, UserId};

    fn task(id: u32) -> Task {
        Task {
            id: TaskId(id),
            signature: SignatureId(0),
            user: UserId(0),
            gpus: 1,
            exclusive: false,
            models: None,
            pools: None,
            host: coloc_model::HostNeed::NONE,
            memory: Memory::Unknown,
            sm: None,
            borrows: false,
            checkpoint: None,
            duration: None,
            priority: 0,
        }
    }

    #[test]
    fn what_rejected_gpus_said_is_kept_if_it_is_wanted() {
        let fleet: Fleet = "2xA100-40GB".parse().expect("a fleet");
        let policy = Policy::plain(Queue::Fifo, Place::FirstFit, Share::Exclusive);
        let mut scheduler = Scheduler::new(&fleet, policy);
        scheduler.on_event(Time(0), Event::Submitted(task(1)));
        assert_eq!(scheduler.take_decisions(), [], "it was not asked for");
        scheduler.keep_decisions();
        scheduler.on_event(Time(1), Event::Submitted(task(2)));
        let decided = scheduler.take_decisions();
        assert_eq!(decided.len(), 1);
        assert_eq!((decided[0].task, decided[0].chosen[0].0), (TaskId(2), 1));
        let [first, second] = &decided[0].opinions[..] else { panic!("two GPUs") };
        assert_eq!((first.refusals.len(), first.score), (1, None), "task 1 is on it");
        assert_eq!((second.refusals.len(), second.score), (0, Some(1.0)));
        assert_eq!(scheduler.take_decisions(), []);
    }
}
