//! Out of memory, by the contract: whose doing it was, and what the next attempt is given.

use crate::event::Effect;
use crate::policy::OnOom;
use crate::scheduler::{Scheduler, SchedulerState};
use crate::tasks::Run;
use coloc_model::{Bytes, GpuId, TaskId, Time};

/// A framework that says it wanted less than this part of what was seen of it does not speak of this run.
const BELIEVABLE: f64 = 0.9;
/// Neighbours are blamed so often for one task; then it is the task.
const MOST_BLAME: u32 = 3;
/// After running out of memory so often a task has GPUs to itself.
const OOMS_BEFORE_LAST_RESORT: u32 = 2;

/// What a task had when it ran out of memory.
pub(crate) struct Death {
    /// The most that was seen of it.
    seen: Bytes,
    /// What it was promised on the GPU where that was least, lent memory included.
    promised: Bytes,
    /// Others were there too.
    company: bool,
    /// Others were seen to hold more than they were promised.
    offended: bool,
    /// It had all that any GPU can give.
    had_all: bool,
    /// It had been seen to train at a plateau, holding this much.
    settled_at: Bytes,
}

impl Death {
    /// What it wanted, if that can be believed. Less than what was seen is no word of this run; more may be a peak
    /// between two looks.
    fn known(&self, wanted: Bytes) -> Option<Bytes> {
        let believable = wanted >= self.seen.scale(BELIEVABLE) && wanted > Bytes::ZERO;
        believable.then_some(wanted)
    }

    /// It had less than it was promised: others took it.
    fn is_within_promise(&self, known: Option<Bytes>) -> bool {
        match known {
            Some(wanted) => wanted <= self.promised && self.company,
            None => self.offended,
        }
    }
}

impl Scheduler {
    /// Whether a running task that runs out of memory now, wanting so much (0 if it did not say), is within what it was
    /// promised: then that was a neighbour's doing, and no attempt of the task's is counted.
    pub fn is_wronged(&self, task: TaskId, wanted: Bytes) -> bool {
        let SchedulerState { policy, tasks, .. } = &self.state;
        let blames = tasks.get(task).is_some_and(|r| r.attempts.wronged < MOST_BLAME);
        let death = policy.contract.and_then(|_| self.state.death(task));
        blames && death.is_some_and(|death| death.is_within_promise(death.known(wanted)))
    }
}

impl SchedulerState {
    /// How things stand for a task that dies.
    pub(crate) fn death(&self, task: TaskId) -> Option<Death> {
        let record = self.tasks.get(task)?;
        let run = record.run.as_ref()?;
        let largest = self.largest_for(&record.task);
        let mut death = Death {
            seen: run.seen,
            promised: Bytes::MAX,
            company: false,
            offended: false,
            had_all: true,
            settled_at: run.settled_at,
        };
        for gpu in run.placement.gpus() {
            let (state, Some(booking)) = (self.gpus.get(gpu), self.booking(gpu, task)) else {
                continue;
            };
            let others = state.residents().len() > 1 && booking.instance.is_none();
            let foreign = state.foreign > Bytes::ZERO;
            death.promised = death.promised.min(booking.bytes.max(booking.declared));
            death.company |= others || foreign;
            death.offended |= others && (foreign || self.offender(gpu, task).is_some());
            death.had_all &= !others && !foreign && booking.bytes >= largest;
        }
        Some(death)
    }

    /// A neighbour that holds more than it was promised, or memory that was lent to it.
    fn offender(&self, gpu: GpuId, victim: TaskId) -> Option<TaskId> {
        let others = self.gpus.get(gpu).residents().iter().filter(|b| b.task != victim);
        let over = |task: TaskId, bytes: Bytes| {
            let run = self.tasks.get(task).and_then(|record| record.run.as_ref());
            run.is_some_and(|run: &Run| run.seen > bytes)
        };
        others.into_iter().find(|b| b.borrowed || over(b.task, b.bytes)).map(|b| b.task)
    }

