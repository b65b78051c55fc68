//! Reading what is in the journal. A row that is not as it was written is an error that names it.

use super::table::{FACTS, LESSONS, SPECS, STORY, TASKS, Table};
use super::{Journal, JournalError, parse};
use crate::owner::SharedTexts;
use crate::record::{Record, SpecId};
use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_api::view::StoryLine;
use coloc_model::{Lesson, TaskId};
use rusqlite::{OptionalExtension as _, Row};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

impl Journal {
    pub(super) fn fact(&self, name: &str) -> Result<Option<i64>, JournalError> {
        let query = self.query(&FACTS, "WHERE name = ?1");
        let fact = self.db.query_row(&query, [name], |row| self.verified(&FACTS, row, 1));
        fact.optional()?.transpose()
    }

    /// A query for rows with all of their columns, and the checksum.
    pub(super) fn query(&self, table: &Table, which: &str) -> String {
        let sum = if self.sealed { "sum" } else { "NULL" };
        format!("SELECT {}, {sum} FROM {} {which}", table.list(), table.name)
    }

    /// A column of a row, all of which is as it was written.
    pub(super) fn verified<T: rusqlite::types::FromSql>(
        &self,
        table: &Table,
        row: &Row<'_>,
        column: usize,
    ) -> Result<Result<T, JournalError>, rusqlite::Error> {
        match (self.sealed && !self.just_checked).then(|| table.verify(row)).transpose() {
            Ok(_) => row.get(column).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }

    pub(super) fn live(
        &self,
        shared_texts: &mut SharedTexts,
    ) -> Result<Vec<(Record, Arc<TaskSpec>)>, JournalError> {
        // One look at everything: each query by itself would take and give back the locks of the file.
        let _moment = self.db.unchecked_transaction()?;
        let mut specs = rustc_hash::FxHashMap::<SpecId, Arc<TaskSpec>>::default();
        let mut statement = self.db.prepare(&self.query(&TASKS, "WHERE over = 0 ORDER BY id"))?;
        let rows = statement.query_map([], |row| self.task_in(row))?;
        let mut records: Vec<Record> = rows.map(|row| row?).collect::<Result<_, _>>()?;
        records.extend(self.unchanged()?);
        records.sort_unstable_by_key(|record| record.id);
        let mut live = Vec::with_capacity(records.len());
        for record in records {
            let spec = match specs.get(&record.spec) {
                Some(spec) => spec.clone(),
                None => {
                    let mut spec = self.spec(record.spec)?;
                    // At once: a hundred thousand environments of one shell would not fit the memory.
                    shared_texts.share(&mut spec);
                    let spec = Arc::new(spec);
                    specs.insert(record.spec, spec.clone());
                    spec
                }
            };
            live.push((record, spec));
        }
        Ok(live)
    }

    /// The task in a row.
    fn task_in(&self, row: &Row<'_>) -> Result<Result<Record, JournalError>, rusqlite::Error> {
        let id: u32 = row.get(0)?;
        let body = self.verified::<String>(&TASKS, row, 3)?;
        Ok(body.and_then(|body| parse(&format!("task {id}"), &body)))
    }

    /// What was measured of tasks, by signature.
    pub(super) fn lessons(&self) -> Result<Vec<(String, Lesson)>, JournalError> {
        let mut statement = self.db.prepare(&self.query(&LESSONS, "ORDER BY at_ms"))?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, self.verified::<String>(&LESSONS, row, 2)?)))?;
        let mut lessons = Vec::new();
        for row in rows {
            let (signature, body): (String, _) = row?;
            let lesson = parse("a lesson", &body?)?;
            lessons.push((signature, lesson));
        }
        Ok(lessons)
    }

    /// What was measured of tasks with this signature.
    pub fn lesson(&self, signature: &str) -> Result<Option<Lesson>, JournalError> {
        let query = self.query(&LESSONS, "WHERE signature = ?1");
        let body =
            self.db.query_row(&query, [signature], |row| self.verified::<String>(&LESSONS, row, 2));
        let body = body.optional()?.transpose()?;
        body.map(|body| parse("a lesson", &body)).transpose()
    }

    /// A submission.
    pub fn spec(&self, id: SpecId) -> Result<TaskSpec, JournalError> {
        let query = self.query(&SPECS, "WHERE id = ?1");
        let mut statement = self.db.prepare_cached(&query)?;
        let body = statement.query_row([id.0], |row| self.verified::<String>(&SPECS, row, 1));
        let missing = || JournalError::damaged(format!("the journal has no submission {}", id.0));
        parse(&format!("submission {}", id.0), &body.optional()?.ok_or_else(missing)??)
    }

    /// What is made of a submission, once for all of its tasks.
    pub(crate) fn once_of<'a, T>(
        &self,
        id: SpecId,
        known: &'a mut FxHashMap<SpecId, T>,
        make: impl FnOnce(TaskSpec) -> T,
    ) -> Result<&'a mut T, JournalError> {
        Ok(match known.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(make(self.spec(id)?)),
        })
    }

    /// A task, ended or not.
    pub fn task(&self, id: TaskId) -> Result<Option<Record>, JournalError> {
        let query = self.query(&TASKS, "WHERE id = ?1");
        let mut statement = self.db.prepare_cached(&query)?;
        match statement.query_row([id.0], |row| self.task_in(row)).optional()? {
            Some(task) => task.map(Some),
            None => self.unchanged_task(id),
        }
    }

    /// Ended tasks, newest first, at most `limit` of them.
    pub fn ended(&self, since: Moment, limit: u32) -> Result<Vec<Record>, JournalError> {
        let which = "WHERE over = 1 AND ended_ms >= ?1 ORDER BY ended_ms DESC, id DESC LIMIT ?2";
        let mut statement = self.db.prepare_cached(&self.query(&TASKS, which))?;
        let rows = statement.query_map((since.0 as i64, limit), |row| self.task_in(row))?;
        rows.map(|row| row?).collect()
    }

    /// What happened to a task, oldest first.
    pub fn story(&self, task: TaskId) -> Result<Vec<StoryLine>, JournalError> {
        let query = self.query(&STORY, "WHERE task = ?1 ORDER BY seq");
        let mut statement = self.db.prepare_cached(&query)?;
        let rows = statement.query_map([task.0], |row| {
            let at = Moment(row.get::<_, i64>(2)? as u64);
            let what = self.verified::<String>(&STORY, row, 3)?;
            Ok(what.map(|what| StoryLine { at, what }))
        })?;
        rows.map(|row| row?).collect()
    }
}
