//! When the world is not as this scheduler left it: tasks that run already, launches that came to nothing,
//! users who change their mind.

use crate::contract::Promised;
use crate::queue::Ticket;
use crate::scheduler::SchedulerState;
use coloc_model::{Millis, Placement, Task, TaskId, Time};

impl SchedulerState {
    /// Takes a waiting task for running where it was found. Whatever was promised to others there, it is
    /// there.
    pub(crate) fn adopt(
        &mut self,
        now: Time,
        task: TaskId,
        placement: Placement,
        started: Time,
        promised: Option<Promised>,
    ) {
        let known = |gpu: coloc_model::GpuId| gpu.index() < self.gpus.len();
        if !placement.gpus().all(known) {
            return;
        }
        let demand = self.demand(task);
        let past = self.tasks.get_mut(task).and_then(|record| record.promised.take());
        let promised = promised.or(past);
        if self.policy.contract.is_some() {
            self.book_as_promised(now, demand, placement, promised);
        } else {
            self.book_without_contract(now, demand, placement, promised);
        }
        let Some(record) = self.tasks.get_mut(task) else { return };
        let started = started.min(now);
        if let Some(run) = &mut record.run {
            run.started = started;
        }
        // A task without service on record counts from its start.
        if record.service_record.ran == Millis::ZERO {
            record.service_record.since = started;
            record.service_record.first_start = Some(started);
        }
        // A task that ran out of memory is brought back before all others, and has no rank.
        if self.policy.queue.is_ranked() && !record.attempts.is_recovering() {
            self.ranked.adopt(record);
        }
    }

    /// A launch came to nothing: the task waits again, in its old place.
    pub(crate) fn not_launched(&mut self, now: Time, task: TaskId) -> bool {
        if self.vacate(now, task).is_none() {
            return false;
        }
        let Some(record) = self.tasks.get_mut(task) else { return false };
        record.service_record.preempted(now);
        if record.attempts.is_recovering() {
            self.recovery.come_back(task);
            return true;
        }
        self.wait_again(now, task)
    }

    /// A user changed a task.
    pub(crate) fn change(&mut self, now: Time, task: Task) -> bool {
        let (id, rank) = (task.id, Ticket::rank(&self.policy, &task));
        let Some(record) = self.tasks.get_mut(id) else { return false };
        if record.run.is_some() || record.attempts.is_recovering() {
            // Recovered tasks wait by the order in which they died, and ask for what they wanted then.
            record.task.priority = task.priority;
            record.ticket.rank = rank;
            self.ranked.set_priority(id, task.priority);
            // Another task may rank better now.
            return self.policy.queue.is_ranked();
        }
        self.leave_queue(id);
        self.host.forget(id);
        self.note_models(&task);
        let class = self.ranked.class(self.shape(&task));
        let Some(record) = self.tasks.get_mut(id) else { return false };
        record.service_record.class = class as u32;
        record.ticket.rank = rank;
        record.task = task;
        if self.blocked_head == Some(id) {
            self.blocked_head = None;
        }
        if self.reserved == Some(id) {
            self.reserve_for(Time::START, None);
        }
        self.wait_again(now, id)
    }

    pub(crate) fn wait_again(&mut self, now: Time, task: TaskId) -> bool {
        let Some(record) = self.tasks.get_mut(task) else { return false };
        self.waiting.insert(record.ticket, &record.task, record.service_record.done);
        if self.policy.queue.is_ranked() {
            self.ranked.come_back(now, &self.policy, record);
        }
        true
    }
}
