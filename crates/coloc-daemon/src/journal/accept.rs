//! Going on with a journal that is not the newest: a copy of before, or one that lost its end.
//!
//! Whatever happened after it ended has left its traces in the run directories. No new task gets an id that was used,
//! and a task that was started again since does not start by itself.

use super::error::at;
use super::mark::{self, Identity, Mark};
use super::seal::Seal;
use super::{
    Entry, Journal, JournalError, Trouble, arrays, check, keep_private, reader, write_entry,
};
use crate::owner::SharedTexts;
use crate::record::Record;
use coloc_api::moment::Moment;
use coloc_api::view::StoryLine;
use coloc_model::{TaskId, TaskState};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

/// What became of a journal that was gone on with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Accepted {
    /// New tasks begin with this id.
    pub(crate) next_task: u32,
    /// Tasks that were started after the journal ended. They are held.
    pub(crate) held: Vec<TaskId>,
    /// Tasks that left a run directory and that the journal does not know.
    pub(crate) unknown: Vec<TaskId>,
}

/// The last attempt of each task that has a run directory.
pub(crate) fn last_runs(runs: &Path) -> BTreeMap<TaskId, u32> {
    // Without the directory, nothing ever ran.
    let all = crate::retention::attempts(runs).unwrap_or_default();
    let number = |place: &std::path::PathBuf| place.extension()?.to_str()?.parse::<u32>().ok();
    let last = |places: Vec<_>| places.iter().filter_map(number).max().unwrap_or(0);
    all.into_iter().map(|(task, places)| (task, last(places))).collect()
}

/// The highest id of a task that has a run directory.
pub(super) fn highest_run(runs: &Path) -> Option<u32> {
    last_runs(runs).last_key_value().map(|(task, _)| task.0)
}

/// Tasks that have run directories and that a journal does not know.
pub(crate) fn unknown_runs(
    journal: &Journal,
    runs: &BTreeMap<TaskId, u32>,
) -> Result<Vec<TaskId>, JournalError> {
    let mut statement = journal.db.prepare("SELECT id FROM tasks")?;
    let known = statement.query_map([], |row| row.get(0).map(TaskId))?;
    let known: FxHashSet<TaskId> = known.collect::<Result<_, _>>()?;
    let arrays = arrays::all_ids(&journal.db)?;
    let is_known =
        |task: &TaskId| known.contains(task) || arrays.iter().any(|ids| ids.contains(&task.0));
    Ok(runs.keys().copied().filter(|task| !is_known(task)).collect())
}

/// Gives a journal that is whole a new name, so that it is mistaken for no other, and makes it fit for what happened
/// after it ended. The mark that belongs to it is returned; until that is written, no daemon uses the journal.
fn renew(
    journal: &Path,
    runs: &Path,
    used: Option<Mark>,
) -> Result<(Accepted, Mark), JournalError> {
    let identity = Identity::new()?;
    let mut journal = Journal::open_unchecked(journal, identity)?;
    let runs = last_runs(runs);
    let ran = runs.last_key_value().map_or(0, |(task, _)| task.0.saturating_add(1));
    let (below_task, below_spec) = used.map_or((1, 1), |used| (used.tasks_below, used.specs_below));
    let least_task = check::last_task(&journal.db)?.saturating_add(1).max(ran).max(below_task);
    let least_spec = check::next_spec(&journal.db)?.max(below_spec);
    let unknown = unknown_runs(&journal, &runs)?;
    let mut held = Vec::new();
    let mut entries = Vec::new();
    for (record, _) in journal.live(&mut SharedTexts::default())? {
        if let Some(&attempt) = runs.get(&record.id).filter(|&&last| last > record.attempt) {
            held.push(record.id);
            entries.extend(started_since(record, attempt));
        }
    }
    let mut sequence = 0;
    journal.transact(|work, seal| {
        entries.iter().try_for_each(|entry| write_entry(work, entry))?;
        seal.identity = identity;
        seal.least_task = seal.least_task.max(least_task);
        seal.least_spec = seal.least_spec.max(least_spec);
        sequence = seal.sequence + 1;
        Ok(())
    })?;
    let mark = Mark { sequence, ..Mark::first(identity, least_task, least_spec) };
    Ok((Accepted { next_task: least_task, held, unknown }, mark))
}

