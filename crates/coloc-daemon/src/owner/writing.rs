//! Writing down: what happens is on the disk before a client or a task hears of it.

use super::{Live, Owner};
use crate::journal::{Entry, Trouble};
use crate::record::Intent;
use coloc_api::moment::Moment;
use coloc_api::view::StoryLine;
use coloc_model::TaskId;

/// What is wanted of a running task, if that is what an entry says.
fn told(entry: &Entry) -> Option<(TaskId, u32, Intent)> {
    match entry {
        Entry::Task(record) if record.phase.is_on_gpus() => {
            Some((record.id, record.attempt, record.intent?))
        }
        _ => None,
    }
}

/// The last line of a story.
pub(super) fn removed(task: TaskId, at: Moment) -> Entry {
    let what = "what it left, its log among it, was removed".to_owned();
    Entry::Story(task, StoryLine { at, what })
}

impl Owner {
    /// Puts what is pending on the disk. What cannot be written stays pending; says whether all is well.
    pub(super) fn flush(&mut self) -> bool {
        if self.pending.is_empty() && !self.disk_full {
            return true;
        }
        let now = self.clock.instant();
        let mut write = || match self.pending.is_empty() {
            // A write has to find out that there is room again.
            true => self.journal.try_to_write(),
            false => self.journal.write(&self.pending),
        };
        let written = match write() {
            Err(error)
                if error.trouble() == Trouble::DiskFull
                    && self.pending.iter().any(|entry| told(entry).is_some())
                    && self.reserve.release(now) =>
            {
                write()
            }
            written => written,
        };
        let took = self.clock.instant().saturating_duration_since(now);
        self.counters.journal_written(took, written.is_ok());
        match written {
            Ok(()) => {
                self.log_stories();
                self.pending.clear();
                self.intent_file.are_kept(now);
                self.reserve.refill(now);
                self.disk_full = false;
                match self.trouble.take() {
                    Some(Trouble::DiskFull) => {
                        tracing::info!("there is room on the disk again");
                    }
                    Some(_) => tracing::info!("the journal can be written again"),
                    None => {}
                }
                true
            }
            Err(error) => {
                // Said once for each kind: a log on the same disk must not fill what room there is.
                self.disk_full = true;
                let trouble = error.trouble();
                if self.trouble.replace(trouble) != Some(trouble) {
                    tracing::error!("{error}");
                }
                self.forget_unwritten_submissions();
                self.intent_file.note(self.pending.iter().filter_map(told));
                false
            }
        }
    }

    /// What happened to tasks, one line each, now that it is on the disk.
    fn log_stories(&self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let mut written = None;
        for entry in &self.pending {
            let (task, line) = match entry {
                Entry::Task(record) => {
                    written = Some(&**record);
                    continue;
                }
                Entry::Story(task, line) => (task, line),
                _ => continue,
            };
            // The line follows the row that it is about. A task that has ended is known by that alone.
            let row = written.filter(|record| record.id == *task);
            match row.or_else(|| self.tasks.get(task).map(|live| &live.record)) {
                Some(record) => tracing::info!(
                    task = task.0,
                    attempt = record.attempt,
                    uid = record.owner.0,
                    state = record.phase.name(),
                    "{}",
                    line.what
                ),
                None => tracing::info!(task = task.0, "{}", line.what),
            }
        }
    }

    /// What is wanted of a running task is on the disk, though the journal has no room for it.
    pub(super) fn is_noted(&self, task: TaskId) -> bool {
        let intent_file = |live: &Live| self.intent_file.of(task, live.record.attempt).is_some();
        self.tasks.get(&task).is_some_and(intent_file)
    }

    /// Why nothing can be written. A launch may have found a full disk before the journal did.
    pub(super) fn why_unwritten(&self) -> Trouble {
        self.trouble.unwrap_or(Trouble::DiskFull)
    }

    /// A task changed: it is written down, told, and its story gets a line.
    pub(super) fn changed(&mut self, task: TaskId, what: Option<String>) {
        self.note_promise(task);
        let Some(live) = self.tasks.get(&task) else { return };
        match live.record.phase.is_on_gpus() {
            true => self.on_gpus.insert(task),
            false => self.on_gpus.remove(&task),
        };
        self.pending.push(Entry::Task(Box::new(live.record.clone())));
        if let Some(what) = what {
            let by = self.asked_by.filter(|by| *by != live.record.owner);
            let by = by.map(|by| format!(", by {}", crate::users::name(by))).unwrap_or_default();
            let what = what + &by;
            self.pending.push(Entry::Story(task, StoryLine { at: self.clock.world_now(), what }));
        }
        self.note_news(task);
    }
}
