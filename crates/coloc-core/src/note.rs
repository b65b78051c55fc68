//! What an event changes in the scheduler's state.

use crate::event::{Effect, Event};
use crate::gate::next_look;
use crate::gpus::{Clients, Gpus};
use crate::queue::Ticket;
use crate::scheduler::Scheduler;
use crate::tasks::Record;
use coloc_model::{GpuId, GpuSignal, Task, TaskState, Time};

impl Scheduler {
    /// Updates the state; says whether a pass might start something.
    pub(crate) fn take_note(&mut self, now: Time, event: Event, effects: &mut Vec<Effect>) -> bool {
        let scheduler = &mut self.state;
        match event {
            Event::Submitted(task) => self.submitted(now, task, effects),
            Event::Adopted { task, placement, started, promised } => {
                let id = task.id;
                if self.submitted(now, task, effects) {
                    self.state.adopt(now, id, placement, started, promised);
                }
                false
            }
            Event::Progressed(task) if scheduler.policy.contract.is_some() => {
                scheduler.gather_progress(now, task);
                false
            }
            Event::NotLaunched(task) => scheduler.not_launched(now, task),
            Event::Ended { task, outcome } => scheduler.ended(now, task, outcome, effects),
            Event::Changed(task) => scheduler.change(now, task),
            Event::StopRequested(task) => scheduler.cancel(task, effects),
            Event::Stopped(task) => scheduler.stopped(now, task, effects),
            Event::Taught { signature, lesson } => {
                scheduler.beliefs.teach(signature, &lesson);
                scheduler.forget_refusals();
                true
            }
            Event::TaskSeen { task, used, activity } => {
                scheduler.seen(now, task, used, activity, effects)
            }
            Event::GpuUnseen(gpu) if scheduler.policy.contract.is_some() => {
                scheduler.lose_sight(now, gpu);
                false
            }
            Event::Progressed(_) | Event::GpuUnseen(_) => false,
            Event::GpuSeen { gpu, signal } => {
                self.gpu_seen(now, gpu, signal, effects);
                false
            }
            Event::Wake => self.woken(now),
            about_a_gpu @ (Event::ForeignSeen { .. }
            | Event::ForeignBusy { .. }
            | Event::ClientsSeen { .. }
            | Event::SlicesSeen { .. }
            | Event::GpuThere { .. }
            | Event::GpuKept { .. }
            | Event::GpuDrained { .. }) => scheduler.gpus.take_note(about_a_gpu),
        }
    }

    fn woken(&mut self, now: Time) -> bool {
        let scheduler = &mut self.state;
        scheduler.look_at_warmed_up(now);
        scheduler.settle_due(now);
        // Ranks are looked at when they change, not when they would have changed.
        let early = scheduler.ranked.look_at.is_none_or(|at| now < at);
        !(scheduler.policy.queue.is_ranked() && early && !scheduler.policy.time_matters())
    }

    fn gpu_seen(&mut self, now: Time, gpu: GpuId, signal: GpuSignal, effects: &mut Vec<Effect>) {
        let scheduler = &mut self.state;
        scheduler.gpus.see(now, gpu, signal);
        if scheduler.policy.contract.is_some() {
            scheduler.gather_activity(now, gpu);
        }
        // A pass asks for the signals itself; but one that cools down may be worth another look.
        if self.state.anyone_waits()
            && let Some(at) = next_look(&self.state.policy, self.state.gpus.get(gpu), now)
        {
            effects.push(Effect::WakeAt(at));
        }
    }

    fn submitted(&mut self, now: Time, task: Task, effects: &mut Vec<Effect>) -> bool {
        // A caller that sends an id twice means the task that is already here.
        if self.state.tasks.get(task.id).is_some() {
            return false;
        }
        if self.check(&task).is_err() {
            effects.push(Effect::Retire { task: task.id, state: TaskState::Failed });
            return false;
        }
        self.state.note_models(&task);
        let rank = Ticket::rank(&self.state.policy, &task);
        let ticket = Ticket { rank, submitted: now, number: self.next_ticket };
        self.next_ticket += 1;
        let shape = self.state.shape(&task);
        let mut record = Record::new(task, ticket);
        let past = self.state.past.remove(&record.task.id).unwrap_or_default();
        (record.service_record, record.promised) = (past.service_record, past.promised);
        self.state.waiting.insert(ticket, &record.task, record.service_record.done);
        if self.state.policy.queue.is_ranked() {
            self.state.ranked.arrive(now, &self.state.policy, &mut record, shape);
        }
        let id = record.task.id;
        self.state.holdings.came(record.task.user);
        self.state.tasks.insert(record);
        self.state.recall_attempts(id, past.attempts);
        true
    }
}

impl Gpus {
    /// Notes what an event says of a GPU that is no sample; says whether a pass might start something.
    fn take_note(&mut self, event: Event) -> bool {
        match event {
            Event::ForeignSeen { gpu, used } => self.see_foreign(gpu, used),
            Event::ForeignBusy { gpu, busy } => self.see_foreign_load(gpu, busy),
            Event::ClientsSeen { gpu, beside, limit } => {
                self.see_clients(gpu, Clients { beside, limit });
            }
            Event::SlicesSeen { gpu, taken } => self.see_slices(gpu, taken),
            Event::GpuThere { gpu, there } => {
                self.set_there(gpu, there);
                return there;
            }
            Event::GpuKept { gpu, users } => self.set_kept_for(gpu, users),
            Event::GpuDrained { gpu, drained } => {
                self.set_drained(gpu, drained);
                return !drained;
            }
            // All others are of tasks, and noted by the scheduler.
            _ => return false,
        }
        true
    }
}
