//! Memory that was declared and is not used may be lent to tasks that allow to be sent away; and on a restart declared
//! floors are booked before anything else.

use crate::event::Effect;
use crate::gpus::Booking;
use crate::scheduler::SchedulerState;
use coloc_model::{Basis, Bytes, GpuId, TaskId, Time};
use std::cmp::Reverse;

impl SchedulerState {
    /// A task wants the memory back that it lent: tasks that borrowed it go, the youngest first.
    pub(super) fn want_back(
        &mut self,
        now: Time,
        gpu: GpuId,
        lender: TaskId,
        effects: &mut Vec<Effect>,
    ) {
        let Some(&booking) = self.booking(gpu, lender) else { return };
        let more = booking.declared.saturating_sub(booking.bytes);
        self.recall(now, gpu, more, effects);
        self.gpus.amend(gpu, lender, |booking| {
            booking.bytes = booking.declared;
            booking.settled = false;
        });
        if let Some(run) = self.run_mut(lender) {
            run.settled_at = Bytes::ZERO;
        }
    }

    /// Sends borrowers away until so much of a GPU is not booked.
    pub(super) fn recall(
        &mut self,
        now: Time,
        gpu: GpuId,
        wanted: Bytes,
        effects: &mut Vec<Effect>,
    ) {
        while self.gpus.get(gpu).capacity.saturating_sub(self.gpus.get(gpu).booked()) < wanted {
            let residents = self.gpus.get(gpu).residents();
            let youngest = residents.iter().rev().find(|booking| booking.borrowed);
            let Some(borrower) = youngest.map(|booking| booking.task) else { return };
            self.settling.counts.recalled += 1;
            self.send_away(now, borrower, effects);
        }
    }

    /// Takes a task off its GPUs; it waits again in its old place.
    pub(super) fn send_away(&mut self, now: Time, task: TaskId, effects: &mut Vec<Effect>) {
        if self.not_launched(now, task) {
            effects.push(Effect::Preempt(task));
        }
    }

    /// Makes room for a declared floor among running tasks: tasks that may be sent away claim nothing, and of the
    /// others the tasks of which least is known give first.
    pub(super) fn make_room(&mut self, gpu: GpuId, wanted: Bytes) {
        let lent = |claimed: Bytes, capacity: Bytes| capacity.saturating_sub(claimed) >= wanted;
        let borrows = |task: TaskId| self.tasks.get(task).is_some_and(|r| r.task.borrows);
        let residents = self.gpus.get(gpu).residents().iter().rev();
        let borrowers: Vec<TaskId> = residents.map(|b| b.task).filter(|&b| borrows(b)).collect();
        for borrower in borrowers {
            let state = self.gpus.get(gpu);
            if lent(state.claimed, state.capacity) {
                break;
            }
            self.gpus.amend(gpu, borrower, |booking| {
                booking.borrowed = true;
                booking.declared = Bytes::ZERO;
            });
        }
        let rank = |booking: &Booking| match (booking.basis, booking.settled) {
            (Basis::Unknown, false) => 0,
            (_, true) => 1,
            _ => 2,
        };
        let mut givers: Vec<Booking> = self.gpus.get(gpu).residents().to_vec();
        givers.retain(|booking| {
            booking.bytes > booking.declared && booking.instance.is_none() && !booking.borrowed
        });
        givers.sort_by_key(|booking| (rank(booking), Reverse(booking.bytes)));
        for giver in givers {
            let state = self.gpus.get(gpu);
            let short = wanted.saturating_sub(state.capacity.saturating_sub(state.claimed));
            if short == Bytes::ZERO {
                return;
            }
            let bytes = giver.bytes.saturating_sub(short).max(giver.declared);
            self.gpus.amend(gpu, giver.task, |booking| booking.bytes = bytes);
        }
    }
}
