//! A disk for tests: the journal is in memory, and writes fail, or the daemon crashes at them, when a test says so.

use super::mark::Identity;
use super::{Entry, Journal, JournalError, error, schema};
use crate::record::{Intent, Record};
use coloc_model::TaskId;
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What unwinds when a test has the daemon crash.
pub(crate) struct Crash;

/// A disk that outlives the daemons that write to it.
pub(crate) struct Disk {
    name: String,
    /// SQLite keeps a database in memory as long as there is a connection.
    kept: Mutex<Connection>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Every task as it was committed last.
    rows: BTreeMap<TaskId, Record>,
    /// Lines of stories that tell of signals, by task.
    signals: BTreeMap<TaskId, usize>,
    /// What was written to the intent file where the journal had no room.
    intent_file: BTreeMap<(TaskId, u32), Intent>,
    /// There is no room but for so many writes.
    full: Option<u32>,
    /// The daemon crashes when it has come by so many points more.
    crash_in: Option<u32>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

impl Disk {
    pub(crate) fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("file:journal-{next}?mode=memory&cache=shared");
        let kept = Connection::open(&name).expect("SQLite has databases in memory");
        Arc::new(Disk { name, kept: Mutex::new(kept), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The daemon crashes here if a test wants it so.
    pub(crate) fn crash_point(&self) {
        let crashes = match &mut self.state().crash_in {
            Some(0) => true,
            Some(points) => {
                *points -= 1;
                false
            }
            None => false,
        };
        if crashes {
            self.state().crash_in = None;
            std::panic::resume_unwind(Box::new(Crash));
        }
    }

    /// The daemon crashes at the point after so many others, or not at all.
    pub(crate) fn crash_in(&self, points: Option<u32>) {
        self.state().crash_in = points;
    }

    /// Nothing can be written any more, or again.
    pub(crate) fn fill(&self, full: bool) {
        self.state().full = full.then_some(0);
    }

    /// Tasks cannot be read any more, or again.
    pub(crate) fn hide_tasks(&self, hidden: bool) {
        let (from, to) = if hidden { ("tasks", "hidden") } else { ("hidden", "tasks") };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.execute_batch(&format!("ALTER TABLE {from} RENAME TO {to}")).expect("it is there");
    }

    pub(crate) fn is_full(&self) -> bool {
        self.state().full.is_some()
    }

    /// Room that was kept is given away.
    pub(crate) fn give_room(&self) {
        if let Some(room) = &mut self.state().full {
            *room += 1;
        }
    }

    pub(crate) fn row(&self, task: TaskId) -> Option<Record> {
        self.state().rows.get(&task).cloned()
    }

    /// How many signals for a task are written down.
    pub(crate) fn signals(&self, task: TaskId) -> usize {
        self.state().signals.get(&task).copied().unwrap_or_default()
    }

    pub(crate) fn intent_file(&self) -> BTreeMap<(TaskId, u32), Intent> {
        self.state().intent_file.clone()
    }

    pub(crate) fn note(&self, intents: &BTreeMap<(TaskId, u32), Intent>) {
        self.crash_point();
        self.state().intent_file.clone_from(intents);
        self.crash_point();
    }

    /// A transaction is about to be committed.
    pub(super) fn before_commit(&self) -> Result<(), JournalError> {
        self.crash_point();
        match &mut self.state().full {
            Some(0) => {
                let full = std::io::ErrorKind::StorageFull.into();
                Err(error::at(Path::new("journal"))(full))
            }
            Some(room) => {
                *room -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// These were committed.
    pub(super) fn committed(&self, entries: &[Entry]) {
        let mut state = self.state();
        for entry in entries {
            match entry {
                Entry::Task(record) => {
                    state.rows.insert(record.id, (**record).clone());
                }
                Entry::Array(array) => {
                    state.rows.extend(array.tasks().map(|record| (record.id, record)));
                }
                Entry::Story(task, line) if line.what.contains(" is sent ") => {
                    *state.signals.entry(*task).or_default() += 1;
                }
                _ => {}
            }
        }
    }
}

impl Journal {
    /// Opens the journal on a disk in memory.
    pub(crate) fn on(disk: &Arc<Disk>) -> Result<Self, JournalError> {
        let mut db = Connection::open(&disk.name)?;
        db.pragma_update(None, "synchronous", "OFF")?;
        schema::migrate(&mut db, Identity::parse(&"1".repeat(32)).expect("a number"))?;
        let mut journal = Journal::writing(db)?;
        journal.disk = Some(disk.clone());
        Ok(journal)
    }

    /// Tasks that have not ended, as a restart would read them.
    pub(crate) fn records(&self) -> Vec<Record> {
        let live =
            self.live(&mut crate::owner::SharedTexts::default()).expect("the journal can be read");
        live.into_iter().map(|(record, _)| record).collect()
    }
}
