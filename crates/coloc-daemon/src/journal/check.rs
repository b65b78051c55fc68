//! Whether a journal is whole and the newest, found out without changing it: what refuses it must leave it as it was.

use super::error::{JournalError, Stale};
use super::mark::{self, Mark};
use super::schema::{self, SEALED_SINCE};
use super::seal::Seal;
use super::table::{self, TASKS};
use super::{Journal, arrays, reader};
use crate::owner::SharedTexts;
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A journal of more bytes is not read from end to end at a start: what has not ended is checked row by row then, and
/// `coloc state check` checks all of it.
const MOST_AT_A_START: u64 = 1 << 30;
/// So many complaints of SQLite are told.
const MOST_TOLD: usize = 5;

/// The files of a journal, and their bytes.
pub(crate) fn size(journal: &Path) -> u64 {
    let files = [journal.to_owned(), log_of(journal)];
    files.iter().filter_map(|file| std::fs::metadata(file).ok()).map(|meta| meta.len()).sum()
}

/// SQLite's log beside a database.
pub(crate) fn log_of(journal: &Path) -> PathBuf {
    let mut name = journal.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Refuses a journal that is damaged, or is not the one that the mark says. Says whether all of it was looked at.
pub(super) fn before_use(journal: &Path, mark: Option<Mark>) -> Result<bool, JournalError> {
    is_newest(journal, mark)?;
    let all = size(journal) <= MOST_AT_A_START;
    if all && has_content(journal) {
        is_whole(journal)?;
    }
    Ok(all)
}

/// There is a database, however little is in it.
pub(super) fn has_content(journal: &Path) -> bool {
    std::fs::metadata(journal).is_ok_and(|meta| meta.len() > 0)
}

/// Compares a journal with what is known of it outside.
pub(super) fn is_newest(journal: &Path, mark: Option<Mark>) -> Result<(), JournalError> {
    let stale = |stale| Err(JournalError::Stale { file: journal.to_owned(), stale });
    // A mark without a transaction is of a journal that was about to begin.
    let used = mark.filter(|mark| mark.sequence > 0);
    let gone = || match used {
        Some(mark) => stale(Stale::Gone { acknowledged: mark.next_task.saturating_sub(1) }),
        None => Ok(()),
    };
    if !has_content(journal) {
        return gone();
    }
    let db = reader(journal)?;
    match schema::version(&db)? {
        // SQLite made a file, and whatever was put into it is lost.
        0 => return gone(),
        SEALED_SINCE.. => {}
        _ if used.is_some() => return stale(Stale::Earlier),
        _ => return Ok(()),
    }
    let seal = Seal::read(&db)?;
    match mark {
        None => stale(Stale::NoMark),
        Some(mark) if mark.identity != seal.identity => stale(Stale::Another),
        Some(mark) if mark.sequence > seal.sequence => stale(Stale::Behind {
            missing: mark.sequence - seal.sequence,
            knows: last_task(&db)?,
            acknowledged: mark.next_task.saturating_sub(1),
        }),
        Some(_) => Ok(()),
    }
}

/// The same, by the mark that is there. Says up to which transaction it vouches for, if it says anything.
pub(crate) fn is_newest_by_mark(journal: &Path) -> Result<Option<u64>, JournalError> {
    let mark = Mark::read(&mark::beside(journal))?;
    is_newest(journal, mark)?;
    Ok(mark.map(|mark| mark.sequence))
}

/// Refuses a file that is no journal, or one that is damaged.
pub(crate) fn is_backup(file: &Path) -> Result<(), JournalError> {
    if schema::version(&reader(file)?)? == 0 {
        return Err(JournalError::damaged("it is no journal"));
    }
    is_whole(file).map(|_| ())
}

/// The highest id of a task; 0 without any.
pub(super) fn last_task(db: &Connection) -> Result<u32, JournalError> {
    let last = db.query_row("SELECT COALESCE(MAX(id), 0) FROM tasks", [], |row| row.get(0))?;
    // Ids of arrays that come later are higher.
    let of_arrays = arrays::all_ids(db)?.last().map_or(0, |ids| ids.end.saturating_sub(1));
    Ok(u32::max(last, of_arrays))
}

/// The next free submission.
pub(super) fn next_spec(db: &Connection) -> Result<u32, JournalError> {
    Ok(db.query_row("SELECT COALESCE(MAX(id), 0) + 1 FROM specs", [], |row| row.get(0))?)
}

/// Reads a journal from end to end: its structure, its indexes, every row, and whether any is missing. Returns how many
/// tasks it has.
pub(crate) fn is_whole(journal: &Path) -> Result<u64, JournalError> {
    // The two have nothing in common but the file, and each takes as long.
    std::thread::scope(|scope| {
        let structure = scope.spawn(|| reader(journal).and_then(|db| structure(&db)));
        let rows = reader(journal).and_then(|db| rows(&db));
        let structure = structure.join();
        structure.map_err(|_| JournalError::damaged("the check of the journal died"))??;
        rows
    })
}

fn structure(db: &Connection) -> Result<(), JournalError> {
    let mut statement = db.prepare("PRAGMA integrity_check(100)")?;
    let told = statement.query_map([], |row| row.get::<_, String>(0))?;
    let told: Vec<String> = told.collect::<Result<_, _>>()?;
    if told == ["ok"] {
        return Ok(());
    }
    let more = told.len().saturating_sub(MOST_TOLD);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    let told: Vec<&str> = told.iter().take(MOST_TOLD).map(|line| line.trim()).collect();
    Err(JournalError::damaged(format!("the database is broken: {}{more}", told.join("; "))))
}

fn rows(db: &Connection) -> Result<u64, JournalError> {
    let version = schema::version(db)?;
    match version {
        // A database that was about to become a journal.
        0 => return Ok(0),
        version if version < SEALED_SINCE => {
            let count = "SELECT COUNT(*) FROM tasks";
            return Ok(db.query_row(count, [], |row| row.get::<_, i64>(0))? as u64);
        }
        _ => {}
    }
    // One moment for all tables: a daemon may be at work.
    let moment = db.unchecked_transaction()?;
    let (seal, mut total, mut tasks) = (Seal::read(&moment)?, 0_i64, 0);
    for table in table::all(version) {
        let (count, sum) = table.scan(&moment)?;
        total = total.wrapping_add(sum);
        if table.name == TASKS.name {
            tasks = count;
        }
    }
    if total != seal.total {
        let what = "a row of the journal is missing, or is as it was before it was changed";
        return Err(JournalError::damaged(what));
    }
    Ok(tasks + arrays::unchanged(&moment)?)
}

/// What `coloc state check` says of a journal that is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Census {
    /// The version of its tables.
    pub(crate) version: u32,
    /// Its last transaction; an older version does not count them.
    pub(crate) sequence: Option<u64>,
    /// Its tasks that have not ended.
    pub(crate) live: usize,
}

impl Journal {
    /// Reads what a restart would read.
    pub(crate) fn census(&self) -> Result<Census, JournalError> {
        let version = schema::version(&self.db)?;
        let sealed = version >= SEALED_SINCE;
        let seal = sealed.then(|| Seal::read(&self.db)).transpose()?;
        let live = if version == 0 { 0 } else { self.live(&mut SharedTexts::default())?.len() };
        Ok(Census { version, sequence: seal.map(|seal| seal.sequence), live })
    }
}
