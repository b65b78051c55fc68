//! Taking GPUs from a task that keeps its work.

use crate::event::Effect;
use crate::queue::ranked::Seat;
use crate::scheduler::{Turn, World};
use coloc_model::TaskId;

impl World {
    /// Sends a task whose bookings were lifted back to the queue; says in which class it waits.
    pub(crate) fn preempt(&mut self, turn: &mut Turn, task: TaskId, seat: Seat) -> usize {
        let now = turn.now;
        let Some(record) = self.tasks.get_mut(task) else {
            unreachable!("running task {task} is alive");
        };
        let run = record.run.take();
        record.standing.preempted(now);
        if let Some(run) = &run {
            self.holdings.ended(now, record.task.user, &run.charge);
        }
        for gpu in run.iter().flat_map(|run| run.placement.gpus()) {
            self.gpus.left(now, gpu);
        }
        if let Some(run) = &run {
            self.departed(now, task, run);
        }
        let Some(record) = self.tasks.get_mut(task) else {
            unreachable!("preempted task {task} is alive");
        };
        self.waiting.insert(record.ticket, &record.task);
        turn.effects.push(Effect::Preempt(task));
        self.ranked.preempted(&self.policy, record, seat)
    }
}
