//! What the daemon wants of running tasks: on the disk before a signal goes out, and carried on by a restart.

use crate::executor::StopRequest;
use crate::owner::{Ending, Live, Owner};
use crate::record::{Intent, Record};
use coloc_model::{Millis, TaskId, TaskState};
use std::time::Duration;

/// A task that loses its GPU more often ends as lost: perhaps it is to blame after all.
pub(in crate::owner) const MOST_LOSSES: u32 = 5;
/// A shim that does its work has it done this long after the grace.
const SLACK: Duration = Duration::from_secs(3);
/// An attempt's time begins a little before its start is noted.
const LAUNCH: Duration = Duration::from_millis(200);
/// A task that was killed and is still there is killed again after this long.
const AGAIN: Duration = Duration::from_secs(10);

impl Intent {
    /// What becomes of a task that goes because of it; `None` where the way in which it ended decides.
    pub(in crate::owner) fn ending(self, record: &Record) -> Option<Ending> {
        match self {
            _ if record.cancelled => Some(Ending::Over(TaskState::Cancelled)),
            Intent::Cancel => Some(Ending::Over(TaskState::Cancelled)),
            Intent::Requeue | Intent::Preempt => Some(Ending::Again),
            Intent::TimeLimit | Intent::Idle => Some(Ending::Over(TaskState::TimedOut)),
            Intent::Loss if record.losses > MOST_LOSSES => Some(Ending::Over(TaskState::Lost)),
            Intent::Loss => Some(Ending::Again),
            Intent::Memory => None,
        }
    }
}

impl Owner {
    /// Records what is wanted of a running task. It is told once that is on the disk.
    pub(in crate::owner) fn intend(&mut self, task: TaskId, intent: Intent, what: String) {
        let Some(live) = self.tasks.get_mut(&task) else { return };
        live.record.want(intent);
        live.ending = intent.ending(&live.record);
        self.changed(task, Some(what));
    }

    /// A running task is to go, because of an intent that was written down. One whose attempt has ended meanwhile stays
    /// where it is: its next attempt is not meant.
    pub(in crate::owner) fn stop(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get(&task).filter(|live| live.record.phase.is_on_gpus()) else {
            return;
        };
        // A task that runs again goes on from what it saves now.
        let intent = live.record.intent;
        let again = live.ending == Some(Ending::Again) || intent == Some(Intent::Preempt);
        let has_saved = intent == Some(Intent::Requeue) && self.has_heard_its_signal(live);
        let request =
            if again && !has_saved { StopRequest::AfterWarning } else { StopRequest::AtOnce };
        self.to_stop.push((task, live.record.attempt, request));
    }

    /// The same for a task that is told to go already, and now without the time that it would have had.
    pub(in crate::owner) fn stop_at_once(&mut self, task: TaskId) {
        if let Some(live) = self.tasks.get(&task).filter(|live| live.record.phase.is_on_gpus()) {
            self.to_stop.push((task, live.record.attempt, StopRequest::AtOnce));
        }
    }

    /// The signal that a task wants to hear before its time limit was due. One that is requeued after it has saved its
    /// work: that is how scripts go on from a checkpoint.
    fn has_heard_its_signal(&self, live: &Live) -> bool {
        let due = live.spec.time_limit.zip(live.spec.warning).map(|(limit, warning)| {
            self.clock.world(Millis(limit.0.saturating_sub(warning.before.0)))
        });
        let now = self.clock.world_now();
        let ran = live.record.started.map_or(0, |started| now.0.saturating_sub(started.0));
        due.is_some_and(|due| Duration::from_millis(ran) + LAUNCH >= due)
    }

    /// Sends the signals whose reasons are on the disk: all if the journal was written, else those of tasks whose
    /// reasons are in the intent file.
    pub(in crate::owner) fn send_signals(&mut self, written: bool) {
        #[cfg(test)]
        let written = written
            || crate::owner::kit::is_sabotaged(crate::owner::kit::Sabotage::SignalUnwritten);
        if written {
            self.send_limits();
            for (task, attempt, request) in std::mem::take(&mut self.to_signal) {
                let live = self.tasks.get(&task).filter(|live| live.runs_attempt(attempt));
                if let Some(live) = live {
                    self.executor.signal(&live.record, request);
                }
            }
        }
        for (task, attempt, request) in std::mem::take(&mut self.to_stop) {
            let live = self.tasks.get(&task).filter(|live| live.runs_attempt(attempt));
            let Some(live) = live else { continue };
            if !written && !self.is_noted(task) {
                self.to_stop.push((task, attempt, request));
                continue;
            }
            debug_assert!(self.is_written_down(task), "a signal for task {task} without a row");
            self.executor.stop(&live.record, request);
            let timeout = self.executor.longest_stop(&live.spec, request) + self.longest_epilog();
            self.overdue.no_later_than(self.clock.instant() + timeout, task, attempt);
        }
    }

    /// The journal knows why a task is told to go.
    fn is_written_down(&self, task: TaskId) -> bool {
        let written = self.journal.task(task).ok().flatten();
        written.is_some_and(|record| record.intent.is_some()) || self.is_noted(task)
    }

    /// How long an attempt may take beyond its grace, with its epilog.
    fn longest_epilog(&self) -> Duration {
        SLACK + self.settings.administration.hooks.longest_epilog()
    }

    /// From its time limit on a task is not left to its shim alone, which the task may have stopped.
    pub(in crate::owner) fn mind_time_limit(&mut self, task: TaskId) {
        let Some(live) = self.tasks.get(&task) else { return };
        let Some(limit) = live.spec.time_limit else { return };
        let now = self.clock.world_now();
        let ran = live.record.started.map_or(0, |started| now.0.saturating_sub(started.0));
        let left = self.clock.world(limit).saturating_sub(Duration::from_millis(ran));
        let timeout = left + Duration::from_millis(self.settings.grace.0) + self.longest_epilog();
        self.overdue.no_later_than(self.clock.instant() + timeout, task, live.record.attempt);
    }

    /// Kills tasks that are still there although they had to be gone.
    pub(in crate::owner) fn kill_the_overdue(&mut self) {
        let due = self.overdue.due(self.clock.instant());
        let due: Vec<(TaskId, u32)> = due
            .into_iter()
            .filter(|(task, attempt)| {
                let live = self.tasks.get(task);
                live.is_some_and(|l| l.record.attempt == *attempt && l.record.phase.is_on_gpus())
            })
            .collect();
        for &(task, _) in &due {
            let intent = self.tasks.get(&task).and_then(|live| live.record.intent);
            let what = "did not go by itself, and is killed";
            self.intend(task, intent.unwrap_or(Intent::TimeLimit), what.to_owned());
        }
        if due.is_empty() {
            return;
        }
        // What cannot be written down is tried again: a signal never goes before its reason.
        let written = self.flush();
        for (task, attempt) in due {
            if let Some(live) = self.tasks.get(&task).filter(|_| written || self.is_noted(task)) {
                self.executor.kill(&live.record);
            }
            self.overdue.no_later_than(self.clock.instant() + AGAIN, task, attempt);
        }
    }
}
