//! Carrying out what the scheduler decided.

use crate::executor::{Blame, Launched};
use crate::owner::{Ending, Owner};
use crate::record::{Intent, Record};
use coloc_api::notify::NotifyEvent;
use coloc_core::{Effect, Event};
use coloc_model::{GpuId, Placement, Share, Slot, TaskId, TaskState, Time};
use std::collections::VecDeque;

/// `0`, or `0, MIG instance …` on a partitioned GPU.
fn place_name(slot: &Slot) -> String {
    match slot.instance {
        None => slot.gpu.to_string(),
        Some(instance) => format!("{}, MIG instance {instance}", slot.gpu),
    }
}

impl Owner {
    /// Does what the scheduler wants. Launches are on the disk before they happen.
    pub(in crate::owner) fn carry_out(&mut self, now: Time, mut effects: Vec<Effect>) {
        effects.splice(0..0, std::mem::take(&mut self.deferred));
        let mut effects = VecDeque::from(effects);
        while let Some(wish) = effects.pop_front() {
            match wish {
                Effect::Launch { task, placement } => {
                    // A scheduler that was never told that it runs, since its GPU is not there: first it goes.
                    if self.tasks.get(&task).is_some_and(|l| l.record.phase == TaskState::Running) {
                        self.preempt(task);
                    }
                    if self.is_in_the_way(task, &placement) {
                        self.deferred.push(Effect::Launch { task, placement });
                    } else if self.prepare(task, placement) {
                        self.to_launch.push_back(task);
                    }
                }
                // A task that has not been launched yet will not be: the scheduler has taken its place back.
                Effect::Preempt(task) if self.take_back(task) => {}
                Effect::Preempt(task) => self.preempt(task),
                Effect::Stop(task) if self.take_back(task) => {
                    let mut more = Vec::new();
                    self.scheduler.note(now, Event::Stopped(task), &mut more);
                    effects.extend(more);
                }
                Effect::Stop(task) => self.stop(task),
                Effect::Retire { task, state } => self.retire(task, state),
                Effect::WakeAt(at) => self.wake_at = self.wake_at.min(at),
            }
        }
        let written = self.flush();
        self.send_signals(written);
        if !self.to_launch.is_empty() {
            self.launch_some(now, written);
        }
    }

    /// Launches tasks for a while; the others have their turn when clients that asked meanwhile have been answered.
    /// What is not on the disk is not launched.
    fn launch_some(&mut self, now: Time, written: bool) {
        let (began, mut again) = (self.clock.instant(), Vec::new());
        while let Some(task) = self.to_launch.pop_front() {
            let ready = written && !self.is_paused();
            let launched = if ready { self.launch(task) } else { Err(Blame::Moment) };
            match launched {
                Ok(()) => self.machine_works(),
                Err(Blame::Setup) => self.for_sharing.push(task),
                Err(blame) => self.not_launched(now, task, blame, &mut again),
            }
            if ready && self.has_had_its_turn(began) {
                break;
            }
        }
        // The scheduler decides nothing here: it lets go of tasks, and wants to be woken.
        for effect in again {
            match effect {
                Effect::WakeAt(at) => self.wake_at = self.wake_at.min(at),
                Effect::Retire { task, state } => self.retire(task, state),
                other => self.deferred.push(other),
            }
        }
    }

    /// Its launch was decided, and waits until other tasks are off its GPUs.
    pub(in crate::owner) fn is_deferred(&self, task: TaskId) -> bool {
        self.deferred
            .iter()
            .any(|wish| matches!(wish, Effect::Launch { task: t, .. } if *t == task))
    }

    /// Forgets a launch that was wanted and has not happened; says whether there was one.
    fn take_back(&mut self, task: TaskId) -> bool {
        let deferred = self.deferred.len();
        self.deferred.retain(|wish| !matches!(wish, Effect::Launch { task: t, .. } if *t == task));
        if self.deferred.len() < deferred {
            return true;
        }
        let waiting = self.to_launch.len() + self.for_sharing.len();
        self.to_launch.retain(|&launch| launch != task);
        self.for_sharing.retain(|&launch| launch != task);
        if self.to_launch.len() + self.for_sharing.len() == waiting {
            return false;
        }
        if let Some(live) = self.tasks.get_mut(&task) {
            live.record.phase = TaskState::Pending;
            live.record.placement = None;
            // Nothing was begun: the next try is this attempt.
            live.record.attempt = live.record.attempt.saturating_sub(1);
        }
        self.changed(task, Some("is not launched after all: another goes first".to_owned()));
        true
    }

    /// A task that is being preempted is still on one of the GPUs, or is the task itself.
    fn is_in_the_way(&self, task: TaskId, placement: &Placement) -> bool {
        let wanted: Vec<GpuId> = placement.gpus().collect();
        self.at_work().any(|live| {
            let record = &live.record;
            let on_them = || {
                let theirs = record.placement.iter().flat_map(Placement::gpus);
                theirs.into_iter().any(|gpu| wanted.contains(&gpu))
            };
            record.phase == TaskState::Preempting && (record.id == task || on_them())
        })
    }

    fn prepare(&mut self, task: TaskId, placement: Placement) -> bool {
        let Some(live) = self.tasks.get_mut(&task) else { return false };
        let gpus: Vec<String> = placement.slots.iter().map(place_name).collect();
        let record = &mut live.record;
        record.phase = TaskState::Launching;
        record.attempt += 1;
        record.placement = Some(placement);
        record.reason = None;
        record.exit = None;
        record.ended_by_watchdog = None;
        record.intent = None;
        record.limit_changed = false;
        record.retry_at = None;
        record.stopped = None;
        record.usage = crate::usage::Usage::default();
        let attempt = record.attempt;
        let what = format!("attempt {attempt} is launched on GPU {}", gpus.join(", "));
        self.changed(task, Some(what));
        true
    }

