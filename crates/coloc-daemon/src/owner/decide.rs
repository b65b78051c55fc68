//! Carrying out what the scheduler decided.

use super::{Ending, Owner, TURN};
use crate::launch::{Farewell, LaunchError};
use crate::record::{Moment, Phase};
use crate::sharing::SharingError;
use coloc_core::{Effect, Event};
use coloc_model::mig::Instance;
use coloc_model::{Bytes, GpuId, Placement, Share, Slot, TaskId, TaskState, Time};
use std::collections::VecDeque;
use std::time::Instant;

/// What became of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Launched {
    Yes,
    /// Its MPS server is being set up; it is launched when that is done.
    Soon,
    /// The machine is not ready for it.
    NotNow,
    No,
}

/// `0`, or `0 (2g@4 (9.6 GiB))` on a partitioned GPU.
fn place_name(slot: &Slot) -> String {
    match slot.instance {
        None => slot.gpu.to_string(),
        Some(instance) => format!("{}, MIG instance {instance}", slot.gpu),
    }
}

impl Owner {
    /// Does what the scheduler wants. Launches are on the disk before they happen.
    pub(super) fn carry_out(&mut self, now: Time, mut wishes: Vec<Effect>) {
        wishes.splice(0..0, std::mem::take(&mut self.deferred));
        let mut wishes = VecDeque::from(wishes);
        while let Some(wish) = wishes.pop_front() {
            match wish {
                Effect::Launch { task, placement } => {
                    if self.is_in_the_way(task, &placement) {
                        self.deferred.push(Effect::Launch { task, placement });
                    } else if self.prepare(task, placement) {
                        self.to_launch.push_back(task);
                    }
                }
                // Who has not been launched yet will not be: the scheduler has taken its place back.
                Effect::Preempt(task) if self.take_back(task) => {}
                Effect::Preempt(task) => self.preempt(task),
                Effect::Stop(task) if self.take_back(task) => {
                    let mut more = Vec::new();
                    self.scheduler.note(now, Event::Stopped(task), &mut more);
                    wishes.extend(more);
                }
                Effect::Stop(task) => self.stop(task),
                Effect::Retire { task, state } => self.retire(task, state),
                Effect::WakeAt(at) => self.wake_at = self.wake_at.min(at),
            }
        }
        if !self.to_launch.is_empty() {
            let written = self.flush();
            self.launch_some(now, written);
        }
    }

    /// Launches tasks for a while; the others have their turn when those have been answered who asked meanwhile. What
    /// is not on the disk is not launched.
    fn launch_some(&mut self, now: Time, written: bool) {
        let (began, mut again) = (Instant::now(), Vec::new());
        while let Some(task) = self.to_launch.pop_front() {
            let launched = if written { self.launch(task) } else { Launched::NotNow };
            match launched {
                Launched::Yes => {}
                Launched::Soon => self.for_mps.push(task),
                Launched::NotNow | Launched::No => {
                    self.not_launched(now, task, launched, &mut again);
                }
            }
            if written && began.elapsed() > TURN {
                break;
            }
        }
        // What is wanted after a launch that failed is wanted at the next look.
        let wakes = again.iter().filter_map(|effect| match effect {
            Effect::WakeAt(at) => Some(*at),
            _ => None,
        });
        self.wake_at = wakes.chain([self.wake_at]).min().unwrap_or(Time::NEVER);
    }

