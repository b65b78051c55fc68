//! The journal's tables, with a checksum in every row: SQLite takes whatever the disk gives back for what was written.

use super::error::JournalError;
use super::schema::SEALED_SINCE;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, OptionalExtension as _, Row, params_from_iter};

/// A table whose rows have a checksum in their last column, `sum`.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// Its columns but for the checksum, those of its key first.
    pub(super) columns: &'static [&'static str],
    /// How many make its key.
    key: usize,
    /// The first version of a journal with checksums that has it.
    since: u32,
}

pub(super) const FACTS: Table = Table::new("facts", 1, &["name", "value"]);
pub(super) const SPECS: Table = Table::new("specs", 1, &["id", "body"]);
pub(super) const TASKS: Table = Table::new("tasks", 1, &["id", "over", "ended_ms", "body"]);
pub(super) const STORY: Table = Table::new("story", 1, &["seq", "task", "at_ms", "what"]);
pub(super) const SETUPS: Table = Table::new("setups", 1, &["at_ms", "body"]);
pub(super) const LESSONS: Table = Table::new("lessons", 1, &["signature", "at_ms", "body"]);
pub(super) const KEYS: Table = Table::new("keys", 2, &["owner", "key", "at_ms", "first", "count"]);
pub(super) const GPUS: Table = Table::new("gpus", 1, &["uuid", "body"]);
pub(super) const SHARES: Table = Table::new("shares", 1, &["owner", "bytes"]);
pub(super) const ARRAYS: Table =
    Table::new("arrays", 1, &["first", "count", "body", "indices"]).since(6);

pub(super) const NOTICES: Table = Table::new("notices", 1, &["id", "body"]).since(7);
pub(super) const ATTEMPTS: Table =
    Table::new("attempts", 1, &["key", "task", "started_ms", "ended_ms", "body"]).since(8);
pub(super) const DECISIONS: Table = Table::new("decisions", 1, &["seq", "task", "body"]).since(8);
pub(super) const SERIES: Table = Table::new("series", 1, &["task", "at_ms", "body"]).since(8);

/// A table that is not here is not checked.
const ALL: [Table; 14] = [
    FACTS, SPECS, TASKS, STORY, SETUPS, LESSONS, KEYS, GPUS, SHARES, ARRAYS, NOTICES, ATTEMPTS,
    DECISIONS, SERIES,
];

/// All of them that a journal of this version has.
pub(super) fn all(version: u32) -> impl Iterator<Item = &'static Table> {
    ALL.iter().filter(move |table| table.is_in(version))
}

