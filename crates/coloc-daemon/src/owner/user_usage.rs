//! What each user has of the daemon: tasks that have not ended, and room in the journal.
//!
//! What a task was started with, its environment and script, is kept until the last task of its submission has ended, and
//! then given back: the story of a task needs its command alone.

use super::{Caller, Owner, Refused};
use crate::bounds;
use crate::journal::Entry;
use crate::record::{Record, SpecId, Uid};
use coloc_api::spec::TaskSpec;
use coloc_model::Bytes;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// To write a submission again takes as long as to write this much. What is smaller stays where it is, off the account: it is
/// no more than the rest of what is kept of a task for ever.
const WORTH_WRITING: i64 = 4 << 10;

/// What users have.
#[derive(Default, Debug)]
pub(super) struct UserUsage {
    by_user: FxHashMap<Uid, Share>,
    /// Tasks that have not ended, by submission.
    in_use: FxHashMap<SpecId, u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Share {
    tasks: usize,
    /// Bytes of submissions in the journal.
    kept: u64,
}

impl UserUsage {
    /// What an earlier daemon kept for users.
    pub(super) fn of(kept: Vec<(Uid, u64)>) -> Self {
        let by_user = kept.into_iter().map(|(uid, kept)| (uid, Share { tasks: 0, kept }));
        UserUsage { by_user: by_user.collect(), in_use: FxHashMap::default() }
    }

    /// A task is there.
    pub(super) fn came(&mut self, record: &Record) {
        self.many_came(record, 1);
    }

    /// So many tasks like this one are there.
    pub(super) fn many_came(&mut self, record: &Record, count: u32) {
        self.by_user.entry(record.owner).or_default().tasks += count as usize;
        *self.in_use.entry(record.spec).or_default() += count;
    }

    /// A task is gone. Says whether it was the last of its submission.
    fn went(&mut self, record: &Record) -> bool {
        if let Some(share) = self.by_user.get_mut(&record.owner) {
            share.tasks = share.tasks.saturating_sub(1);
        }
        self.let_go(record.spec)
    }

    /// A task has another submission. Says whether the old one is of no use any more.
    fn let_go(&mut self, spec: SpecId) -> bool {
        let Some(users) = self.in_use.get_mut(&spec) else { return false };
        *users -= 1;
        if *users == 0 {
            self.in_use.remove(&spec);
            return true;
        }
        false
    }

    fn keep(&mut self, owner: Uid, change: i64) {
        let share = self.by_user.entry(owner).or_default();
        share.kept = share.kept.saturating_add_signed(change);
    }

    fn of_user(&self, owner: Uid) -> Share {
        self.by_user.get(&owner).copied().unwrap_or_default()
    }
}

impl Owner {
    /// Whether a user may have so many more tasks, by a submission of this size.
    pub(super) fn has_room(
        &self,
        caller: Caller,
        tasks: usize,
        spec: &TaskSpec,
    ) -> Result<(), Refused> {
        let (share, bounds) = (self.user_usage.of_user(caller.uid), self.settings.bounds);
        if tasks > bounds.tasks.min(bounds.pending) {
            let (most, flag) = match bounds.tasks <= bounds.pending {
                true => (bounds.tasks, "--max-user-tasks"),
                false => (bounds.pending, "--max-user-pending"),
            };
            return Err(Refused::OverLimit(format!(
                "the array has {tasks} tasks, and a user may have {most} ({flag}): submit it in parts of {most} or less"
            )));
        }
        if tasks > 0 && share.tasks + tasks > bounds.tasks {
            return Err(Refused::OverLimit(format!(
                "you have {} tasks that have not ended, and may have {} (--max-user-tasks): wait until some end, or \
                 cancel some",
                share.tasks, bounds.tasks
            )));
        }
        let running = self.at_work().filter(|live| live.record.owner == caller.uid).count();
        let waiting = share.tasks.saturating_sub(running);
        if tasks > 0 && waiting + tasks > bounds.pending {
            return Err(Refused::OverLimit(format!(
                "you have {waiting} tasks that wait, and may have {} (--max-user-pending): submit the others when some have \
                 started, or cancel some",
                bounds.pending
            )));
        }
        self.has_room_in_journal(caller.uid, spec)
    }

