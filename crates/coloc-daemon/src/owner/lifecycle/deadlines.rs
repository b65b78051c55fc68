//! When attempts are to be looked at, by the monotonic clock.

use coloc_model::TaskId;
use std::collections::BTreeMap;
use std::time::Instant;

/// At most one moment for each task.
#[derive(Default, Debug)]
pub(in crate::owner) struct Deadlines {
    by_time: BTreeMap<(Instant, TaskId), u32>,
    by_task: BTreeMap<TaskId, Instant>,
}

impl Deadlines {
    /// Looks at an attempt at this moment, or at an earlier one that was said before. Another attempt's does not count.
    pub(in crate::owner) fn no_later_than(&mut self, at: Instant, task: TaskId, attempt: u32) {
        let before = self.by_task.get(&task).and_then(|&known| {
            let same = self.by_time.get(&(known, task)) == Some(&attempt);
            same.then_some(known)
        });
        let at = before.map_or(at, |known| known.min(at));
        self.forget(task);
        self.by_task.insert(task, at);
        self.by_time.insert((at, task), attempt);
    }

    /// Nothing is to be looked at any more.
    pub(in crate::owner) fn forget(&mut self, task: TaskId) {
        if let Some(at) = self.by_task.remove(&task) {
            self.by_time.remove(&(at, task));
        }
    }

    /// The first moment.
    pub(in crate::owner) fn next(&self) -> Option<Instant> {
        self.by_time.keys().next().map(|&(at, _)| at)
    }

    /// Attempts whose moment has come. They are forgotten.
    pub(in crate::owner) fn due(&mut self, now: Instant) -> Vec<(TaskId, u32)> {
        let mut due = Vec::new();
        while let Some(entry) = self.by_time.first_entry()
            && entry.key().0 <= now
        {
            let ((_, task), attempt) = entry.remove_entry();
            self.by_task.remove(&task);
            due.push((task, attempt));
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_earliest_moment_of_an_attempt_counts() {
        let (mut all, now) = (Deadlines::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        all.no_later_than(at(5), TaskId(1), 1);
        all.no_later_than(at(9), TaskId(1), 1);
        all.no_later_than(at(3), TaskId(2), 1);
        assert_eq!(all.next(), Some(at(3)));
        all.no_later_than(at(8), TaskId(2), 2);
        assert_eq!(all.due(at(7)), [(TaskId(1), 1)], "another attempt has its own");
        assert_eq!(all.due(at(9)), [(TaskId(2), 2)]);
        assert_eq!(all.next(), None);
    }
}
