//! Tasks that have ended while the journal cannot be written. They are told from memory until their ends are on the disk: after
//! a crash the same is read again from what their shims left.

use super::{Owner, Shown, whole_view};
use crate::journal::Entry;
use crate::record::Record;
use coloc_api::view::{StoryLine, TaskView};
use coloc_model::TaskId;
use std::collections::BTreeMap;

impl Owner {
    /// Tasks that have ended, without a row in the journal that says so.
    pub(super) fn unwritten_ends(&self) -> Vec<Record> {
        if !self.disk_full {
            return Vec::new();
        }
        let mut ends: BTreeMap<TaskId, &Record> = BTreeMap::new();
        for entry in &self.pending {
            if let Entry::Task(record) = entry
                && record.phase.is_over()
            {
                ends.insert(record.id, record);
            }
        }
        ends.into_values().cloned().collect()
    }

    /// The same for a list.
    pub(super) fn unwritten_views(&self) -> Vec<TaskView> {
        let view =
            |record: &Record| Some(whole_view(record, &self.journal.spec(record.spec).ok()?));
        self.unwritten_ends().iter().filter_map(view).collect()
    }

    /// One of them in full.
    pub(super) fn shown_unwritten(&self, task: TaskId) -> Option<Shown> {
        let record = self.unwritten_ends().into_iter().find(|record| record.id == task)?;
        let spec = self.journal.spec(record.spec).ok()?;
        let mut shown = Shown::new(&record, &spec, self.executor.output(&record, &spec));
        let detail = &mut shown.detail;
        detail.story = self.journal.story(task).unwrap_or_default();
        detail.attempts_list = self.journal.attempts(task).unwrap_or_default();
        detail.decisions = self.journal.decisions(task).unwrap_or_default();
        for entry in &self.pending {
            match entry {
                Entry::Story(about, line) if *about == task => detail.story.push(line.clone()),
                Entry::Attempt(ended) if ended.task == task => {
                    detail.attempts_list.push(ended.view.clone());
                }
                _ => {}
            }
        }
        let what = format!("its end is not written down yet: {}", self.why_unwritten());
        detail.story.push(StoryLine { at: self.clock.world_now(), what });
        Some(shown)
    }
}
