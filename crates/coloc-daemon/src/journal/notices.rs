//! Notices that hooks have not been told of yet.

use super::table::{FACTS, NOTICES, Work, number, text};
use super::{Journal, JournalError, json, parse};
use crate::notices::Notice;

/// The number of the next notice: no two notices have the same, so that receivers can tell them apart.
const NEXT: &str = "next_notice";

pub(super) fn write(work: &mut Work<'_>, notice: &Notice) -> Result<(), JournalError> {
    let next = work.number(&FACTS, "value", text(NEXT))?.unwrap_or(1).max(notice.id as i64 + 1);
    work.put(&FACTS, &[text(NEXT), number(next)])?;
    work.put(&NOTICES, &[number(notice.id as i64), text(&json(notice))])
}

pub(super) fn forget(work: &mut Work<'_>, id: u64) -> Result<(), JournalError> {
    work.remove(&NOTICES, number(id as i64))
}

impl Journal {
    /// The number of the next notice.
    pub(super) fn next_notice(&self) -> Result<u64, JournalError> {
        Ok(self.fact(NEXT)?.map_or(1, |next| next.max(1) as u64))
    }

    /// All of them, the oldest first.
    pub(super) fn notices(&self) -> Result<Vec<Notice>, JournalError> {
        let mut statement = self.db.prepare(&self.query(&NOTICES, "ORDER BY id"))?;
        let rows = statement.query_map([], |row| self.verified::<String>(&NOTICES, row, 1))?;
        rows.map(|row| row?.and_then(|body| parse("a notice", &body))).collect()
    }
}
