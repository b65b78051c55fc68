//! Arrays: one row has all of their tasks, as they were submitted. A task gets a row of its own when it first changes, and
//! that row is what counts from then on.

use super::table::{ARRAYS, Work, number, text};
use super::{Journal, JournalError, json, parse, schema};
use crate::record::{ArrayPlace, Record};
use coloc_model::TaskId;
use rusqlite::{Connection, OptionalExtension as _, Row};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Tasks that were submitted as one array. They differ in their ids, which follow each other, and in their indices.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    first: Record,
    place: ArrayPlace,
    indices: Vec<u32>,
}

impl Array {
    /// An array of tasks that are as this one, which is the first.
    pub fn new(first: Record, at_once: Option<u32>, mut indices: Vec<u32>) -> Self {
        // In order, so that a task is found by its index.
        indices.sort_unstable();
        let index = indices.first().copied().unwrap_or_default();
        Array { place: ArrayPlace { array: first.id, index, at_once }, first, indices }
    }

    /// The ids of its tasks.
    pub fn ids(&self) -> Range<u32> {
        ids(self.first.id.0, self.indices.len() as u32)
    }

    /// Its tasks, as they were submitted.
    pub fn tasks(&self) -> impl Iterator<Item = Record> + '_ {
        self.ids().zip(&self.indices).map(|(id, &index)| {
            let array = Some(ArrayPlace { index, ..self.place });
            Record { id: TaskId(id), array, ..self.first.clone() }
        })
    }
}

fn ids(first: u32, count: u32) -> Range<u32> {
    first..first.saturating_add(count)
}

pub(super) fn write(work: &mut Work<'_>, array: &Array) -> Result<(), JournalError> {
    let first = Record { array: Some(array.place), ..array.first.clone() };
    let (id, count) = (number(first.id.0), number(array.indices.len() as u32));
    work.add(&ARRAYS, &[id, count, text(&json(&first)), text(&json(&array.indices))])
}

