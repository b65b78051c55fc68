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
        let world = &mut self.world;
        match event {
            Event::Submitted(task) => self.submitted(now, task, effects),
            Event::Adopted { task, placement, started, promised } => {
                let id = task.id;
                if self.submitted(now, task, effects) {
                    self.world.adopt(now, id, placement, started, promised);
                }
                false
            }
            Event::Progressed(task) if world.policy.contract.is_some() => {
                world.gather_progress(now, task);
                false
            }
            Event::NotLaunched(task) => world.not_launched(now, task),
            Event::Ended { task, outcome } => world.ended(now, task, outcome, effects),
            Event::Changed(task) => world.change(now, task),
            Event::CancelRequested(task) => world.cancel(task, effects),
            Event::Stopped(task) => world.stopped(now, task, effects),
            Event::Taught { signature, lesson } => {
                world.beliefs.teach(signature, &lesson);
                world.forget_refusals();
                true
            }
            Event::TaskSeen { task, used, activity } => {
                world.seen(now, task, used, activity, effects)
            }
            Event::GpuUnseen(gpu) if world.policy.contract.is_some() => {
                world.lose_sight(now, gpu);
                false
            }
            Event::Progressed(_) | Event::GpuUnseen(_) => false,
            Event::ForeignSeen { gpu, used } => {
                world.gpus.see_foreign(gpu, used);
                true
            }
            Event::ClientsSeen { gpu, beside, limit } => {
                world.gpus.see_clients(gpu, Clients { beside, limit });
                true
            }
            Event::SlicesSeen { gpu, taken } => {
                world.gpus.see_slices(gpu, taken);
                true
            }
            Event::GpuThere { gpu, there } => {
                world.gpus.set_there(gpu, there);
                there
            }
            Event::GpuDrained { gpu, drained } => {
                world.gpus.set_drained(gpu, drained);
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
        let world = &mut self.world;
        world.look_at_settled(now);
        world.settle_due(now);
        // Ranks are looked at when they change, not when they would have changed.
        let early = world.ranked.look_at.is_none_or(|at| now < at);
        !(world.policy.queue.is_ranked() && early && !world.policy.time_matters())
    }

    fn gpu_seen(&mut self, now: Time, gpu: GpuId, signal: GpuSignal, effects: &mut Vec<Effect>) {
        let world = &mut self.world;
        world.gpus.see(now, gpu, signal);
        if world.policy.contract.is_some() {
            world.gather_activity(now, gpu);
        }
        // A pass asks for the signals itself; but one that cools down may be worth another look.
        if self.world.anyone_waits()
            && let Some(at) = next_look(&self.world.policy, self.world.gpus.get(gpu), now)
        {
            effects.push(Effect::WakeAt(at));
        }
    }

    fn submitted(&mut self, now: Time, task: Task, effects: &mut Vec<Effect>) -> bool {
        // Whoever sends an id twice means the task that is already here.
        if self.world.tasks.get(task.id).is_some() {
            return false;
        }
        if self.check(&task).is_err() {
            effects.push(Effect::Retire { task: task.id, state: TaskState::Failed });
            return false;
        }
        self.world.note_models(&task);
        let rank = Ticket::rank(&self.world.policy, &task);
        let ticket = Ticket { rank, submitted: now, number: self.next_ticket };
        self.next_ticket += 1;
        self.world.waiting.insert(ticket, &task);
        let shape = self.world.shape(&task);
        let mut record = Record::new(task, ticket);
        let past = self.world.past.remove(&record.task.id).unwrap_or_default();
        (record.standing, record.promised) = (past.standing, past.promised);
        if self.world.policy.queue.is_ranked() {
            self.world.ranked.arrive(now, &self.world.policy, &mut record, shape);
        }
        let id = record.task.id;
        self.world.tasks.insert(record);
        self.world.recall_attempts(id, past.attempts);
        true
    }
}
