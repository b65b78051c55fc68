//! How everything stands, handed out so that another thread can make a forecast while the owner goes on.

use crate::clock::Clock;
use crate::owner::lifecycle::eligibility::{conditions, facts};
use crate::owner::{Live, Owner, Refused};
use crate::record::{Record, Uid};
use coloc_api::spec::TaskSpec;
use coloc_core::eligibility::{Conditions, Facts};
use coloc_core::{Effect, Scheduler};
use coloc_model::{Bytes, Millis, Placement, Task, TaskId, TaskState, Time};
use std::sync::Arc;

/// With more tasks than this the copy alone would keep the owner from its work.
const MOST_TASKS: usize = 20_000;

/// The scheduler and its tasks at one moment.
#[derive(Debug)]
pub struct Snapshot {
    /// The scheduler, with everything that it knows.
    pub scheduler: Scheduler,
    /// Its clock.
    pub clock: Clock,
    /// The moment.
    pub now: Time,
    /// When the scheduler wants to be woken.
    pub wake_at: Time,
    /// Why nothing new is started.
    pub stands_still: Option<&'static str>,
    /// Every task that has not ended, by id.
    pub tasks: Vec<TaskSnapshot>,
}

/// Where a task stands.
#[derive(Debug)]
pub struct TaskSnapshot {
    /// As the scheduler knows it, or will.
    pub task: Task,
    /// What was submitted.
    pub spec: Arc<TaskSpec>,
    /// On GPUs or not.
    pub phase: TaskState,
    /// Since when it is on its GPUs.
    pub started: Option<Time>,
    /// Where it is or is about to be; `None` while it waits.
    pub placement: Option<Placement>,
    /// The scheduler knows it.
    pub in_core: bool,
    /// The user who submitted it.
    pub owner: Uid,
    /// What it waits for before the scheduler hears of it.
    pub conditions: Conditions,
    /// How others that wait for it see it.
    pub facts: Facts,
    /// The most memory that was seen of it.
    pub peak: Bytes,
    /// How long it still takes, by what its log tells of its progress.
    pub left: Option<Millis>,
}

impl Owner {
    pub(in crate::owner) fn snapshot(&mut self, now: Time) -> Result<Snapshot, Refused> {
        if self.tasks.len() > MOST_TASKS {
            return Err(Refused::TooManyToForecast { tasks: self.tasks.len(), most: MOST_TASKS });
        }
        let ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        let tasks = ids.into_iter().filter_map(|task| self.standing(now, task)).collect();
        let stands_still = match (self.draining, self.disk_full) {
            (true, _) => Some("the daemon is draining"),
            (_, true) => Some("the disk is full, or the journal cannot be written"),
            _ => None,
        };
        Ok(Snapshot {
            scheduler: self.scheduler.clone(),
            clock: self.clock,
            now,
            wake_at: self.wake_at,
            stands_still,
            tasks,
        })
    }

    /// What is left of a task's run, by its log: the same as lists of tasks say.
    fn time_left(&self, record: &Record) -> Option<Millis> {
        let seconds = self.progress(record)?.eta_s? * self.clock.scale();
        Some(Millis::from_secs_f64(seconds))
    }

    fn standing(&mut self, now: Time, id: TaskId) -> Option<TaskSnapshot> {
        let task = self.as_core_task(id)?;
        let Live { record, spec, in_core, .. } = self.tasks.get(&id)?;
        // Another task is still in the way of a launch that was decided.
        let deferred = || {
            self.deferred.iter().find_map(|wish| match wish {
                Effect::Launch { task, placement } if *task == id => Some(placement.clone()),
                _ => None,
            })
        };
        let there = matches!(record.phase, TaskState::Launching | TaskState::Running);
        let placement = if there { record.placement.clone() } else { deferred() };
        let started = record.started.filter(|_| record.phase == TaskState::Running);
        Some(TaskSnapshot {
            task,
            spec: spec.clone(),
            phase: record.phase,
            started: placement.is_some().then(|| started.map_or(now, |at| self.clock.time(at))),
            placement,
            in_core: *in_core,
            owner: record.owner,
            conditions: conditions(record, spec, &self.clock),
            facts: facts(record, &self.clock),
            peak: record.peak,
            left: self.time_left(record),
        })
    }
}
