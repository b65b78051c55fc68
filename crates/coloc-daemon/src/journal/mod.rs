//! What must survive: submissions, tasks and their stories, in one SQLite file.
//!
//! The table of tasks is the journal folded up: every change of a task and the line of its story that
//! tells why are written in one transaction, so a restart reads where everybody stands and decides
//! nothing again. Samples stay out of it.

mod keys;
mod schema;
mod setup;

pub use keys::Keyed;
pub use schema::SCHEMA_VERSION;
pub use setup::Setup;

use crate::record::{Moment, Record, SpecId};
use crate::spec::TaskSpec;
use coloc_core::belief::Lesson;
use coloc_model::TaskId;
use rusqlite::{Connection, OptionalExtension, params};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Something that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file system has no room.
    #[error("the disk with the journal is full: nothing new is taken until there is room")]
    DiskFull,
    /// A newer coloc wrote the file.
    #[error(
        "the journal has version {found}, this coloc knows up to {SCHEMA_VERSION}: use the newer one"
    )]
    TooNew {
        /// The file's version.
        found: u32,
    },
    /// A row is not what it should be.
    #[error("the journal's row for {what} cannot be read: {error}")]
    Garbled {
        /// Which.
        what: String,
        /// What was wrong.
        error: serde_json::Error,
    },
    /// SQLite says no.
    #[error("the journal cannot be used: {0}")]
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => JournalError::DiskFull,
            _ => JournalError::Sqlite(error),
        }
    }
}

/// A line of a task's story.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct StoryLine {
    /// When, in seconds since 1970.
    #[schemars(with = "f64")]
    #[serde(with = "crate::record::seconds")]
    pub at: Moment,
    /// What happened, for people, with numbers.
    pub what: String,
}

/// Something to be written down.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A submission.
    Spec(SpecId, Arc<TaskSpec>),
    /// A task as it stands now.
    Task(Box<Record>),
    /// What happened to a task.
    Story(TaskId, StoryLine),
    /// What was measured of tasks of a kind.
    Lesson(String, Lesson),
    /// A submission that must not count twice.
    Key(Keyed),
}

/// Everything that a daemon needs of the past.
#[derive(Debug, Default)]
pub struct Saved {
    /// When the daemon's clock began.
    pub epoch: Moment,
    /// What was measured, by signature.
    pub lessons: Vec<(String, Lesson)>,
    /// Tasks that have not ended.
    pub live: Vec<(Record, Arc<TaskSpec>)>,
    /// The next free ids.
    pub next_task: u32,
    /// The next free submission.
    pub next_spec: u32,
}

/// The journal, with the one connection that writes.
#[derive(Debug)]
pub struct Journal {
    db: Connection,
}

