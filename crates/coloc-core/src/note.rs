//! What an event changes in the scheduler's state.

use crate::event::{Effect, Event};
use crate::gate::next_look;
use crate::gpus::Clients;
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
            Event::ForeignSeen { gpu, used } => {
                scheduler.gpus.see_foreign(gpu, used);
                true
            }
            Event::ForeignBusy { gpu, busy } => {
                scheduler.gpus.see_foreign_load(gpu, busy);
                true
            }
            Event::ClientsSeen { gpu, beside, limit } => {
                scheduler.gpus.see_clients(gpu, Clients { beside, limit });
                true
            }
            Event::SlicesSeen { gpu, taken } => {
                scheduler.gpus.see_slices(gpu, taken);
                true
            }
            Event::GpuThere { gpu, there } => {
                scheduler.gpus.set_there(gpu, there);
                there
            }
            Event::GpuKept { gpu, users } => {
                self.state.gpus.set_kept_for(gpu, users);
                true
            }
            Event::GpuDrained { gpu, drained } => {
                scheduler.gpus.set_drained(gpu, drained);
                !drained
            }
            Event::GpuSeen { gpu, signal } => {
                self.gpu_seen(now, gpu, signal, effects);
                false
            }
            Event::Wake => self.woken(now),
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
        self.state.waiting.insert(ticket, &task);
        let shape = self.state.shape(&task);
        let mut record = Record::new(task, ticket);
        let past = self.state.past.remove(&record.task.id).unwrap_or_default();
        (record.service_record, record.promised) = (past.service_record, past.promised);
        if self.state.policy.queue.is_ranked() {
            self.state.ranked.arrive(now, &self.state.policy, &mut record, shape);
        }
        let id = record.task.id;
        self.state.tasks.insert(record);
        self.state.recall_attempts(id, past.attempts);
        true
    }
}