    /// Forgets a launch that was wanted and has not happened; says whether there was one.
    fn take_back(&mut self, task: TaskId) -> bool {
        let deferred = self.deferred.len();
        self.deferred.retain(|wish| !matches!(wish, Effect::Launch { task: t, .. } if *t == task));
        if self.deferred.len() < deferred {
            return true;
        }
        let waiting = self.to_launch.len() + self.for_mps.len();
        self.to_launch.retain(|&launch| launch != task);
        self.for_mps.retain(|&launch| launch != task);
        if self.to_launch.len() + self.for_mps.len() == waiting {
            return false;
        }
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.phase = Phase::Pending;
            live.record.placement = None;
            // Nothing was begun: the next try is this attempt.
            live.record.attempt = live.record.attempt.saturating_sub(1);
        }
        self.changed(task, Some("is not launched after all: another goes first".to_owned()));
        true
    }

    /// Somebody who is being preempted is still on one of the GPUs, or is the task itself.
    fn is_in_the_way(&self, task: TaskId, placement: &Placement) -> bool {
        let wanted: Vec<GpuId> = placement.gpus().collect();
        self.at_work().any(|live| {
            let record = &live.record;
            let on_them = || {
                let theirs = record.placement.iter().flat_map(Placement::gpus);
                theirs.into_iter().any(|gpu| wanted.contains(&gpu))
            };
            record.phase == Phase::Preempting && (record.id == task || on_them())
        })
    }

    fn prepare(&mut self, task: TaskId, placement: Placement) -> bool {
        let Some(live) = self.tasks.get_mut(&task) else { return false };
        let gpus: Vec<String> = placement.slots.iter().map(place_name).collect();
        let record = &mut live.record;
        record.phase = Phase::Launching;
        record.attempt += 1;
        record.placement = Some(placement);
        record.reason = None;
        record.exit = None;
        record.too_greedy = None;
        record.usage = crate::usage::Usage::default();
        let attempt = record.attempt;
        let what = format!("attempt {attempt} is launched on GPU {}", gpus.join(", "));
        self.changed(task, Some(what));
        true
    }

    /// Where the instances of tasks other than this one lie.
    pub(super) fn instances_of_others(&self, but: Option<TaskId>) -> Vec<(GpuId, Instance)> {
        let on_gpus = self.tasks.values().map(|live| &live.record);
        let on_gpus = on_gpus.filter(|record| record.phase.is_on_gpus() && Some(record.id) != but);
        let slots = on_gpus.flat_map(|record| &record.placement).flat_map(|p| p.slots.iter());
        slots.filter_map(|slot| Some((slot.gpu, slot.instance?))).collect()
    }

    /// What the ledger has for a task on GPUs that it has not to itself.
    pub(super) fn booked_to_share(&self, task: TaskId) -> Option<Bytes> {
        let placement = self.tasks.get(&task)?.record.placement.as_ref()?;
        let booking = |gpu| {
            let residents = self.scheduler.gpus().get(gpu).residents();
            residents.iter().find(|booking| booking.task == task && !booking.alone)
        };
        let shared = self.scheduler.policy().share != Share::Exclusive;
        placement.gpus().filter(|_| shared).filter_map(booking).map(|booking| booking.bytes).min()
    }

    fn launch(&mut self, task: TaskId) -> Launched {
        let beside = self.beside(task);
        let Some(live) = self.tasks.get_mut(&task) else { return Launched::Yes };
        match self.launcher.launch(&live.record, &live.spec, &beside) {
            Ok((holds, without)) => {
                let server_memory = holds.mps.map(|mps| mps.server_memory);
                let now = Moment::now();
                live.record.holds = Some(Box::new(holds));
                live.record.phase = Phase::Running;
                live.record.reason = None;
                live.record.started = Some(now);
                live.record.first_started.get_or_insert(now);
                self.roots_changed = true;
                self.gates.look_again(task);
                self.changed(task, without);
                if let Some(memory) = server_memory {
                    self.restate_holds(task, memory);
                }
                Launched::Yes
            }
            Err(LaunchError::Mps(SharingError::NotYet)) => {
                live.record.reason = Some(SharingError::NotYet.to_string());
                Launched::Soon
            }
            Err(error) => {
                self.disk_full |= error.is_disk_full();
                let what = format!("could not be launched: {error}");
                live.record.reason = Some(what.clone());
                self.changed(task, Some(what));
                if error.may_pass() { Launched::NotNow } else { Launched::No }
            }
        }
    }

    /// A launch that the machine refuses is the task's failure after all: trying for ever helps nobody.
    fn not_launched(
        &mut self,
        now: Time,
        task: TaskId,
        launched: Launched,
        again: &mut Vec<Effect>,
    ) {
        const MOST_ATTEMPTS: u32 = 5;
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = Phase::Pending;
        live.record.placement = None;
        if launched == Launched::NotNow {
            // Nothing was begun: the next try is this attempt.
            live.record.attempt = live.record.attempt.saturating_sub(1);
        }
        if live.record.attempt < MOST_ATTEMPTS || launched == Launched::NotNow {
            self.scheduler.note(now, Event::NotLaunched(task), again);
            self.wake_at = self.wake_at.min(now + coloc_model::Millis::from_secs(1));
        } else {
            live.ending = Some(Ending::Over(Phase::Failed));
            let outcome = coloc_model::Outcome::Failed;
            self.scheduler.note(now, Event::Ended { task, outcome }, again);
            self.over(task, Phase::Failed);
        }
        self.changed(task, None);
    }

    fn preempt(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = Phase::Preempting;
        live.record.preemptions += 1;
        self.launcher.stop(&live.record, Farewell::AfterWarning);
        self.changed(task, Some("is preempted".to_owned()));
    }

    fn stop(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get(&task) else { return };
        // Whoever runs again goes on from what it saves now.
        let again = matches!(live.ending, Some(Ending::Again));
        let farewell = if again { Farewell::AfterWarning } else { Farewell::AtOnce };
        self.launcher.stop(&live.record, farewell);
    }

    /// The scheduler has let go of a task.
    fn retire(&mut self, task: TaskId, state: TaskState) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        let by_state = match state {
            TaskState::Completed => Phase::Completed,
            TaskState::Cancelled => Phase::Cancelled,
            TaskState::OutOfMemory => Phase::OutOfMemory,
            _ => Phase::Failed,
        };
        // A launch that has not happened yet will not.
        self.deferred.retain(|wish| !matches!(wish, Effect::Launch { task: t, .. } if *t == task));
        match live.ending.take() {
            Some(Ending::Again) => {
                live.in_core = false;
                live.record.phase =
                    if live.record.ooms > 0 { Phase::Recovering } else { Phase::Pending };
                live.record.placement = None;
                self.gates.knock(task);
                self.changed(task, None);
            }
            Some(Ending::Over(phase)) => self.over(task, phase),
            None => self.over(task, by_state),
        }
    }
}