    fn launch(&mut self, task: TaskId) -> Result<(), Blame> {
        if self.is_drained_for(task) {
            return Err(Blame::Moment);
        }
        let memory = self.memory_limit(task);
        let Owner { executor, tasks, on_gpus, .. } = self;
        let Some(live) = tasks.get(&task) else { return Ok(()) };
        let neighbours: Vec<&Record> = match live.record.placement.as_ref().map(|p| p.share) {
            Some(Share::Mig | Share::Mps) => {
                let others = on_gpus.iter().filter(|&&other| other != task);
                others.filter_map(|other| Some(&tasks.get(other)?.record)).collect()
            }
            Some(Share::Exclusive | Share::Streams) | None => Vec::new(),
        };
        let launched = executor.launch(&live.record, &live.spec, memory, &neighbours);
        let Some(live) = self.tasks.get_mut(&task) else { return Ok(()) };
        match launched {
            Ok(launched) => {
                self.launched(task, launched);
                Ok(())
            }
            Err(error) if error.blame == Blame::Setup => {
                live.record.reason = Some(error.why);
                Err(Blame::Setup)
            }
            Err(error) => {
                let what = format!("could not be launched: {error}");
                live.record.reason = Some(what.clone());
                self.counters.launch_failures += 1;
                self.changed(task, Some(what));
                if error.blame == Blame::Machine {
                    self.machine_failed(error.why);
                }
                Err(error.blame)
            }
        }
    }

    /// An attempt was started.
    fn launched(&mut self, task: TaskId, launched: Launched) {
        let now = self.clock.world_now();
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.enforcement = Some(Box::new(launched.enforcement));
        live.record.phase = TaskState::Running;
        live.record.reason = None;
        live.record.started = Some(now);
        let first = live.record.first_started.is_none();
        live.record.first_started.get_or_insert(now);
        self.counters.started(&live.record);
        self.roots_changed = true;
        self.faults.remove(&task);
        self.eligibility.started(task);
        self.changed(task, launched.without);
        if first {
            self.notify(task, &[NotifyEvent::Start]);
        }
        self.mind_time_limit(task);
        for (other, enforcement) in launched.neighbours {
            if let Some(live) = self.tasks.get_mut(&other) {
                live.record.enforcement = Some(Box::new(enforcement));
                self.changed(other, None);
            }
        }
    }

    /// A launch did not happen. Only what the task itself asks for can be its failure, and only when trying again has not
    /// helped.
    fn not_launched(&mut self, now: Time, task: TaskId, blame: Blame, again: &mut Vec<Effect>) {
        const MOST_ATTEMPTS: u32 = 5;
        let trouble = self.machine_trouble();
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = TaskState::Pending;
        live.record.placement = None;
        live.record.reason = live.record.reason.take().or(trouble);
        if blame != Blame::Number {
            // Nothing was begun: the next try is this attempt.
            live.record.attempt = live.record.attempt.saturating_sub(1);
        }
        let tries = self.faults.get(&task).map_or(0, |&(faults, _)| faults);
        if blame == Blame::Task && tries + 1 >= MOST_ATTEMPTS {
            live.ending = Some(Ending::Over(TaskState::Failed));
            let outcome = coloc_model::Outcome::Failed;
            self.scheduler.note(now, Event::Ended { task, outcome }, again);
            return self.over(task, TaskState::Failed);
        }
        self.scheduler.note(now, Event::NotLaunched(task), again);
        self.wake_at = self.wake_at.min(now + coloc_model::Millis::from_secs(1));
        self.changed(task, None);
        match blame {
            Blame::Machine => self.hold_if_it_fails_alone(now, task, again),
            Blame::Account => self.hold_for(now, task, "its account is not known here", again),
            Blame::Task => {
                self.faults.insert(task, (tries + 1, self.launches));
            }
            Blame::Moment | Blame::Setup | Blame::Number => {}
        }
    }

    fn preempt(&mut self, task: TaskId) {
        let what = self.why_preempted(task);
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.phase = TaskState::Preempting;
        live.record.preemptions += 1;
        live.record.want(Intent::Preempt);
        self.counters.preempted(live.record.owner);
        self.changed(task, Some(what));
        self.leaves(task);
        self.stop(task);
    }

    /// Tells the scheduler how a task went. What that means for the task is written down with it: a restart in between
    /// would count its end twice.
    pub(in crate::owner) fn note_end(
        &mut self,
        now: Time,
        event: Event,
        effects: &mut Vec<Effect>,
    ) {
        let mut noted = Vec::new();
        self.scheduler.note(now, event, &mut noted);
        for effect in noted {
            match effect {
                Effect::Retire { task, state } => self.retire(task, state),
                other => effects.push(other),
            }
        }
    }

    /// The scheduler has let go of a task.
    fn retire(&mut self, task: TaskId, state: TaskState) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        // A launch that has not happened yet will not.
        self.deferred.retain(|wish| !matches!(wish, Effect::Launch { task: t, .. } if *t == task));
        match live.ending.take() {
            Some(Ending::Again) => {
                live.in_core = false;
                live.record.intent = None;
                live.record.phase =
                    if live.record.ooms > 0 { TaskState::Recovering } else { TaskState::Pending };
                live.record.placement = None;
                let array = live.record.array.map(|place| place.array);
                self.eligibility.left(task, array);
                self.eligibility.look_at(task);
                self.changed(task, None);
            }
            Some(Ending::Over(phase)) => self.over(task, phase),
            None => self.over(task, state),
        }
    }
}
