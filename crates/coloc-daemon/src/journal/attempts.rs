//! Attempts, decisions and series of tasks, kept as data. All have an end: of a task that is tried very often, the last ones are kept.

use super::table::{ATTEMPTS, DECISIONS, SERIES, Table, Work, number, text};
use super::{Journal, JournalError, json, parse};
use coloc_api::moment::Moment;
use coloc_api::view::{AttemptView, DecisionView};
use coloc_model::TaskId;
use rusqlite::OptionalExtension as _;
use serde::de::DeserializeOwned;

/// Attempts of one task that are kept.
const MOST_ATTEMPTS: u32 = 100;
/// Decisions of one task that are kept: the first ones, and of the others the last.
const MOST_DECISIONS: u32 = 40;
const FIRST_DECISIONS: u32 = 10;

/// An attempt that has ended.
#[derive(Clone, PartialEq, Debug)]
pub struct EndedAttempt {
    /// Its task.
    pub task: TaskId,
    /// When it began.
    pub started: Moment,
    /// When it ended.
    pub ended: Moment,
    /// What is told of it.
    pub view: AttemptView,
}

pub(super) fn write_attempt(work: &mut Work<'_>, end: &EndedAttempt) -> Result<(), JournalError> {
    let task = number(end.task.0);
    work.make_room(&ATTEMPTS, "task", task, 0, MOST_ATTEMPTS)?;
    // An attempt is found by its task and number: both are in the key, so that a second end replaces the first.
    let key = (i64::from(end.task.0) << 32) | i64::from(end.view.number);
    let (started, ended) = (number(end.started.0 as i64), number(end.ended.0 as i64));
    work.put(&ATTEMPTS, &[number(key), task, started, ended, text(&json(&end.view))])
}

pub(super) fn write_decision(
    work: &mut Work<'_>,
    task: TaskId,
    decision: &DecisionView,
) -> Result<(), JournalError> {
    work.make_room(&DECISIONS, "task", number(task.0), FIRST_DECISIONS, MOST_DECISIONS)?;
    let seq = work.next_of(&DECISIONS)?;
    work.add(&DECISIONS, &[number(seq), number(task.0), text(&json(decision))])
}

pub(super) fn write_series(
    work: &mut Work<'_>,
    task: TaskId,
    at: Moment,
    body: &str,
) -> Result<(), JournalError> {
    work.put(&SERIES, &[number(task.0), number(at.0 as i64), text(body)])
}

pub(super) fn forget_series(work: &mut Work<'_>, task: TaskId) -> Result<(), JournalError> {
    work.remove(&SERIES, number(task.0))
}

impl Journal {
    /// This journal has a table: one that an older coloc wrote may not.
    fn has(&self, table: &Table) -> Result<bool, JournalError> {
        Ok(table.is_in(super::schema::version(&self.db)?))
    }

    fn bodies<T: DeserializeOwned>(
        &self,
        table: &Table,
        which: &str,
        parameters: impl rusqlite::Params,
    ) -> Result<Vec<(i64, T)>, JournalError> {
        if !self.has(table)? {
            return Ok(Vec::new());
        }
        let mut statement = self.db.prepare_cached(&self.query(table, which))?;
        let body = table.columns.len() - 1;
        let rows = statement.query_map(parameters, |row| {
            Ok((row.get::<_, i64>(1)?, self.verified::<String>(table, row, body)?))
        })?;
        let mut found = Vec::new();
        for row in rows {
            let (second, body) = row?;
            found.push((second, parse(table.name, &body?)?));
        }
        Ok(found)
    }

    /// The attempts of a task that have ended, the first one first.
    pub fn attempts(&self, task: TaskId) -> Result<Vec<AttemptView>, JournalError> {
        let found = self.bodies(&ATTEMPTS, "WHERE task = ?1 ORDER BY key", [task.0])?;
        Ok(found.into_iter().map(|(_, view)| view).collect())
    }

    /// Attempts that were under way in a span of time and have ended, the last to end first.
    pub fn attempts_between(
        &self,
        from: Moment,
        to: Moment,
        most: u32,
    ) -> Result<Vec<(TaskId, AttemptView)>, JournalError> {
        let which = "WHERE ended_ms >= ?1 AND started_ms <= ?2 ORDER BY ended_ms DESC LIMIT ?3";
        let found = self.bodies(&ATTEMPTS, which, (from.0 as i64, to.0 as i64, most))?;
        Ok(found.into_iter().map(|(task, view)| (TaskId(task as u32), view)).collect())
    }

    /// What was decided of a task, the first decision first.
    pub fn decisions(&self, task: TaskId) -> Result<Vec<DecisionView>, JournalError> {
        let found = self.bodies(&DECISIONS, "WHERE task = ?1 ORDER BY seq", [task.0])?;
        Ok(found.into_iter().map(|(_, view)| view).collect())
    }

    /// What was measured of a task that has ended, as it was kept.
    pub fn series<T: DeserializeOwned>(&self, task: TaskId) -> Result<Option<T>, JournalError> {
        if !self.has(&SERIES)? {
            return Ok(None);
        }
        let query = self.query(&SERIES, "WHERE task = ?1");
        let row =
            self.db.query_row(&query, [task.0], |row| self.verified::<String>(&SERIES, row, 2));
        row.optional()?.map(|body| parse("series", &body?)).transpose()
    }
}
