//! Faults of the machine: launching pauses and is tried again, and no task ends because of them.

use crate::journal::Entry;
use crate::owner::Owner;
use coloc_api::view::StoryLine;
use coloc_core::{Effect, Event};
use coloc_model::{TaskId, TaskState, Time};
use std::time::{Duration, Instant};

const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A task that alone meets faults so often, while others are launched, is held: something about it is wrong.
const MOST_FAULTS: u32 = 5;

/// Why nothing is launched, and until when.
#[derive(Clone, Debug)]
pub(in crate::owner) struct Pause {
    why: String,
    length: Duration,
    until: Instant,
}

impl Pause {
    /// There was no fault since it ended, for as long as it took.
    fn is_forgotten(&self, now: Instant) -> bool {
        now >= self.until + self.length
    }
}

impl Owner {
    /// Nothing is launched just now.
    pub(in crate::owner) fn is_paused(&self) -> bool {
        self.pause.as_ref().is_some_and(|pause| self.clock.instant() < pause.until)
    }

    /// When launching is tried again.
    pub(in crate::owner) fn pause_ends(&self) -> Option<Instant> {
        self.pause.as_ref().map(|pause| pause.until).filter(|&until| until > self.clock.instant())
    }

    /// What is wrong with the machine, for people.
    pub(in crate::owner) fn machine_trouble(&self) -> Option<String> {
        if self.disk_full {
            return Some(format!("nothing is launched: {}", self.why_unwritten()));
        }
        let pause = self.pause.as_ref().filter(|_| self.is_paused())?;
        Some(format!(
            "nothing is launched: {}; it is tried again every {} s",
            pause.why,
            pause.length.as_secs()
        ))
    }

    /// The machine could not do what a launch needs.
    pub(in crate::owner) fn machine_failed(&mut self, why: String) {
        let now = self.clock.instant();
        let length = match &self.pause {
            Some(pause) if self.is_paused() => pause.length,
            Some(pause) if !pause.is_forgotten(now) => (pause.length * 2).min(LONGEST_PAUSE),
            _ => SHORTEST_PAUSE,
        };
        if self.pause.as_ref().is_none_or(|pause| pause.why != why) {
            tracing::error!("nothing is launched for now: {why}");
        }
        self.pause = Some(Pause { why, length, until: now + length });
    }

    /// A launch worked. That the program began is not known yet: faults that a shim meets are told in a moment, and pauses grow
    /// until there are none for as long as the last one took.
    pub(in crate::owner) fn machine_works(&mut self) {
        self.launches += 1;
        let now = self.clock.instant();
        if self.pause.as_ref().is_some_and(|pause| pause.is_forgotten(now)) {
            self.machine_is_well();
        }
    }

    /// A program began: the machine is well again.
    pub(in crate::owner) fn machine_is_well(&mut self) {
        if self.pause.take().is_some() {
            tracing::info!("tasks are launched again");
        }
    }

    /// An attempt ended before its program began, for reasons that are not the task's: the task waits again.
    pub(in crate::owner) fn never_began(
        &mut self,
        now: Time,
        task: TaskId,
        why: Option<String>,
        effects: &mut Vec<Effect>,
    ) {
        let why = why.unwrap_or_else(|| "its shim ended before it began".to_owned());
        let Some(live) = self.tasks.get_mut(&task) else { return };
        let what = format!("could not be launched: {why}");
        live.record.phase = TaskState::Pending;
        live.record.placement = None;
        live.record.intent = None;
        live.record.reason = Some(what.clone());
        self.changed(task, Some(what));
        self.machine_failed(why);
        self.scheduler.note(now, Event::NotLaunched(task), effects);
        self.hold_if_it_fails_alone(now, task, effects);
    }

    /// Others were launched since this task met its last fault: a few times that is chance.
    pub(in crate::owner) fn hold_if_it_fails_alone(
        &mut self,
        now: Time,
        task: TaskId,
        effects: &mut Vec<Effect>,
    ) {
        let launches = self.launches;
        let (faults, since) = self.faults.entry(task).or_insert((0, launches));
        let alone = *since < launches;
        *faults = if alone { *faults + 1 } else { (*faults).max(1) };
        *since = launches;
        if *faults < MOST_FAULTS {
            return;
        }
        self.faults.remove(&task);
        self.hold_for(now, task, "others are launched and it is not", effects);
    }

    /// Holds a task that waits, for a reason that its owner has to see to.
    pub(in crate::owner) fn hold_for(
        &mut self,
        now: Time,
        task: TaskId,
        why: &str,
        effects: &mut Vec<Effect>,
    ) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.held = true;
        let what = format!("held: {why}; `coloc release {task}` tries again");
        self.leave_core(now, task, effects);
        self.eligibility.look_at(task);
        self.pending.push(Entry::Story(task, StoryLine { at: self.clock.world_now(), what }));
        self.changed(task, None);
    }
}
