//! Telling listeners what has changed, once it is on the disk: a change of a task that a crash could take back is told to no one.

use super::Owner;
use crate::journal::Entry;
use coloc_api::view::{
    DecisionNews, GpuFrame, GpuView, ResidentFrame, SampleFrame, StatusNews, TaskView,
};
use coloc_model::{TaskId, Time};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Changes of one task within this time are one event.
const COALESCED: Duration = Duration::from_millis(50);
/// More tasks that change at once are not told one by one.
const MOST_AT_ONCE: usize = 2048;
/// How the daemon is, and what the monitor saw, is told this often at most. A little less than a second: the monitor looks once a
/// second, and no look is to be left out.
const SECOND: Duration = Duration::from_millis(950);

/// What has happened and was not told yet.
#[derive(Default, Debug)]
pub(super) struct Untold {
    /// Tasks that changed, with the last view of those that are gone.
    tasks: BTreeMap<TaskId, Option<Box<TaskView>>>,
    /// They were too many to tell.
    overflow: bool,
    decisions: Vec<DecisionNews>,
    /// When tasks, how the daemon is, and what the monitor saw was told last.
    told_at: Option<Instant>,
    status_at: Option<Instant>,
    sampled_at: Option<Instant>,
    /// How the daemon was then.
    status: Option<StatusNews>,
}

impl Untold {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty() && !self.overflow && self.decisions.is_empty()
    }

    fn forget(&mut self) {
        self.tasks.clear();
        self.decisions.clear();
        self.overflow = false;
    }
}

fn is_due(last: Option<Instant>, span: Duration, now: Instant) -> bool {
    last.is_none_or(|last| now.saturating_duration_since(last) >= span)
}

impl Owner {
    /// A task is not as it was told.
    pub(super) fn note_news(&mut self, task: TaskId) {
        let untold = &mut self.untold;
        if untold.overflow {
            return;
        }
        untold.tasks.entry(task).or_default();
        if untold.tasks.len() > MOST_AT_ONCE {
            untold.forget();
            untold.overflow = true;
        }
    }

    /// A task is about to be forgotten: what listeners hear of it is worked out now.
    pub(super) fn note_last_news(&mut self, task: TaskId) {
        if self.untold.overflow || !self.news.is_heard(self.clock.instant()) {
            return self.note_news(task);
        }
        let view = self.tasks.get(&task).map(|live| Box::new(self.view(live)));
        self.note_news(task);
        if let Some(untold) = self.untold.tasks.get_mut(&task) {
            *untold = view;
        }
    }

    /// A task was decided about.
    pub(super) fn note_decision(&mut self, decision: DecisionNews) {
        if self.news.is_heard(self.clock.instant()) && self.untold.decisions.len() < MOST_AT_ONCE {
            self.untold.decisions.push(decision);
        }
    }

    /// How long until there is something to tell.
    pub(super) fn until_news(&self) -> Option<Duration> {
        if self.untold.is_empty() || self.disk_full {
            return None;
        }
        let now = self.clock.instant();
        let since = |at: Instant| COALESCED.saturating_sub(now.saturating_duration_since(at));
        Some(self.untold.told_at.map_or(Duration::ZERO, since))
    }

    /// Tells what has changed and is on the disk.
    pub(super) fn tell_news(&mut self, now: Time) {
        let instant = self.clock.instant();
        if !self.news.is_heard(instant) {
            if !self.untold.is_empty() {
                self.untold.forget();
                self.news.skip();
            }
            return;
        }
        if !self.untold.is_empty() && is_due(self.untold.told_at, COALESCED, instant) {
            // An attempt that began a moment ago is in memory only.
            let about_tasks = |entry: &Entry| matches!(entry, Entry::Task(_) | Entry::Array(_));
            if self.pending.iter().any(about_tasks) && !self.flush() {
                return;
            }
            self.untold.told_at = Some(instant);
            self.tell_tasks(now);
        }
        if is_due(self.untold.status_at, SECOND, instant) {
            self.untold.status_at = Some(instant);
            self.tell_status();
        }
    }

    fn tell_tasks(&mut self, now: Time) {
        let untold = std::mem::take(&mut self.untold.tasks);
        if std::mem::take(&mut self.untold.overflow) {
            self.untold.decisions.clear();
            return self.news.missed();
        }
        self.find_codes(now, untold.keys().copied());
        for (task, gone) in untold {
            match (self.tasks.get(&task), gone) {
                (Some(live), _) => self.news.task(&self.view(live)),
                (None, Some(view)) => self.news.task(&view),
                // It came and went while no listener was there.
                (None, None) => self.news.missed(),
            }
        }
        self.untold.decisions.drain(..).for_each(|decision| self.news.decision(&decision));
    }

    fn tell_status(&mut self) {
        let status = self.status_news();
        // Time and energy alone are no news.
        let same = |last: &StatusNews| {
            let StatusNews { now_s, energy_today_j, .. } = *last;
            StatusNews { now_s, energy_today_j, ..status.clone() } == *last
        };
        if !self.untold.status.as_ref().is_some_and(same) {
            self.news.status(&status);
            self.untold.status = Some(status);
        }
    }

    /// Shows what the monitor saw to listeners who want to see it.
    pub(super) fn tell_samples(&mut self, views: Vec<GpuView>) {
        let instant = self.clock.instant();
        if !self.news.wants_samples() || !is_due(self.untold.sampled_at, SECOND, instant) {
            return;
        }
        self.untold.sampled_at = Some(instant);
        let foreign = |gpu: u32| {
            let held = self.last_seen.foreign.iter().find(|(seen, _)| seen.0 == gpu);
            held.map_or(0, |(_, bytes)| bytes.0)
        };
        let gpus = views.into_iter().map(|gpu| GpuFrame {
            index: gpu.index,
            memory_used_bytes: gpu.memory_used_bytes,
            memory_promised_bytes: gpu.memory_promised_bytes,
            smact: gpu.smact,
            smocc: gpu.smocc,
            drama: gpu.drama,
            power_w: gpu.power_w,
            temperature_c: gpu.temperature_c,
            foreign_bytes: foreign(gpu.index),
            verdict: gpu.verdict,
            residents: gpu
                .residents
                .into_iter()
                .map(|resident| ResidentFrame {
                    id: resident.id,
                    used_bytes: resident.used_bytes,
                    promised_bytes: resident.promised_bytes,
                    sm_share: resident.sm_share,
                    slowdown: resident.slowdown,
                })
                .collect(),
        });
        let at_s = self.clock.world_now().secs();
        self.news.sample(&SampleFrame { at_s, gpus: gpus.collect() });
    }
}