    /// A task ran out of memory and is off its GPUs. Says no if it is not to come back.
    pub(crate) fn recover_by_contract(
        &mut self,
        now: Time,
        task: TaskId,
        wanted: Bytes,
        death: &Death,
        gpus: &[GpuId],
        effects: &mut Vec<Effect>,
    ) -> bool {
        let known = death.known(wanted);
        let within = death.is_within_promise(known);
        // What the victim was promised is kept for it.
        let owed = within.then_some(death.promised);
        for &gpu in gpus {
            self.call_to_account(now, gpu, owed, effects);
        }
        let Some(record) = self.tasks.get_mut(task) else { return false };
        if within && record.attempts.wronged < MOST_BLAME {
            record.attempts.wronged += 1;
            self.settling.counts.wronged += 1;
            // Before the tasks that took its memory.
            self.recovery.come_back(task);
            return true;
        }
        if self.policy.recovery.on_oom == OnOom::Fail
            || record.attempts.ooms >= self.policy.recovery.retries
            || record.attempts.last_resort
            || death.had_all
        {
            return false;
        }
        self.grant(task, known, death);
        self.wait_to_recover(task);
        true
    }

    /// Gives the next attempt of a task what is known of it, or more than it had.
    fn grant(&mut self, task: TaskId, known: Option<Bytes>, death: &Death) {
        let rules = self.policy.recovery;
        let Some(record) = self.tasks.get_mut(task) else { return };
        // What a GPU has is enough to double.
        let had = death.seen.max(Bytes(death.promised.0.min(u64::MAX / 4)));
        let margin = match rules.on_oom {
            OnOom::Grow { margin } => 1.0 + margin.get(),
            OnOom::Exclusive | OnOom::Fail => 1.0,
        };
        let had_settled = death.settled_at > Bytes::ZERO;
        let granted = match known {
            Some(wanted) if had_settled => wanted.scale(margin),
            // It had not been seen to train: that this height is the last is not known.
            Some(wanted) => wanted.scale(margin).max(had.scale(2.0)),
            None => had.scale(2.0),
        };
        record.attempts.ooms += 1;
        record.attempts.wanted = record.attempts.wanted.max(known).max(Some(death.seen));
        record.attempts.granted = record.attempts.granted.max(granted);
        match rules.on_oom {
            OnOom::Fail => {}
            OnOom::Exclusive => record.attempts.idle_retry = true,
            OnOom::Grow { .. } => {
                record.attempts.last_resort =
                    record.attempts.ooms >= rules.retries.min(OOMS_BEFORE_LAST_RESORT);
            }
        }
        let signature = record.task.signature;
        if let Some(wanted) = known.filter(|_| had_settled) {
            let growth = wanted.0 as f64 / death.settled_at.0 as f64 - 1.0;
            self.beliefs.learn_late_growth(signature, growth.max(0.0));
        }
    }

    /// Tasks that hold more than they were promised are booked with what they hold. Where that is not to be had beside
    /// what is owed to their victim, or where memory was only lent to them, they go.
    fn call_to_account(
        &mut self,
        now: Time,
        gpu: GpuId,
        owed: Option<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        let harm_done = owed.is_some();
        let residents = self.gpus.get(gpu).residents().to_vec();
        for booking in residents.iter().filter(|booking| booking.instance.is_none()) {
            let seen = self.tasks.get(booking.task).and_then(|record| record.run.as_ref());
            let Some(seen) = seen.map(|run| run.seen) else { continue };
            if booking.borrowed {
                if harm_done {
                    self.settling.counts.recalled += 1;
                    self.send_away(now, booking.task, effects);
                }
                continue;
            }
            if seen <= booking.bytes {
                continue;
            }
            let room = self.gpus.get(gpu).room().saturating_sub(owed.unwrap_or_default());
            let bytes = seen.min(booking.bytes + room);
            self.gpus.rebook(gpu, booking.task, bytes);
            if harm_done && bytes < seen {
                self.expel(now, booking.task, seen, effects);
            }
        }
    }

    /// A task holds memory that was promised to other tasks, and they died of it: it comes back with what it needs.
    fn expel(&mut self, now: Time, task: TaskId, held: Bytes, effects: &mut Vec<Effect>) {
        if self.vacate(now, task).is_none() {
            return;
        }
        effects.push(Effect::Preempt(task));
        let Some(record) = self.tasks.get_mut(task) else { return };
        record.service_record.preempted(now);
        record.attempts.ooms += 1;
        record.attempts.wanted = record.attempts.wanted.max(Some(held));
        record.attempts.granted = record.attempts.granted.max(held.scale(1.1));
        record.attempts.last_resort =
            record.attempts.ooms >= self.policy.recovery.retries.min(OOMS_BEFORE_LAST_RESORT);
        self.wait_to_recover(task);
    }
}
