//! The journal's tables, version by version. A released version is never edited: the next one migrates.

use super::JournalError;
use rusqlite::Connection;

/// What each version adds to the one before.
const MIGRATIONS: [&str; 4] = [
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
     CREATE TABLE specs (id INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
     CREATE TABLE tasks (
         id INTEGER PRIMARY KEY,
         over INTEGER NOT NULL,
         ended_ms INTEGER,
         body TEXT NOT NULL
     ) STRICT;
     CREATE INDEX live_tasks ON tasks (id) WHERE over = 0;
     CREATE INDEX ended_tasks ON tasks (ended_ms) WHERE over = 1;
     CREATE TABLE story (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         at_ms INTEGER NOT NULL,
         what TEXT NOT NULL
     ) STRICT;
     CREATE INDEX story_of_task ON story (task);",
    "CREATE TABLE setups (at_ms INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;",
    "CREATE TABLE lessons (signature TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, body TEXT NOT NULL) STRICT;",
    "CREATE TABLE keys (
         owner INTEGER NOT NULL,
         key TEXT NOT NULL,
         at_ms INTEGER NOT NULL,
         first INTEGER NOT NULL,
         count INTEGER NOT NULL,
         PRIMARY KEY (owner, key)
     ) STRICT, WITHOUT ROWID;",
];

/// The version that this coloc writes.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// The version of a journal, if this coloc can read it.
pub(super) fn version(db: &Connection) -> Result<u32, JournalError> {
    let found: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if found > SCHEMA_VERSION {
        return Err(JournalError::TooNew { found });
    }
    Ok(found)
}

pub(super) fn migrate(db: &mut Connection) -> Result<(), JournalError> {
    let found = version(db)?;
    for (done, migration) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let transaction = db.transaction()?;
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", done as u32 + 1)?;
        transaction.commit()?;
    }
    Ok(())
}
