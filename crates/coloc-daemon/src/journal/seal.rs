//! The one row that vouches for all others: which journal this is, its last transaction, and the total of all checksums.
//!
//! A row that is missing, or is as it was before a later change, has a checksum that fits; the total does not.

use super::error::JournalError;
use super::mark::Identity;
use super::table::{self, Table, number, text};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Its columns; it is no table for others.
const SEAL: Table =
    Table::new("seal", 1, &["id", "identity", "sequence", "total", "least_task", "least_spec"]);

/// What is in the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seal {
    /// Which journal this is.
    pub(super) identity: Identity,
    /// How many transactions it had.
    pub(super) sequence: u64,
    /// The total of the checksums of all rows.
    pub(super) total: i64,
    /// New tasks have this id or a higher one.
    pub(super) least_task: u32,
    /// New submissions have this id or a higher one.
    pub(super) least_spec: u32,
}

impl Seal {
    /// Seals a journal of this version that had none: its rows have no checksums yet.
    pub(super) fn begin(
        db: &Connection,
        identity: Identity,
        version: u32,
    ) -> Result<(), JournalError> {
        let mut total = 0_i64;
        for table in table::all(version) {
            total = total.wrapping_add(table.sum_up(db)?);
        }
        Seal { identity, sequence: 1, total, least_task: 1, least_spec: 1 }.write(db)
    }

    pub(super) fn read(db: &Connection) -> Result<Self, JournalError> {
        let query = format!("SELECT {}, sum FROM seal", SEAL.list());
        let missing = || JournalError::damaged("the journal's seal is missing");
        let read = db.query_row(&query, [], |row| Ok(SEAL.verify(row).and_then(|_| seal(row))));
        read.optional()?.ok_or_else(missing)?
    }

    /// Writes it down. It is the last thing in a transaction.
    pub(super) fn write(&self, db: &Connection) -> Result<(), JournalError> {
        let identity = self.identity.to_string();
        let (sequence, total) = (self.sequence as i64, self.total);
        let sum = SEAL.sum([
            number(1),
            text(&identity),
            number(sequence),
            number(total),
            number(self.least_task),
            number(self.least_spec),
        ]);
        let query = format!(
            "INSERT OR REPLACE INTO seal ({}, sum) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)",
            SEAL.list()
        );
        let (task, spec) = (self.least_task, self.least_spec);
        db.prepare_cached(&query)?.execute(params![identity, sequence, total, task, spec, sum])?;
        Ok(())
    }
}

fn seal(row: &rusqlite::Row<'_>) -> Result<Seal, JournalError> {
    let identity: String = row.get(1)?;
    let unreadable = || JournalError::damaged("the journal's seal has no identity");
    Ok(Seal {
        identity: Identity::parse(&identity).ok_or_else(unreadable)?,
        sequence: row.get::<_, i64>(2)? as u64,
        total: row.get(3)?,
        least_task: row.get(4)?,
        least_spec: row.get(5)?,
    })
}