impl Table {
    pub(super) const fn new(
        name: &'static str,
        key: usize,
        columns: &'static [&'static str],
    ) -> Self {
        Table { name, columns, key, since: SEALED_SINCE }
    }

    const fn since(self, since: u32) -> Self {
        Table { since, ..self }
    }

    /// A journal of this version has it.
    pub(super) const fn is_in(&self, version: u32) -> bool {
        version >= self.since
    }

    /// The columns, as a query names them.
    pub(super) fn list(&self) -> String {
        self.columns.join(", ")
    }

    /// The condition that a row has this key.
    fn has_key(&self) -> String {
        let each = self.columns.iter().take(self.key).enumerate();
        each.map(|(at, column)| format!("{column} = ?{}", at + 1)).collect::<Vec<_>>().join(" AND ")
    }

    /// The checksum of a row.
    pub(super) fn sum<'v>(&self, values: impl IntoIterator<Item = ValueRef<'v>>) -> i64 {
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        hash.update(self.name.as_bytes());
        for value in values {
            match value {
                ValueRef::Null => hash.update(&[0]),
                ValueRef::Integer(number) => {
                    hash.update(&[1]);
                    hash.update(&number.to_le_bytes());
                }
                ValueRef::Real(number) => {
                    hash.update(&[2]);
                    hash.update(&number.to_le_bytes());
                }
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                    hash.update(&[3]);
                    hash.update(&(bytes.len() as u64).to_le_bytes());
                    hash.update(bytes);
                }
            }
        }
        shortened(hash) as i64
    }

    /// Compares a row, all of its columns and the checksum, with that checksum, and returns it.
    pub(super) fn verify(&self, row: &Row<'_>) -> Result<i64, JournalError> {
        let width = self.columns.len();
        let values: Vec<ValueRef<'_>> =
            (0..width).map(|at| row.get_ref(at)).collect::<Result<_, _>>()?;
        // A checksum that is no number is as wrong as any other.
        let kept: Option<i64> = row.get(width).ok();
        let sum = self.sum(values.iter().copied());
        if kept == Some(sum) {
            return Ok(sum);
        }
        let which = match values[0] {
            ValueRef::Integer(key) => key.to_string(),
            ValueRef::Text(key) => String::from_utf8_lossy(key).chars().take(60).collect(),
            _ => "without a key".to_owned(),
        };
        let what = format!("row {which} of the journal's {} is not what was written", self.name);
        Err(JournalError::Damaged { what })
    }

    /// Compares every row with its checksum; returns how many there are, and the total of the checksums.
    pub(super) fn scan(&self, db: &Connection) -> Result<(u64, i64), JournalError> {
        let mut statement =
            db.prepare(&format!("SELECT {}, sum FROM {}", self.list(), self.name))?;
        let mut rows = statement.query([])?;
        let (mut count, mut total) = (0, 0_i64);
        while let Some(row) = rows.next()? {
            total = total.wrapping_add(self.verify(row)?);
            count += 1;
        }
        Ok((count, total))
    }

    /// Gives every row that was written without a checksum one; returns their total.
    pub(super) fn sum_up(&self, db: &Connection) -> Result<i64, JournalError> {
        let (name, width) = (self.name, self.columns.len());
        let mut read = db.prepare(&format!("SELECT {} FROM {name}", self.list()))?;
        let sums = read.query_map([], |row| {
            let values = (0..width).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?;
            let key: Vec<Value> = (0..self.key).map(|at| row.get(at)).collect::<Result<_, _>>()?;
            Ok((key, self.sum(values)))
        })?;
        // All of them before the first change: a table must not change under who reads it.
        let sums = sums.collect::<Result<Vec<_>, _>>()?;
        let (place, condition) = (self.key + 1, self.has_key());
        let mut write =
            db.prepare(&format!("UPDATE {name} SET sum = ?{place} WHERE {condition}"))?;
        let mut total = 0_i64;
        for (key, sum) in sums {
            write.execute(params_from_iter(key.into_iter().chain([Value::Integer(sum)])))?;
            total = total.wrapping_add(sum);
        }
        Ok(total)
    }
}

/// What a transaction writes.
pub(super) struct Work<'a> {
    db: &'a Connection,
    /// By how much the total of all checksums changes.
    pub(super) change: i64,
    /// The number of the next line of a story.
    pub(super) next_story: i64,
}

impl<'a> Work<'a> {
    pub(super) fn new(db: &'a Connection, next_story: i64) -> Self {
        Work { db, change: 0, next_story }
    }