impl Journal {
    /// Opens or creates the journal, bringing an older one up to date.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let mut db = Connection::open(path)?;
        // The answer to a submit waits for the disk: that is what FULL means in WAL mode.
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "cache_size", -4096)?;
        schema::migrate(&mut db)?;
        Ok(Journal { db })
    }

    /// A second connection, which only reads: old tasks are looked up without stopping the owner.
    pub fn open_reader(path: &Path) -> Result<Self, JournalError> {
        let db = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::version(&db)?;
        Ok(Journal { db })
    }

    /// Writes all of it, or none; returns once it is on the disk.
    pub fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let transaction = self.db.transaction()?;
        for entry in entries {
            write_entry(&transaction, entry)?;
        }
        Ok(transaction.commit()?)
    }

    /// Writes something of no consequence, to see whether that is possible.
    pub fn try_to_write(&mut self) -> Result<(), JournalError> {
        let query = "INSERT OR REPLACE INTO facts (name, value) VALUES ('tried_ms', ?1)";
        self.db.prepare_cached(query)?.execute([Moment::now().0 as i64])?;
        Ok(())
    }

    /// What a restart begins with.
    pub fn load(&mut self) -> Result<Saved, JournalError> {
        let now = Moment::now();
        self.db.execute(
            "INSERT OR IGNORE INTO facts (name, value) VALUES ('epoch_ms', ?1)",
            [now.0 as i64],
        )?;
        self.forget_old_keys(now)?;
        let fact = "SELECT value FROM facts WHERE name = 'epoch_ms'";
        let epoch: i64 = self.db.query_row(fact, [], |row| row.get(0))?;
        let next = |table: &str| -> Result<u32, rusqlite::Error> {
            let highest = format!("SELECT COALESCE(MAX(id), 0) + 1 FROM {table}");
            self.db.query_row(&highest, [], |row| row.get(0))
        };
        Ok(Saved {
            epoch: Moment(epoch as u64),
            next_task: next("tasks")?,
            next_spec: next("specs")?,
            lessons: self.lessons()?,
            live: self.live()?,
        })
    }

    fn live(&self) -> Result<Vec<(Record, Arc<TaskSpec>)>, JournalError> {
        let mut specs = rustc_hash::FxHashMap::<SpecId, Arc<TaskSpec>>::default();
        let mut statement =
            self.db.prepare("SELECT id, body FROM tasks WHERE over = 0 ORDER BY id")?;
        let rows = statement.query_map([], |row| Ok((row.get::<_, u32>(0)?, row.get(1)?)))?;
        let mut live = Vec::new();
        for row in rows {
            let (id, body): (u32, String) = row?;
            let record: Record = parse(&format!("task {id}"), &body)?;
            let spec = match specs.get(&record.spec) {
                Some(spec) => spec.clone(),
                None => {
                    let spec = Arc::new(self.spec(record.spec)?);
                    specs.insert(record.spec, spec.clone());
                    spec
                }
            };
            live.push((record, spec));
        }
        Ok(live)
    }

    /// What was measured of tasks, by signature.
    fn lessons(&self) -> Result<Vec<(String, Lesson)>, JournalError> {
        let mut statement =
            self.db.prepare("SELECT signature, body FROM lessons ORDER BY at_ms")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut lessons = Vec::new();
        for row in rows {
            let (signature, body): (String, String) = row?;
            let lesson = parse("a lesson", &body)?;
            lessons.push((signature, lesson));
        }
        Ok(lessons)
    }

    /// What was measured of tasks with this signature.
    pub fn lesson(&self, signature: &str) -> Result<Option<Lesson>, JournalError> {
        let query = "SELECT body FROM lessons WHERE signature = ?1";
        let body = self.db.query_row(query, [signature], |row| row.get::<_, String>(0));
        body.optional()?.map(|body| parse("a lesson", &body)).transpose()
    }

    /// A submission.
    pub fn spec(&self, id: SpecId) -> Result<TaskSpec, JournalError> {
        let body: String =
            self.db.query_row("SELECT body FROM specs WHERE id = ?1", [id.0], |row| row.get(0))?;
        parse(&format!("submission {}", id.0), &body)
    }

    /// A task, ended or not.
    pub fn task(&self, id: TaskId) -> Result<Option<Record>, JournalError> {
        let query = "SELECT body FROM tasks WHERE id = ?1";
        let body = self.db.query_row(query, [id.0], |row| row.get::<_, String>(0)).optional()?;
        body.map(|body| parse(&format!("task {id}"), &body)).transpose()
    }

    /// Ended tasks, newest first, at most `limit` of them.
    pub fn ended(&self, since: Moment, limit: u32) -> Result<Vec<Record>, JournalError> {
        let query = "SELECT id, body FROM tasks WHERE over = 1 AND ended_ms >= ?1 \
                     ORDER BY ended_ms DESC, id DESC LIMIT ?2";
        let mut statement = self.db.prepare_cached(query)?;
        let rows = statement.query_map(params![since.0 as i64, limit], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut ended = Vec::new();
        for row in rows {
            let (id, body) = row?;
            ended.push(parse(&format!("task {id}"), &body)?);
        }
        Ok(ended)
    }

    /// What happened to a task, oldest first.
    pub fn story(&self, task: TaskId) -> Result<Vec<StoryLine>, JournalError> {
        let query = "SELECT at_ms, what FROM story WHERE task = ?1 ORDER BY seq";
        let mut statement = self.db.prepare_cached(query)?;
        let rows = statement.query_map([task.0], |row| {
            Ok(StoryLine { at: Moment(row.get::<_, i64>(0)? as u64), what: row.get(1)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

fn write_entry(db: &Connection, entry: &Entry) -> Result<(), JournalError> {
    match entry {
        Entry::Spec(id, spec) => {
            let query = "INSERT INTO specs (id, body) VALUES (?1, ?2)";
            db.prepare_cached(query)?.execute(params![id.0, json(&**spec)])?;
        }
        Entry::Task(record) => {
            let query = "INSERT OR REPLACE INTO tasks (id, over, ended_ms, body) \
                         VALUES (?1, ?2, ?3, ?4)";
            let ended = record.ended.map(|ended| ended.0 as i64);
            let over = record.phase.is_over();
            db.prepare_cached(query)?.execute(params![
                record.id.0,
                over,
                ended,
                json(&**record)
            ])?;
        }
        Entry::Story(task, line) => {
            let query = "INSERT INTO story (task, at_ms, what) VALUES (?1, ?2, ?3)";
            db.prepare_cached(query)?.execute(params![task.0, line.at.0 as i64, line.what])?;
        }
        Entry::Lesson(signature, lesson) => {
            let query =
                "INSERT OR REPLACE INTO lessons (signature, at_ms, body) VALUES (?1, ?2, ?3)";
            let now = Moment::now().0 as i64;
            db.prepare_cached(query)?.execute(params![signature, now, json(lesson)])?;
        }
        Entry::Key(keyed) => keys::write(db, keyed)?,
    }
    Ok(())
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records have no maps with keys that are not strings")
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, body: &str) -> Result<T, JournalError> {
    // As bytes, like everything else that is read: each other way to read is compiled for each type.
    serde_json::from_slice(body.as_bytes())
        .map_err(|error| JournalError::Garbled { what: what.to_owned(), error })
}
