//! Keys that clients give submissions, so that one which is sent twice counts once.

use super::{Journal, JournalError};
use crate::record::{Moment, Uid};
use coloc_model::TaskId;
use rusqlite::{Connection, OptionalExtension, params};

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

pub(super) fn write(db: &Connection, keyed: &Keyed) -> Result<(), JournalError> {
    let query =
        "INSERT OR REPLACE INTO keys (owner, key, at_ms, first, count) VALUES (?1, ?2, ?3, ?4, ?5)";
    let Keyed { owner, key, at, first, count } = keyed;
    db.prepare_cached(query)?.execute(params![owner.0, key, at.0 as i64, first.0, count])?;
    Ok(())
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

    /// Nobody sends anything again after so long.
    pub(super) fn forget_old_keys(&self, now: Moment) -> Result<(), JournalError> {
        let oldest = now.0.saturating_sub(LASTS_MS);
        self.db.execute("DELETE FROM keys WHERE at_ms < ?1", [oldest as i64])?;
        Ok(())
    }
}
