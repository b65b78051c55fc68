//! Taking GPUs from a task that keeps its work.

use crate::event::Effect;
use crate::queue::ranked::OrderKey;
use crate::scheduler::{Pass, SchedulerState};
use coloc_model::TaskId;

impl SchedulerState {
    /// Sends a task whose bookings were lifted back to the queue; says in which class it waits.
    pub(crate) fn preempt(&mut self, pass: &mut Pass, task: TaskId, order_key: OrderKey) -> usize {
        self.send_back(pass, task);
        let Some(record) = self.tasks.get_mut(task) else {
            unreachable!("preempted task {task} is alive");
        };
        self.ranked.preempted(&self.policy, record, order_key)
    }

    /// Sends a task whose bookings were lifted back to the queue.
    pub(crate) fn send_back(&mut self, pass: &mut Pass, task: TaskId) {
        let now = pass.now;
        let Some(record) = self.tasks.get_mut(task) else {
            unreachable!("running task {task} is alive");
        };
        let run = record.run.take();
        record.service_record.preempted(now);
        if let Some(run) = &run {
            self.holdings.ended(now, record.task.user, &run.charge);
            self.host.give_back(record.task.host);
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
        self.waiting.insert(record.ticket, &record.task, record.service_record.done);
        pass.effects.push(Effect::Preempt(task));
    }
}
