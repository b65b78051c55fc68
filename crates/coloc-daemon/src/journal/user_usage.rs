//! How much of the journal each user's submissions take.

use super::table::{SHARES, SPECS, Work, number, text};
use super::{Journal, JournalError, json};
use crate::record::{SpecId, Uid};
use coloc_api::spec::TaskSpec;

/// A user's submissions take more, or less.
pub(super) fn keep(work: &mut Work<'_>, owner: Uid, bytes: i64) -> Result<(), JournalError> {
    let before = work.number(&SHARES, "bytes", number(owner.0))?.unwrap_or(0);
    let after = before.saturating_add(bytes).max(0);
    work.put(&SHARES, &[number(owner.0), number(after)])
}

/// A submission has become smaller, or is of no use any more.
pub(super) fn respec(
    work: &mut Work<'_>,
    id: SpecId,
    spec: Option<&TaskSpec>,
) -> Result<(), JournalError> {
    match spec {
        Some(spec) => work.put(&SPECS, &[number(id.0), text(&json(spec))]),
        None => work.remove(&SPECS, number(id.0)),
    }
}

impl Journal {
    /// What the submissions of each user take.
    pub(super) fn user_usage(&self) -> Result<Vec<(Uid, u64)>, JournalError> {
        let mut statement = self.db.prepare(&self.query(&SHARES, "ORDER BY owner"))?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, self.verified::<i64>(&SHARES, row, 1)?)))?;
        let mut user_usage = Vec::new();
        for row in rows {
            let (owner, bytes): (u32, Result<i64, JournalError>) = row?;
            user_usage.push((Uid(owner), bytes?.max(0) as u64));
        }
        Ok(user_usage)
    }
}
