//! Tasks settle: bookings shrink on evidence, company may come, and kinds are learned.

use super::evidence::{least_margin, long_enough};
use crate::event::Effect;
use crate::gpus::{Booking, LAG};
use crate::scheduler::SchedulerState;
use crate::tasks::{Record, Run};
use coloc_model::{
    Basis, Bytes, Fraction, GpuId, Memory, Millis, Outcome, SignatureId, TaskId, Time,
};
use std::collections::BTreeSet;

/// Of what was settled and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SettlingCounts {
    /// Tasks whose booking shrank, or that got company, on evidence.
    pub settled: u64,
    /// Such tasks that came to hold more than was left to them: the evidence was wrong.
    pub outgrown: u64,
    /// Out-of-memory errors of tasks that were within their booking.
    pub wronged: u64,
    /// Tasks that were sent away from memory that was lent to them.
    pub recalled: u64,
}

/// Tasks whose evidence will be complete, in that order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settling {
    due: BTreeSet<(Time, TaskId)>,
    /// Tasks that run alone because nothing is known of them.
    lone: Vec<TaskId>,
    pub(crate) counts: SettlingCounts,
}

impl Settling {
    pub(crate) fn next_due(&self) -> Option<Time> {
        self.due.first().map(|&(at, _)| at)
    }

    /// A task that runs alone was launched.
    pub(crate) fn watch_lone(&mut self, task: TaskId) {
        if !self.lone.contains(&task) {
            self.lone.push(task);
        }
    }

    /// A task left its GPUs.
    pub(crate) fn forget(&mut self, task: TaskId, run: &Run) {
        if let Some(due) = run.plateau.due {
            self.due.remove(&(due, task));
        }
        self.lone.retain(|&lone| lone != task);
    }

    /// A task of that kind of which nothing was known, and that runs alone now.
    pub(crate) fn first_of(
        &self,
        scheduler: &SchedulerState,
        signature: SignatureId,
    ) -> Option<TaskId> {
        let of_kind = |task: &&TaskId| {
            scheduler.tasks.get(**task).is_some_and(|record| record.task.signature == signature)
        };
        self.lone.iter().find(of_kind).copied()
    }
}

impl SchedulerState {
    /// The monitor saw a task's memory and, where that can be told, its own SM activity.
    pub(crate) fn gather_evidence(
        &mut self,
        now: Time,
        task: TaskId,
        used: Bytes,
        own: Option<Fraction>,
    ) {
        let Some(run) = self.run_mut(task) else { return };
        let told = run.plateau.is_told() != own.is_some();
        run.plateau.see(now, used, own);
        let (settled_at, seen) = (run.settled_at, run.seen);
        if told {
            let slots = run.placement.slots.clone();
            for slot in slots.iter() {
                self.gpus.set_told(slot.gpu, task, own.is_some());
            }
        }
        self.attribute_activity(now, task);
        if settled_at > Bytes::ZERO && used >= seen && used > settled_at {
            let signature = self.tasks.live(task).task.signature;
            let growth = used.0 as f64 / settled_at.0 as f64 - 1.0;
            if growth > self.beliefs.late_growth(signature) {
                self.beliefs.learn_late_growth(signature, growth);
            }
        }
    }

    /// The monitor saw a GPU: if one task alone is on it, that was this task's doing.
    pub(crate) fn gather_activity(&mut self, now: Time, gpu: GpuId) {
        if let [Booking { task, settled: false, told: false, .. }] = *self.gpus.get(gpu).residents()
        {
            self.attribute_activity(now, task);
        }
    }

    /// A task comes to a GPU or leaves it: what its tasks do can no longer be told apart, or can again.
    pub(crate) fn company_changed(&mut self, now: Time, gpu: GpuId) {
        let unsettled =
            |booking: &Booking| (!booking.settled && !booking.told).then_some(booking.task);
        let tasks: Vec<TaskId> =
            self.gpus.get(gpu).residents().iter().filter_map(unsettled).collect();
        tasks.into_iter().for_each(|task| self.attribute_activity(now, task));
    }

    /// The monitor cannot see a GPU: what its tasks do there is evidence of nothing.
    pub(crate) fn lose_sight(&mut self, now: Time, gpu: GpuId) {
        let tasks: Vec<TaskId> = self.gpus.get(gpu).residents().iter().map(|b| b.task).collect();
        for task in tasks {
            if let Some(run) = self.run_mut(task) {
                run.plateau.lose_sight(now);
                self.plan_to_settle(task);
            }
        }
    }

    /// The task's log shows that it got further.
    pub(crate) fn gather_progress(&mut self, now: Time, task: TaskId) {
        let Some(run) = self.run_mut(task) else { return };
        run.plateau.progress(now);
        self.plan_to_settle(task);
    }

    pub(crate) fn run_mut(&mut self, task: TaskId) -> Option<&mut Run> {
        self.tasks.get_mut(task).and_then(|record| record.run.as_mut())
    }

