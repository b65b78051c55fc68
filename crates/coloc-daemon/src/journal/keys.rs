//! Keys that clients give submissions, so that one which is sent twice counts once.

use super::table::{KEYS, Work, number, text};
use super::{Journal, JournalError};
use crate::record::Uid;
use coloc_api::moment::Moment;
use coloc_model::TaskId;
use rusqlite::{OptionalExtension, params};

/// A key is good for a week.
const LASTS_MS: u64 = 7 * 24 * 3600 * 1000;

/// A submission with a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keyed {
    /// Whose: one user's keys are not another's.
    pub owner: Uid,
    /// The key.
    pub key: String,
    /// When it was submitted.
    pub at: Moment,
    /// Its first task.
    pub first: TaskId,
    /// How many it has.
    pub count: u32,
}

impl Keyed {
    /// Its tasks.
    pub(crate) fn tasks(first: TaskId, count: u32) -> Vec<TaskId> {
        (first.0..first.0.saturating_add(count)).map(TaskId).collect()
    }
}

pub(super) fn write(work: &mut Work<'_>, keyed: &Keyed) -> Result<(), JournalError> {
    let Keyed { owner, key, at, first, count } = keyed;
    let at = number(at.0 as i64);
    work.put(&KEYS, &[number(owner.0), text(key), at, number(first.0), number(*count)])
}

impl Journal {
    /// The tasks that were submitted with a key, if any were within a week.
    pub fn keyed(
        &self,
        owner: Uid,
        key: &str,
        now: Moment,
    ) -> Result<Option<Vec<TaskId>>, JournalError> {
        let query = "SELECT first, count FROM keys WHERE owner = ?1 AND key = ?2 AND at_ms >= ?3";
        let mut statement = self.db.prepare_cached(query)?;
        let oldest = now.0.saturating_sub(LASTS_MS) as i64;
        let found = statement.query_row(params![owner.0, key, oldest], |row| {
            Ok(Keyed::tasks(TaskId(row.get(0)?), row.get(1)?))
        });
        Ok(found.optional()?)
    }

    /// After so long, nothing is sent again.
    pub(super) fn forget_old_keys(&mut self, now: Moment) -> Result<(), JournalError> {
        let oldest = now.0.saturating_sub(LASTS_MS) as i64;
        let query = "SELECT EXISTS (SELECT 1 FROM keys WHERE at_ms < ?1)";
        if self.db.query_row(query, [oldest], |row| row.get::<_, bool>(0))? {
            self.transact(|work, _| work.remove_below(&KEYS, "at_ms", oldest))?;
        }
        Ok(())
    }
}
