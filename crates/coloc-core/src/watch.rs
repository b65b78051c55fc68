//! Watching young tasks settle: memory that was promised and never used goes back to the ledger, and
//! how busy such tasks keep a GPU is remembered.

use crate::belief::NOTICEABLE;
use crate::crowd::LEAST_WATCH;
use crate::event::Effect;
use crate::scheduler::SchedulerState;
use coloc_model::{Bytes, Fraction, GpuId, Millis, SignatureId, TaskId, Time};
use std::collections::VecDeque;

/// A task that has been on its GPUs this long has warmed up.
const WARM_UP: Millis = Millis::from_secs(60);
/// Kept above what was seen, for what a task may still allocate.
const GROWTH: f64 = 1.05;

/// Tasks to be looked at, in the order in which they settle.
#[derive(Clone, Default, Debug)]
pub(crate) struct Watch {
    due: VecDeque<(Time, TaskId)>,
}

impl Watch {
    pub(crate) fn launched(&mut self, now: Time, task: TaskId) {
        self.due.push_back((now + WARM_UP, task));
    }

    pub(crate) fn next_due(&self) -> Option<Time> {
        self.due.front().map(|&(at, _)| at)
    }
}

impl SchedulerState {
    /// The monitor saw a task's memory; says whether a pass might start something because of it.
    pub(crate) fn seen(
        &mut self,
        now: Time,
        task: TaskId,
        used: Bytes,
        activity: Option<Fraction>,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let Some(run) = self.run_mut(task) else {
            return false;
        };
        // Until it is on its GPUs, a task that loads its program says nothing of how busy it will keep them.
        let arrives = run.seen == Bytes::ZERO && used > Bytes::ZERO;
        run.seen = run.seen.max(used);
        let gpus: Vec<_> =
            run.placement.slots.iter().map(|slot| (slot.gpu, slot.instance)).collect();
        let contract = self.policy.contract.is_some();
        if arrives {
            gpus.iter().for_each(|&(gpu, _)| self.gpus.watch_anew(now, gpu));
        }
        if contract {
            self.gather_evidence(now, task, used, activity);
        }
        if self.policy.learn {
            let level = activity.map(Fraction::get);
            gpus.iter().for_each(|&(gpu, _)| self.gpus.see_own(now, gpu, task, level));
        }
        let before = effects.len();
        for (gpu, instance) in gpus {
            if contract {
                self.make_good(now, gpu, task, used, effects);
                continue;
            }
            let state = self.gpus.get(gpu);
            let Some(booking) = state.residents().iter().find(|b| b.task == task) else { continue };
            if used > booking.bytes && instance.is_none() {
                // It holds more than it was promised. Others keep their promises, so it gets what is left.
                let room = state.capacity.saturating_sub(state.booked());
                let bytes = used.min(booking.bytes + room);
                self.gpus.rebook(gpu, task, bytes);
            }
        }
        // A task that was sent away may find another place.
        effects.len() > before
    }

    /// Looks at the tasks whose warm-up is over.
    pub(crate) fn look_at_warmed_up(&mut self, now: Time) {
        while let Some(&(at, task)) = self.watch.due.front()
            && at <= now
        {
            self.watch.due.pop_front();
            self.end_warm_up(now, task);
        }
    }

    fn end_warm_up(&mut self, now: Time, task: TaskId) {
        self.learn_of_neighbours(now, task);
        self.learn_from(now, task);
        // By the contract time alone settles nothing.
        if self.policy.contract.is_some() {
            return;
        }
        let Some(run) = self.run_mut(task) else {
            return;
        };
        // A task that was restarted since is watched on its own account.
        if now.since(run.started) < WARM_UP || std::mem::replace(&mut run.settled, true) {
            return;
        }
        let enough = run.seen.scale(GROWTH);
        let gpus: Vec<_> = run.placement.gpus().collect();
        for gpu in gpus {
            let state = self.gpus.get(gpu);
            let booking = state.residents().iter().find(|booking| booking.task == task);
            let wasteful = booking.is_some_and(|b| {
                enough > Bytes::ZERO && b.bytes > enough && !b.alone && b.instance.is_none()
            });
            if wasteful {
                self.gpus.rebook(gpu, task, enough);
            }
        }
    }

    /// Remembers what a task that settled was seen to do.
    pub(crate) fn learn_from(&mut self, now: Time, task: TaskId) {
        if !self.policy.learn {
            return;
        }
        let Some(record) = self.tasks.get(task) else { return };
        let Some(run) = &record.run else { return };
        let signature = record.task.signature;
        if now.since(run.started) < WARM_UP {
            return;
        }
        let peak = run.seen;
        let gpus: Vec<_> = run.placement.gpus().collect();
        let version = self.beliefs.version();
        if self.policy.contract.is_none() {
            self.beliefs.learn_peak(signature, peak);
        }
        self.learn_activity(now, task, signature, &gpus);
        if self.beliefs.version() != version {
            self.forget_refusals();
        }
    }

    /// Remembers how busy a task keeps its GPUs that is alone on them; of several, [`Self::learn_of_crowd`] tells.
    fn learn_activity(&mut self, now: Time, task: TaskId, signature: SignatureId, gpus: &[GpuId]) {
        let state = self.gpus.get(gpus[0]);
        let [booking] = state.residents() else { return };
        let told = state.mean_own(now, booking).is_some();
        if now.since(state.crowd_changed) < LEAST_WATCH || told {
            return;
        }
        let believed = booking.load;
        self.beliefs.learn(signature, state.mean_sm_of_crowd(now));
        let expected = self.beliefs.sm_demand(signature, None);
        if (expected - believed).abs() < NOTICEABLE {
            return;
        }
        for &gpu in gpus {
            self.gpus.expect_load(gpu, task, expected);
        }
    }
}