    /// Works out whether what the GPUs do is known to be a task's doing. A gang is at work if all of its GPUs are.
    fn attribute_activity(&mut self, now: Time, task: TaskId) {
        let Some(run) = self.tasks.get_mut(task).and_then(|record| record.run.as_mut()) else {
            return;
        };
        let (mut least, mut since) = (Some(Fraction::ONE), Time::START);
        // What is told of the task itself is better than what GPUs do.
        let told = run.plateau.is_told();
        for gpu in run.placement.gpus().filter(|_| !told) {
            let state = self.gpus.get(gpu);
            let alone = state.residents().len() == 1 && state.foreign == Bytes::ZERO;
            least = least.filter(|_| alone).map(|sm| sm.min(state.signal.activity.sm));
            since = since.max(state.crowd_changed + LAG);
        }
        run.plateau.attribute(now, least, since);
        self.plan_to_settle(task);
    }

    /// Works out when a task will have settled, if that will change anything.
    fn plan_to_settle(&mut self, task: TaskId) {
        let Some(record) = self.tasks.get(task) else { return };
        let Some(run) = &record.run else { return };
        let due = match self.shrinks_to(record, run) {
            Some((span, _)) => run.plateau.complete_at(span),
            None => None,
        };
        let before = run.plateau.due;
        if due == before {
            return;
        }
        if let Some(before) = before {
            self.settling.due.remove(&(before, task));
        }
        if let Some(due) = due {
            self.settling.due.insert((due, task));
        }
        if let Some(run) = self.run_mut(task) {
            run.plateau.due = due;
        }
    }

    /// How long a task must train, and what it is then booked with; `None` if that is nothing new.
    fn shrinks_to(&self, record: &Record, run: &Run) -> Option<(Millis, Bytes)> {
        let task = record.task.id;
        // Most never shrink: nothing is to be worked out for them.
        let may_shrink = match record.task.memory {
            // A task that died for want of what it lent does not lend again.
            Memory::Declared { reclaim, .. } => reclaim && !record.attempts.is_recovering(),
            Memory::Estimated { peak, .. } => peak < run.promised,
            Memory::Unknown => true,
        };
        if !may_shrink || record.attempts.last_resort || record.task.exclusive {
            return None;
        }
        let bookings = run.placement.gpus().filter_map(|gpu| self.booking(gpu, task));
        let largest = bookings.max_by_key(|booking| booking.bytes)?;
        let margin =
            least_margin(largest.basis).max(self.beliefs.late_growth(record.task.signature));
        let enough = run.seen.scale(1.0 + margin);
        // A task may still come to hold what was expected: evidence settles what is between expectation and bound.
        let enough = match record.task.memory {
            Memory::Estimated { peak, .. } => enough.max(peak.min(run.promised)),
            _ => enough,
        };
        let kept = largest.settled || largest.instance.is_some();
        let news = !kept && run.seen > Bytes::ZERO;
        (news && (enough < largest.bytes || largest.alone))
            .then_some((long_enough(largest.basis), enough))
    }

    pub(crate) fn booking(&self, gpu: GpuId, task: TaskId) -> Option<&Booking> {
        self.gpus.get(gpu).residents().iter().find(|booking| booking.task == task)
    }

    /// Settles tasks whose evidence is complete.
    pub(crate) fn settle_due(&mut self, now: Time) {
        while let Some(&(at, task)) = self.settling.due.first()
            && at <= now
        {
            self.settling.due.pop_first();
            let Some(run) = self.run_mut(task) else { continue };
            run.plateau.due = None;
            self.settle_by_contract(now, task);
        }
    }

    fn settle_by_contract(&mut self, now: Time, task: TaskId) {
        let Some(record) = self.tasks.get(task) else { return };
        let Some(run) = record.run.clone() else { return };
        let Some((span, enough)) = self.shrinks_to(record, &run) else { return };
        let Some(run_now) = self.run_mut(task) else { return };
        if !run_now.plateau.is_complete(now, span) {
            return self.plan_to_settle(task);
        }
        run_now.settled_at = run.seen;
        // A second time is about late growth.
        let first = !std::mem::replace(&mut run_now.settled, true);
        for gpu in run.placement.gpus() {
            self.gpus.amend(gpu, task, |booking| {
                booking.settled = true;
                booking.alone = false;
                booking.bytes = booking.bytes.min(enough);
            });
        }
        self.settling.counts.settled += 1;
        self.settling.lone.retain(|&lone| lone != task);
        self.recharge(now, task);
        if first && self.policy.learn {
            let signature = self.tasks.live(task).task.signature;
            let warm_up = now.since(run.started).0.saturating_sub(span.0);
            self.beliefs.learn_warm_up(signature, Millis(warm_up));
        }
        self.teach(task, run.seen, false);
    }

