//! What is seen of the work on one GPU since the last task came or went: by all, and by each task.

use super::ledger::{Booking, GpuState};
use coloc_model::{GpuSignal, Millis, TaskId, Time};

/// A look at activity tells of the time before it, and a task that comes has to get to work: the first seconds of a
/// crowd say more of the one before.
pub(crate) const LAG: Millis = Millis::from_secs(15);

/// A crowd that was watched so long has shown what it asks of the device.
const WATCHED: Millis = Millis::from_secs(60);

/// SM activity of one task, as a mean since the crowd on its GPU last changed.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct OwnActivity {
    level: Option<f64>,
    /// Activity times seconds, up to `since`.
    seconds: f64,
    since: Time,
}

impl OwnActivity {
    fn seconds_until(&self, now: Time, from: Time) -> f64 {
        self.level.unwrap_or(0.0) * now.since(self.since.max(from)).secs()
    }
}

impl Booking {
    /// SM activity that is the task's own, where a monitor can tell.
    pub fn own_activity(&self) -> Option<f64> {
        self.own.level
    }
}

impl GpuState {
    /// SM demand on it: what is expected of its tasks, or what it is seen to do if that is more.
    pub(crate) fn demand(&self) -> f64 {
        self.load.max(self.seen_load)
    }

    pub(crate) fn see(&mut self, now: Time, signal: GpuSignal) {
        self.sm_seconds += self.sm_seconds_until(now);
        self.sm_since = now;
        self.signal = signal;
        if now.since(self.crowd_changed) >= WATCHED {
            self.seen_load = self.mean_sm_of_crowd(now);
        }
        if let Some(window) = &mut self.window {
            window.record(now, signal.activity);
        }
    }

    /// Mean SM activity since the last task came or went, and what a monitor saw was of the time since.
    pub(crate) fn mean_sm_of_crowd(&self, now: Time) -> f64 {
        let span = now.since(self.crowd_changed + LAG).secs();
        if span == 0.0 {
            return self.signal.activity.sm.get();
        }
        (self.sm_seconds + self.sm_seconds_until(now)) / span
    }

    /// A monitor saw what a task does itself, or could not tell.
    pub(crate) fn see_own(&mut self, now: Time, task: TaskId, level: Option<f64>) {
        let from = self.crowd_changed + LAG;
        let index = self.index_of(task);
        let own = &mut self.residents[index].own;
        own.seconds += own.seconds_until(now, from);
        *own = OwnActivity { level, since: now, ..*own };
    }

    /// Mean SM activity of a task's own since the crowd last changed.
    pub(crate) fn mean_own(&self, now: Time, booking: &Booking) -> Option<f64> {
        let from = self.crowd_changed + LAG;
        let level = booking.own.level?;
        let span = now.since(from).secs();
        if span == 0.0 {
            return Some(level);
        }
        Some((booking.own.seconds + booking.own.seconds_until(now, from)) / span)
    }

    /// SM activity times seconds since it was last summed up.
    fn sm_seconds_until(&self, now: Time) -> f64 {
        let since = self.sm_since.max(self.crowd_changed + LAG);
        self.signal.activity.sm.get() * now.since(since).secs()
    }

    pub(crate) fn watch_anew(&mut self, now: Time) {
        self.crowd_changed = now;
        self.sm_seconds = 0.0;
        self.sm_since = now;
        self.seen_load = 0.0;
        for booking in &mut self.residents {
            (booking.own.seconds, booking.own.since) = (0.0, now);
        }
    }
}
