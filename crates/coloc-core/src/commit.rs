//! The commit stage: books the GPUs and has the task launched; and the way back.

use crate::accounts::{Charge, OverQuota};
use crate::contract::evidence::Plateau;
use crate::contract::limit;
use crate::decided::MOST_DECIDED;
use crate::demand::Demand;
use crate::event::Effect;
use crate::scheduler::{Pass, SchedulerState};
use crate::tasks::Run;
use coloc_model::{Basis, Bytes, GpuId, Placement, Share, Slot, TaskId, Time};
use std::sync::Arc;

impl SchedulerState {
    /// The commit stage: books the GPUs and has the task launched.
    pub(crate) fn start(&mut self, pass: &mut Pass, demand: &Demand, gpus: &[GpuId]) {
        let (now, task) = (pass.now, demand.task);
        if let Some(decided) = pass.decided.as_mut().filter(|kept| kept.len() < MOST_DECIDED) {
            decided.push(self.decided(now, demand, gpus));
        }
        self.count_overtaking(task);
        let beside_others = gpus.iter().any(|&gpu| !self.gpus.get(gpu).is_idle());
        let slots: Arc<[Slot]> = gpus.iter().map(|&gpu| self.slot(gpu, demand)).collect();
        let placement = Placement { slots, share: demand.share };
        self.book_on(now, demand, placement.clone());
        self.cursor = gpus.last().map_or(0, |gpu| (gpu.0 + 1) % self.gpus.len() as u32);
        pass.effects.push(Effect::Launch { task, placement });
        pass.counts.started += 1;
        let pace = self.policy.pace;
        pass.next_decision = now + if beside_others { pace.shared } else { pace.idle };
        if self.reserved == Some(task) {
            self.reserve_for(Time::START, None);
        }
        if self.policy.contract.is_some() {
            self.overtaking.started(task, self.tasks.live(task).ticket);
        }
    }

    /// Books the GPUs of a task and takes it out of the queue.
    pub(crate) fn book_on(&mut self, now: Time, demand: &Demand, placement: Placement) {
        for slot in placement.slots.iter() {
            self.learn_of_crowd(now, slot.gpu);
            self.book(now, *slot, demand);
        }
        let charge = self.charge(demand, &placement.slots);
        self.holdings.started(now, demand.user, &charge);
        self.host.take(self.tasks.live(demand.task).task.host);
        self.host.forget(demand.task);
        self.leave_queue(demand.task);
        let slots = self.policy.contract.map(|_| placement.slots.clone());
        let run = Run {
            placement,
            charge,
            started: now,
            seen: Bytes::ZERO,
            settled: false,
            plateau: Plateau::new(now),
            settled_at: Bytes::ZERO,
            promised: demand.book,
            limit: None,
        };
        if let Some(record) = self.tasks.get_mut(demand.task) {
            record.run = Some(Run { limit: limit(demand), ..run });
            record.service_record.starts(now);
        }
        if self.policy.learn {
            self.watch.launched(now, demand.task);
        }
        if self.policy.contract.is_some() && demand.alone && demand.basis == Basis::Unknown {
            self.settling.watch_lone(demand.task);
        }
        for slot in slots.iter().flat_map(|slots| slots.iter()) {
            self.company_changed(now, slot.gpu);
        }
    }

    /// What a task that was just booked costs its user: of a shared GPU the larger of the parts of its
    /// memory and of its SMs.
    fn charge(&self, demand: &Demand, slots: &[Slot]) -> Charge {
        if !self.holdings.are_kept() {
            return Charge::NONE;
        }
        let part = |slot: &Slot| {
            let state = self.gpus.get(slot.gpu);
            let memory = demand.book.0 as f64 / state.capacity.0.max(1) as f64;
            if demand.idle_only { 1.0 } else { memory.max(demand.load).clamp(0.0, 1.0) }
        };
        Charge {
            gpus: demand.gpus,
            memory: demand.gang_memory(),
            share: slots.iter().map(part).sum(),
        }
    }

    /// What a task that was booked with less costs its user from now on.
    pub(crate) fn recharge(&mut self, now: Time, task: TaskId) {
        if !self.holdings.are_kept() {
            return;
        }
        let record = self.tasks.live(task);
        let Some(run) = &record.run else { return };
        let user = record.task.user;
        let (mut memory, mut share) = (Bytes::ZERO, 0.0);
        for gpu in run.placement.gpus() {
            let Some(booking) = self.booking(gpu, task) else { continue };
            let part = booking.claim().0 as f64 / self.gpus.get(gpu).capacity.0.max(1) as f64;
            memory += booking.claim();
            share += part.max(booking.load).clamp(0.0, 1.0);
        }
        let charge = Charge { gpus: run.charge.gpus, memory, share };
        let before = run.charge;
        self.holdings.ended(now, user, &before);
        self.holdings.started(now, user, &charge);
        if let Some(run) = self.run_mut(task) {
            run.charge = charge;
        }
    }

    /// Why a task may not start, however many GPUs are free.
    pub(crate) fn over_quota(&self, task: TaskId) -> Option<OverQuota> {
        if !self.holdings.are_limited() {
            return None;
        }
        let demand = self.demand(task);
        self.holdings.refusal(demand.user, demand.gpus, demand.gang_memory())
    }

    fn book(&mut self, now: Time, slot: Slot, demand: &Demand) {
        let booking = self.gpus.get(slot.gpu).booking(demand, slot.instance);
        self.gpus.book(now, slot.gpu, booking);
        if let Some(settle) = self.policy.settle {
            self.gpus.hold_until(slot.gpu, now + settle);
        }
    }

    /// The part of a GPU that a task gets.
    #[inline]
    pub(crate) fn slot(&self, gpu: GpuId, demand: &Demand) -> Slot {
        let partitioned = demand.share == Share::Mig;
        let state = self.gpus.get(gpu);
        Slot { gpu, instance: if partitioned { state.instance_for(demand) } else { None } }
    }

    pub(crate) fn leave_queue(&mut self, task: TaskId) {
        let record = self.tasks.live(task);
        let (ticket, in_recovery) = (record.ticket, record.attempts.is_recovering());
        if in_recovery {
            self.recovery.remove(task);
        } else {
            self.waiting.remove(ticket, &record.task, record.service_record.done);
            if self.policy.queue.is_ranked() {
                self.ranked.remove(&self.policy, record);
            }
        }
    }

    /// Takes a task off its GPUs.
    pub(crate) fn vacate(&mut self, now: Time, task: TaskId) -> Option<Run> {
        let record = self.tasks.get_mut(task)?;
        let run = record.run.take()?;
        self.holdings.ended(now, record.task.user, &run.charge);
        self.host.give_back(record.task.host);
        for gpu in run.placement.gpus() {
            self.gpus.release(now, gpu, task);
        }
        self.ranked.forget_running(task);
        self.departed(now, task, &run);
        Some(run)
    }

    /// What the contract makes of a task that is off its GPUs, for good or to come back.
    pub(crate) fn departed(&mut self, now: Time, task: TaskId, run: &Run) {
        if self.policy.contract.is_none() {
            return;
        }
        self.settling.forget(task, run);
        for gpu in run.placement.gpus() {
            self.extend_the_unknown(gpu);
            self.company_changed(now, gpu);
        }
    }
}