    /// A task ended or settled: what it held is what its kind holds.
    fn teach(&mut self, task: TaskId, peak: Bytes, ended: bool) {
        if !self.policy.learn {
            return;
        }
        let signature = self.tasks.live(task).task.signature;
        let version = self.beliefs.version();
        self.beliefs.teach_peak(signature, task, peak, ended);
        if self.beliefs.version() != version {
            self.forget_refusals();
            self.rebase_siblings(signature);
        }
    }

    /// Tasks of a kind of which nothing was known run alone: they have a history now.
    fn rebase_siblings(&mut self, signature: SignatureId) {
        let Some(seen) = self.beliefs.peak(signature) else { return };
        let of_kind = |task: &TaskId| {
            let record = self.tasks.get(*task);
            record.is_some_and(|r| r.task.signature == signature && !r.task.exclusive)
        };
        let siblings: Vec<TaskId> = self.settling.lone.iter().copied().filter(of_kind).collect();
        for task in siblings {
            let Some(run) = self.tasks.get(task).and_then(|record| record.run.as_ref()) else {
                continue;
            };
            if self.tasks.live(task).attempts.last_resort {
                continue;
            }
            let enough = seen.padded.max(run.seen.scale(1.0 + least_margin(Basis::History)));
            let gpus: Vec<GpuId> = run.placement.gpus().collect();
            for gpu in gpus {
                self.gpus.amend(gpu, task, |booking| {
                    booking.basis = Basis::History;
                    booking.alone = false;
                    if booking.instance.is_none() {
                        booking.bytes = booking.bytes.min(enough);
                    }
                });
            }
            self.settling.lone.retain(|&lone| lone != task);
            self.plan_to_settle(task);
        }
    }

    /// Learns what a run that is over showed of its kind's memory.
    pub(crate) fn learn_memory(&mut self, now: Time, task: TaskId, outcome: Option<Outcome>) {
        let Some(record) = self.tasks.get_mut(task) else { return };
        let Some(run) = &mut record.run else { return };
        let signature = record.task.signature;
        let first_gpu = run.placement.slots[0].gpu;
        let (seen, settled_at) = (run.seen, run.settled_at);
        let basis = self.gpus.get(first_gpu).residents().iter().find(|b| b.task == task);
        let span = long_enough(basis.map_or(Basis::Unknown, |booking| booking.basis));
        let settled = settled_at > Bytes::ZERO || run.plateau.is_complete(now, span);
        match outcome {
            Some(Outcome::Completed) => {
                if settled_at > Bytes::ZERO && self.policy.learn {
                    let growth = seen.0 as f64 / settled_at.0 as f64 - 1.0;
                    self.beliefs.learn_late_growth(signature, growth);
                }
                self.teach(task, seen, true);
            }
            Some(Outcome::OutOfMemory { .. }) => {}
            Some(Outcome::Failed) | None if settled => self.teach(task, seen, true),
            Some(Outcome::Failed) | None => {}
        }
    }

    /// A task holds more than it was promised. Others keep their promises, so it gets what is left; one that lent memory
    /// gets it back.
    pub(crate) fn make_good(
        &mut self,
        now: Time,
        gpu: GpuId,
        task: TaskId,
        used: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        let Some(&booking) = self.booking(gpu, task) else { return };
        if used <= booking.bytes || booking.instance.is_some() {
            return;
        }
        if booking.settled {
            self.settling.counts.outgrown += 1;
        }
        if booking.declared > booking.bytes {
            self.want_back(now, gpu, task, effects);
            return self.plan_to_settle(task);
        }
        let room = self.gpus.get(gpu).room();
        // The evidence was wrong, or there was none yet: what was promised at first holds again, as far as it is there.
        let Some(run) = self.run_mut(task) else { return };
        run.settled_at = Bytes::ZERO;
        let wanted = used.scale(1.0 + least_margin(booking.basis)).max(run.promised);
        let bytes = wanted.min(booking.bytes + room).max(booking.bytes);
        self.gpus.amend(gpu, task, |booking| {
            booking.bytes = bytes;
            booking.settled = false;
        });
        self.extend_the_unknown(gpu);
        self.plan_to_settle(task);
    }

    /// A task that has not settled, and of which nothing is known, has all of a GPU that no other task was promised.
    pub(crate) fn extend_the_unknown(&mut self, gpu: GpuId) {
        let state = self.gpus.get(gpu);
        let unsettled = |b: &&Booking| b.basis == Basis::Unknown && !b.settled;
        let Some(&booking) = state.residents().iter().find(unsettled) else { return };
        let whole = |run: &Run| run.promised >= state.capacity && booking.instance.is_none();
        let run = self.tasks.get(booking.task).and_then(|record| record.run.as_ref());
        if !run.is_some_and(whole) {
            return;
        }
        let (room, lone) = (state.room(), state.residents().len() == 1);
        self.gpus.amend(gpu, booking.task, |booking| {
            booking.bytes += room;
            booking.alone |= lone;
        });
        if lone {
            self.settling.watch_lone(booking.task);
        }
    }
}
