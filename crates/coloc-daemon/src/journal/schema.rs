//! The journal's tables, version by version. A released version is never edited: the next one migrates.

use super::JournalError;
use super::mark::Identity;
use super::seal::Seal;
use rusqlite::Connection;

/// What each version adds to the one before.
const MIGRATIONS: [&str; 8] = [
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
    // Every row has a checksum, and one row vouches for all.
    "CREATE TABLE seal (
         id INTEGER PRIMARY KEY CHECK (id = 1),
         identity TEXT NOT NULL,
         sequence INTEGER NOT NULL,
         total INTEGER NOT NULL,
         least_task INTEGER NOT NULL,
         least_spec INTEGER NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
     ALTER TABLE facts ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE specs ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE tasks ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE story ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE setups ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE lessons ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE keys ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
     CREATE TABLE gpus (uuid TEXT PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT, WITHOUT ROWID;
     CREATE TABLE shares (owner INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, sum INTEGER NOT NULL) STRICT;",
    "CREATE TABLE arrays (
         first INTEGER PRIMARY KEY,
         count INTEGER NOT NULL,
         body TEXT NOT NULL,
         indices TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;",
    "CREATE TABLE notices (id INTEGER PRIMARY KEY, body TEXT NOT NULL, sum INTEGER NOT NULL) STRICT;",
    // Attempts, decisions and what was measured, as data.
    "CREATE TABLE attempts (
         key INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         started_ms INTEGER NOT NULL,
         ended_ms INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX attempts_of_task ON attempts (task);
     CREATE INDEX ended_attempts ON attempts (ended_ms);
     CREATE TABLE decisions (
         seq INTEGER PRIMARY KEY,
         task INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;
     CREATE INDEX decisions_of_task ON decisions (task);
     CREATE TABLE series (
         task INTEGER PRIMARY KEY,
         at_ms INTEGER NOT NULL,
         body TEXT NOT NULL,
         sum INTEGER NOT NULL
     ) STRICT;",
];

/// The first version whose rows have checksums.
pub(super) const SEALED_SINCE: u32 = 5;

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

/// Brings a journal up to date; one that was not sealed becomes the journal of this identity.
pub(super) fn migrate(db: &mut Connection, identity: Identity) -> Result<(), JournalError> {
    let found = version(db)?;
    for (done, migration) in MIGRATIONS.iter().enumerate().skip(found as usize) {
        let version = done as u32 + 1;
        let transaction = db.transaction()?;
        transaction.execute_batch(migration)?;
        if version == SEALED_SINCE {
            Seal::begin(&transaction, identity, version)?;
        }
        transaction.pragma_update(None, "user_version", version)?;
        transaction.commit()?;
    }
    Ok(())
}