/// A task that was started again after the journal ended: how that went is not known, and to start it once more is for its
/// owner to say.
fn started_since(mut record: Record, attempt: u32) -> [Entry; 2] {
    let what = format!(
        "held: attempt {attempt} was started after this journal ended, and how it went is not known; release it to run it \
         again, or cancel it"
    );
    record.attempt = attempt;
    record.phase = TaskState::Pending;
    record.placement = None;
    record.intent = None;
    record.held = true;
    record.reason = Some(what.clone());
    let task = record.id;
    let line = StoryLine { at: Moment::now(), what };
    [Entry::Task(Box::new(record)), Entry::Story(task, line)]
}

/// Goes on with the journal that is there, or with none. Nothing else may use it.
pub(crate) fn accept(journal: &Path, runs: &Path) -> Result<Accepted, JournalError> {
    if check::has_content(journal) {
        check::is_whole(journal)?;
    }
    keep_private(journal).map_err(at(journal))?;
    // A mark that cannot be read says nothing; run directories do.
    let used = Mark::read(&mark::beside(journal)).ok().flatten();
    let (accepted, mark) = renew(journal, runs, used)?;
    mark.write(&mark::beside(journal))?;
    Ok(accepted)
}

/// Writes a copy of a journal, as of one moment, to a file that is there and empty. Works while a daemon writes.
pub(crate) fn copy(journal: &Path, file: &Path) -> Result<u64, JournalError> {
    let used = Mark::read(&mark::beside(journal)).ok().flatten();
    let name = file.to_str().ok_or_else(|| {
        let what = "a file's name must be text for SQLite to write it";
        at(file)(io::Error::new(io::ErrorKind::InvalidInput, what))
    })?;
    let copied = reader(journal)?.execute("VACUUM INTO ?1", [name]);
    copied.map_err(|error| match JournalError::from(error) {
        // It is not the journal's disk that is full.
        full if full.trouble() == Trouble::DiskFull => JournalError::NoRoom,
        other => other,
    })?;
    let copied = Journal::open_unchecked(file, Identity::new()?)?;
    if let Some(used) = used {
        // Ids that were used stay used. The sequence stays: a copy is not newer than what it was made of.
        let mut seal = Seal::read(&copied.db)?;
        seal.least_task = seal.least_task.max(used.tasks_below);
        seal.least_spec = seal.least_spec.max(used.specs_below);
        seal.write(&copied.db)?;
    }
    copied.db.pragma_update(None, "journal_mode", "DELETE")?;
    drop(copied);
    File::open(file).and_then(|file| file.sync_all()).map_err(at(file))?;
    check::is_whole(file)
}

/// Makes a copy that is whole ready to be the journal of this directory. Returns what to write once it is in its place.
pub(crate) fn prepare(
    copy: &Path,
    runs: &Path,
    replaced: &Path,
) -> Result<(Accepted, Ready), JournalError> {
    let used = Mark::read(&mark::beside(replaced)).ok().flatten();
    let (accepted, mark) = renew(copy, runs, used)?;
    // Into the one file: it is moved without its log.
    let db = rusqlite::Connection::open(copy)?;
    db.pragma_update(None, "journal_mode", "DELETE")?;
    drop(db);
    File::open(copy).and_then(|file| file.sync_all()).map_err(at(copy))?;
    Ok((accepted, Ready(mark)))
}

/// A mark whose journal is about to be in its place.
#[derive(Debug)]
pub(crate) struct Ready(Mark);

impl Ready {
    /// The journal is in its place.
    pub(crate) fn write(self, journal: &Path) -> Result<(), JournalError> {
        self.0.write(&mark::beside(journal))
    }
}
