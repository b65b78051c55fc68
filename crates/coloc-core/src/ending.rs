//! How tasks leave: by themselves, for want of memory, or on request.

use crate::event::Effect;
use crate::policy::Queue;
use crate::scheduler::SchedulerState;
use crate::service::GpuTime;
use crate::tasks::Record;
use coloc_model::{Millis, Outcome, Task, TaskId, TaskState, Time};

impl SchedulerState {
    pub(crate) fn ended(
        &mut self,
        now: Time,
        task: TaskId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> bool {
        self.learn_of_neighbours(now, task);
        self.learn_from(now, task);
        let contract = self.policy.contract.is_some();
        if contract {
            self.learn_memory(now, task, Some(outcome));
        }
        let died = contract && matches!(outcome, Outcome::OutOfMemory { .. });
        let death = if died { self.death(task) } else { None };
        let Some(run) = self.vacate(now, task) else {
            return self.ended_while_leaving(task, outcome, effects);
        };
        self.close_books(now, task, outcome);
        if self.policy.learn_speeds && outcome == Outcome::Completed {
            let task = &self.tasks.live(task).task;
            let model = run.placement.gpus().next().map(|gpu| self.gpus.get(gpu).model);
            if let (Some(declared), Some(model)) = (task.duration, model) {
                let took = now.since(run.started);
                self.speeds_seen.note((task.signature, model), declared, took);
            }
        }
        if self.policy.learn && outcome == Outcome::Completed {
            let Task { signature, user, .. } = self.tasks.live(task).task;
            let ran = self.tasks.live(task).service_record.done;
            self.beliefs.learn_run_time(signature, user, ran);
        }
        let cancelled = self.tasks.live(task).cancelled;
        let state = match outcome {
            Outcome::Completed => TaskState::Completed,
            _ if cancelled => TaskState::Cancelled,
            Outcome::Failed => TaskState::Failed,
            Outcome::OutOfMemory { wanted } => {
                let recovered = match &death {
                    Some(death) => {
                        let gpus: Vec<_> = run.placement.gpus().collect();
                        self.recover_by_contract(now, task, wanted, death, &gpus, effects)
                    }
                    None => self.recover(task, wanted),
                };
                if recovered {
                    return true;
                }
                TaskState::OutOfMemory
            }
        };
        self.retire(task, state, effects);
        true
    }

    /// A task ended before it could be preempted: there is nothing left to launch again.
    fn ended_while_leaving(
        &mut self,
        task: TaskId,
        outcome: Outcome,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let preempted = |record: &Record| record.service_record.first_start.is_some();
        let leaving = self.tasks.get(task).is_some_and(preempted);
        if leaving && outcome == Outcome::Completed {
            self.leave_queue(task);
            self.retire(task, TaskState::Completed, effects);
        }
        leaving
    }

    /// A run is over: service was attained, and history has one more sample.
    fn close_books(&mut self, now: Time, task: TaskId, outcome: Outcome) {
        let Some(record) = self.tasks.get_mut(task) else { return };
        match outcome {
            Outcome::Completed | Outcome::Failed => record.service_record.preempted(now),
            Outcome::OutOfMemory { .. } => record.service_record.died(now),
        }
        let service = GpuTime::of(record.service_record.done, record.task.gpus);
        if self.policy.queue == Queue::Gittins2d
            && outcome == Outcome::Completed
            && self.ranked.history.ended(service)
        {
            self.reorder_all(now);
        }
    }

    pub(crate) fn cancel(&mut self, task: TaskId, effects: &mut Vec<Effect>) -> bool {
        let Some(record) = self.tasks.get_mut(task) else { return false };
        if record.run.is_some() {
            if !std::mem::replace(&mut record.cancelled, true) {
                effects.push(Effect::Stop(task));
                self.ranked.cancelled(task);
            }
            return false;
        }
        self.leave_queue(task);
        self.retire(task, TaskState::Cancelled, effects);
        true
    }

    pub(crate) fn stopped(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) -> bool {
        if self.policy.contract.is_some() {
            self.learn_memory(now, task, None);
        }
        if self.vacate(now, task).is_none() {
            return false;
        }
        self.retire(task, TaskState::Cancelled, effects);
        true
    }

    /// When a task that runs, or starts now, is expected to leave its GPUs: by what was seen of its kind, else as declared.
    /// One that overran may end any moment.
    pub(crate) fn expected_end(&self, task: TaskId, now: Time) -> Time {
        let record = self.tasks.live(task);
        let span = if self.policy.learn {
            self.beliefs.run_time(record.task.signature)
        } else {
            record.task.duration
        };
        let started = record.run.as_ref().map_or(now, |run| run.started);
        span.map_or(Time::NEVER, |span| (started + span).max(now + Millis(1)))
    }

    fn retire(&mut self, task: TaskId, state: TaskState, effects: &mut Vec<Effect>) {
        if let Some(record) = self.tasks.remove(task) {
            self.holdings.gone(record.task.user);
        }
        self.overtaking.forget(task);
        self.host.forget(task);
        if self.reserved == Some(task) {
            self.reserve_for(Time::START, None);
        }
        effects.push(Effect::Retire { task, state });
    }
}