    /// Writes a row whose key is new.
    pub(super) fn add(&mut self, table: &Table, row: &[ValueRef<'_>]) -> Result<(), JournalError> {
        self.insert("INSERT", table, row)
    }

    /// Writes a row, over the one with the same key if there is one.
    pub(super) fn put(&mut self, table: &Table, row: &[ValueRef<'_>]) -> Result<(), JournalError> {
        let old = format!("SELECT sum FROM {} WHERE {}", table.name, table.has_key());
        let key = row.iter().take(table.key).map(|value| ToSqlOutput::Borrowed(*value));
        let mut old = self.db.prepare_cached(&old)?;
        let old: Option<i64> = old.query_row(params_from_iter(key), |row| row.get(0)).optional()?;
        self.change = self.change.wrapping_sub(old.unwrap_or(0));
        self.insert("INSERT OR REPLACE", table, row)
    }

    fn insert(
        &mut self,
        verb: &str,
        table: &Table,
        row: &[ValueRef<'_>],
    ) -> Result<(), JournalError> {
        let sum = table.sum(row.iter().copied());
        let places: Vec<String> = (1..=row.len() + 1).map(|at| format!("?{at}")).collect();
        let query = format!(
            "{verb} INTO {} ({}, sum) VALUES ({})",
            table.name,
            table.list(),
            places.join(", ")
        );
        let values = row.iter().copied().chain([ValueRef::Integer(sum)]);
        let mut statement = self.db.prepare_cached(&query)?;
        statement.execute(params_from_iter(values.map(ToSqlOutput::Borrowed)))?;
        self.change = self.change.wrapping_add(sum);
        Ok(())
    }

    /// A number in the row with a key of one part.
    pub(super) fn number(
        &self,
        table: &Table,
        column: &str,
        key: ValueRef<'_>,
    ) -> Result<Option<i64>, JournalError> {
        let query = format!("SELECT {column} FROM {} WHERE {}", table.name, table.has_key());
        let mut statement = self.db.prepare_cached(&query)?;
        Ok(statement.query_row([ToSqlOutput::Borrowed(key)], |row| row.get(0)).optional()?)
    }

    /// Removes the row with a key of one part, if there is one.
    pub(super) fn remove(&mut self, table: &Table, key: ValueRef<'_>) -> Result<(), JournalError> {
        let Some(old) = self.number(table, "sum", key)? else { return Ok(()) };
        let query = format!("DELETE FROM {} WHERE {}", table.name, table.has_key());
        self.db.prepare_cached(&query)?.execute([ToSqlOutput::Borrowed(key)])?;
        self.change = self.change.wrapping_sub(old);
        Ok(())
    }

    /// Has fewer than `most` rows with this value in a column: of the others the first `head` stay, and the next one goes. Rows are
    /// in the order of their key, which has one part.
    pub(super) fn make_room(
        &mut self,
        table: &Table,
        column: &str,
        value: ValueRef<'_>,
        head: u32,
        most: u32,
    ) -> Result<(), JournalError> {
        let (name, key) = (table.name, table.columns[0]);
        let there = |rank: u32| -> Result<Option<i64>, JournalError> {
            let query = format!(
                "SELECT {key} FROM {name} WHERE {column} = ?1 ORDER BY {key} LIMIT 1 OFFSET ?2"
            );
            let mut statement = self.db.prepare_cached(&query)?;
            let found = statement.query_row((ToSqlOutput::Borrowed(value), rank), |row| row.get(0));
            Ok(found.optional()?)
        };
        if there(most - 1)?.is_none() {
            return Ok(());
        }
        match there(head)? {
            Some(next) => self.remove(table, number(next)),
            None => Ok(()),
        }
    }

    /// The next free number of a table whose key is one.
    pub(super) fn next_of(&self, table: &Table) -> Result<i64, JournalError> {
        let (name, key) = (table.name, table.columns[0]);
        let query = format!("SELECT COALESCE(MAX({key}), 0) + 1 FROM {name}");
        Ok(self.db.prepare_cached(&query)?.query_row([], |row| row.get(0))?)
    }

    /// Removes rows of which a column is below a number.
    pub(super) fn remove_below(
        &mut self,
        table: &Table,
        column: &str,
        least: i64,
    ) -> Result<(), JournalError> {
        let name = table.name;
        let mut old = self.db.prepare(&format!("SELECT sum FROM {name} WHERE {column} < ?1"))?;
        let mut rows = old.query([least])?;
        while let Some(row) = rows.next()? {
            self.change = self.change.wrapping_sub(row.get(0)?);
        }
        self.db.execute(&format!("DELETE FROM {name} WHERE {column} < ?1"), [least])?;
        Ok(())
    }
}

/// A checksum of bytes.
pub(crate) fn digest<'b>(parts: impl IntoIterator<Item = &'b [u8]>) -> u64 {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    parts.into_iter().for_each(|part| hash.update(part));
    shortened(hash)
}

/// The first 64 bits of SHA-256: of two different rows, one in 2^64 pairs has the same.
fn shortened(hash: ring::digest::Context) -> u64 {
    let digest = hash.finish();
    digest.as_ref().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A number, as a row has it.
pub(super) fn number<'v>(value: impl Into<i64>) -> ValueRef<'v> {
    ValueRef::Integer(value.into())
}

/// A text, as a row has it.
pub(super) fn text(value: &str) -> ValueRef<'_> {
    ValueRef::Text(value.as_bytes())
}