/// The ids of each array's tasks.
pub(super) fn all_ids(db: &Connection) -> Result<Vec<Range<u32>>, JournalError> {
    if !ARRAYS.is_in(schema::version(db)?) {
        return Ok(Vec::new());
    }
    let mut statement = db.prepare("SELECT first, count FROM arrays ORDER BY first")?;
    let rows = statement.query_map([], |row| Ok(ids(row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Tasks among some ids that have a row of their own.
fn with_rows(db: &Connection, ids: &Range<u32>) -> Result<FxHashSet<TaskId>, JournalError> {
    let query = "SELECT id FROM tasks WHERE id >= ?1 AND id < ?2";
    let mut statement = db.prepare_cached(query)?;
    let rows = statement.query_map([ids.start, ids.end], |row| row.get(0).map(TaskId))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How many tasks have no row of their own.
pub(super) fn unchanged(db: &Connection) -> Result<u64, JournalError> {
    let mut count = 0;
    for ids in all_ids(db)? {
        count += (ids.len() - with_rows(db, &ids)?.len()) as u64;
    }
    Ok(count)
}

impl Journal {
    fn array_in(&self, row: &Row<'_>) -> Result<Result<Array, JournalError>, rusqlite::Error> {
        let id: u32 = row.get(0)?;
        let (body, indices): (String, String) = match self.verified(&ARRAYS, row, 2)? {
            Ok(body) => (body, row.get(3)?),
            Err(error) => return Ok(Err(error)),
        };
        let what = format!("array {id}");
        let read = || {
            let first: Record = parse(&what, &body)?;
            let no_place = || JournalError::damaged(format!("{what} has no place in itself"));
            let place = first.array.ok_or_else(no_place)?;
            Ok(Array { first, place, indices: parse(&what, &indices)? })
        };
        Ok(read())
    }

    /// Tasks of arrays that are as they were submitted.
    pub(super) fn unchanged(&self) -> Result<Vec<Record>, JournalError> {
        if !ARRAYS.is_in(schema::version(&self.db)?) {
            return Ok(Vec::new());
        }
        let mut tasks = Vec::new();
        let mut statement = self.db.prepare(&self.query(&ARRAYS, ""))?;
        for array in statement.query_map([], |row| self.array_in(row))? {
            let array = array??;
            let changed = with_rows(&self.db, &array.ids())?;
            tasks.extend(array.tasks().filter(|task| !changed.contains(&task.id)));
        }
        Ok(tasks)
    }

    /// A task of an array as it was submitted.
    pub(super) fn unchanged_task(&self, id: TaskId) -> Result<Option<Record>, JournalError> {
        if !ARRAYS.is_in(schema::version(&self.db)?) {
            return Ok(None);
        }
        let which = "WHERE first = (SELECT MAX(first) FROM arrays WHERE first <= ?1) AND first + count > ?1";
        let mut statement = self.db.prepare_cached(&self.query(&ARRAYS, which))?;
        let array =
            statement.query_row([id.0], |row| self.array_in(row)).optional()?.transpose()?;
        Ok(array.and_then(|array| array.tasks().find(|task| task.id == id)))
    }

    /// An array whose tasks all have rows of their own says nothing any more.
    pub(super) fn forget_changed_arrays(&mut self) -> Result<(), JournalError> {
        let mut changed = Vec::new();
        for ids in all_ids(&self.db)? {
            if with_rows(&self.db, &ids)?.len() == ids.len() {
                changed.push(ids.start);
            }
        }
        if changed.is_empty() {
            return Ok(());
        }
        self.transact(|work, _| {
            changed.iter().try_for_each(|&first| work.remove(&ARRAYS, number(first)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Entry, Trouble, accept, check};
    use crate::record::tests::spec;
    use crate::record::{SpecId, Uid};
    use coloc_api::moment::Moment;
    use coloc_model::TaskState;
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    fn array(first: u32, indices: &[u32]) -> Array {
        let first = Record::new(TaskId(first), SpecId(1), Uid(7), Moment(5));
        Array::new(first, Some(2), indices.to_vec())
    }

    /// A journal with a task, an array, and a task.
    fn journal(place: &Path) -> (Journal, PathBuf) {
        let file = place.join("journal.db");
        let mut journal = Journal::open(&file).unwrap();
        journal.load(place).unwrap();
        let task = |id| Record::new(TaskId(id), SpecId(1), Uid(7), Moment(5));
        let entries = [
            Entry::Spec(SpecId(1), Arc::new(spec(&["true"]))),
            Entry::Task(Box::new(task(1))),
            Entry::Array(Arc::new(array(2, &[30, 10, 20]))),
        ];
        journal.write(&entries).unwrap();
        (journal, file)
    }

    fn end(journal: &mut Journal, ids: Range<u32>) {
        for id in ids {
            let mut record = journal.task(TaskId(id)).unwrap().unwrap();
            (record.phase, record.ended) = (TaskState::Completed, Some(Moment(9)));
            journal.write(&[Entry::Task(Box::new(record))]).unwrap();
        }
    }

    #[test]
    fn tasks_are_as_they_were_submitted_until_they_change() {
        let place = tempfile::tempdir().unwrap();
        let (mut journal, file) = journal(place.path());
        let indices = |journal: &mut Journal| {
            let saved = journal.load(place.path()).unwrap();
            let of = |(record, _): &(Record, _)| {
                (record.id.0, record.array.map(|place| (place.array.0, place.index, place.at_once)))
            };
            (saved.next_task, saved.live.iter().map(of).collect::<Vec<_>>())
        };
        let (third, all) = ((4, Some((2, 30, Some(2)))), indices(&mut journal));
        assert_eq!(
            all,
            (5, vec![(1, None), (2, Some((2, 10, Some(2)))), (3, Some((2, 20, Some(2)))), third])
        );
        assert_eq!(journal.task(TaskId(4)).unwrap(), array(2, &[10, 20, 30]).tasks().nth(2));
        assert_eq!(journal.task(TaskId(5)).unwrap(), None);
        let mut held = journal.task(TaskId(3)).unwrap().unwrap();
        held.held = true;
        journal.write(&[Entry::Task(Box::new(held.clone()))]).unwrap();
        assert_eq!(journal.task(TaskId(3)).unwrap(), Some(held));
        end(&mut journal, 2..3);
        drop(journal);
        assert_eq!(check::is_whole(&file).unwrap(), 4, "each is counted once");
        let mut journal = Journal::open(&file).unwrap();
        let (next, live) = indices(&mut journal);
        assert_eq!((next, live.iter().map(|(id, _)| *id).collect()), (5, vec![1, 3, 4]));
        assert_eq!(journal.ended(Moment(0), 9).unwrap().len(), 1);
    }

    #[test]
    fn an_array_of_changed_tasks_is_forgotten_and_its_ids_are_not() {
        let place = tempfile::tempdir().unwrap();
        let (mut journal, file) = journal(place.path());
        end(&mut journal, 2..5);
        let runs = BTreeMap::from([(TaskId(4), 1), (TaskId(9), 1)]);
        assert_eq!(accept::unknown_runs(&journal, &runs).unwrap(), [TaskId(9)]);
        journal.write(&[Entry::Array(Arc::new(array(5, &[1, 2])))]).unwrap();
        assert_eq!(all_ids(&journal.db).unwrap(), [2..5, 5..7]);
        drop(journal);
        let mut journal = Journal::open(&file).unwrap();
        assert_eq!(journal.load(place.path()).unwrap().next_task, 7);
        assert_eq!(all_ids(&journal.db).unwrap().as_slice(), std::slice::from_ref(&(5..7)));
        assert_eq!(accept::unknown_runs(&journal, &BTreeMap::from([(TaskId(6), 1)])).unwrap(), []);
        drop(journal);
        assert!(check::is_whole(&file).is_ok(), "the seal vouches for what is left");
    }

    #[test]
    fn an_array_that_is_not_what_was_written_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let (journal, file) = journal(place.path());
        drop(journal);
        let rows = ["UPDATE arrays SET indices = '[10,20,31]'", "DELETE FROM arrays"];
        for damage in rows {
            let copy = place.path().join("damaged");
            std::fs::copy(&file, &copy).unwrap();
            Connection::open(&copy).unwrap().execute(damage, []).unwrap();
            let refused = check::is_whole(&copy).unwrap_err();
            assert_eq!(refused.trouble(), Trouble::Damaged, "{damage}: {refused}");
        }
    }
}