    /// Whether the journal may keep this for a user.
    pub(super) fn has_room_in_journal(&self, owner: Uid, spec: &TaskSpec) -> Result<(), Refused> {
        let (share, bounds) = (self.user_usage.of_user(owner), self.settings.bounds);
        if share.kept + bounds::size(spec) <= bounds.journal.0 {
            return Ok(());
        }
        Err(Refused::OverLimit(format!(
            "your submissions take {} of the journal, and may take {} (--max-user-journal): environments and scripts \
             are given back when tasks end, arrays need one for all their tasks, and --export passes less environment",
            Bytes(share.kept),
            bounds.journal
        )))
    }

    /// Writes a submission down on a user's account.
    pub(super) fn keep_spec(&mut self, owner: Uid, id: SpecId, spec: Arc<TaskSpec>) {
        let bytes = bounds::size(&spec) as i64;
        self.user_usage.keep(owner, bytes);
        self.pending.push(Entry::Spec(id, spec));
        self.pending.push(Entry::Kept { owner, spec: id, bytes });
    }

    /// A submission that was not written down takes no room.
    pub(super) fn was_not_kept(&mut self, owner: Uid, bytes: i64) {
        self.user_usage.keep(owner, -bytes);
    }

    /// A task has ended: what only starting it needed is given back.
    pub(super) fn give_back(&mut self, record: &Record, spec: &TaskSpec) {
        if self.user_usage.went(record) {
            self.trim(record.owner, record.spec, spec);
        }
    }

    /// Of a submission that no task will be started with only what stories need is kept.
    fn trim(&mut self, owner: Uid, id: SpecId, spec: &TaskSpec) {
        self.no_longer_current(id);
        let trimmed = spec.trimmed();
        let bytes = bounds::size(&trimmed) as i64 - bounds::size(spec) as i64;
        if bytes < 0 {
            self.charge(owner, id, bytes);
        }
        if bytes < -WORTH_WRITING {
            self.pending.push(Entry::Respec(id, Some(Arc::new(trimmed))));
        }
    }

    /// A task was given another submission in place of what it had. That one goes, unless others of its array have it;
    /// of an array's some is kept, since tasks of it that have ended had it.
    pub(super) fn replaced(&mut self, record: &Record, old: SpecId, spec: &TaskSpec) {
        *self.user_usage.in_use.entry(record.spec).or_default() += 1;
        if !self.user_usage.let_go(old) {
            return;
        }
        if record.array.is_some() {
            return self.trim(record.owner, old, spec);
        }
        self.no_longer_current(old);
        self.charge(record.owner, old, -(bounds::size(spec) as i64));
        self.pending.push(Entry::Respec(old, None));
    }

    fn charge(&mut self, owner: Uid, spec: SpecId, bytes: i64) {
        self.user_usage.keep(owner, bytes);
        self.pending.push(Entry::Kept { owner, spec, bytes });
    }

    /// A task that never was takes no room.
    pub(super) fn never_was(&mut self, record: &Record) {
        self.user_usage.went(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::moment::Moment;
    use coloc_model::TaskId;

    #[test]
    fn the_last_of_a_submission_gives_its_room_back() {
        let record = |id, spec| Record::new(TaskId(id), SpecId(spec), Uid(7), Moment(0));
        let mut user_usage = UserUsage::of(vec![(Uid(7), 100)]);
        (1..=3).for_each(|id| user_usage.came(&record(id, 1)));
        user_usage.keep(Uid(7), 50);
        assert_eq!(user_usage.of_user(Uid(7)), Share { tasks: 3, kept: 150 });
        assert!(!user_usage.went(&record(1, 1)));
        assert!(!user_usage.went(&record(2, 1)));
        assert!(user_usage.went(&record(3, 1)), "the last");
        user_usage.keep(Uid(7), -999);
        assert_eq!(
            user_usage.of_user(Uid(7)),
            Share::default(),
            "an older journal was not counted"
        );
        assert!(!user_usage.went(&record(4, 9)), "a submission that is not known");
    }
}
