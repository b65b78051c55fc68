//! With which policy and GPUs a daemon ran, so that its history can be played again.

use super::{Journal, JournalError, json, parse, schema};
use crate::record::Moment;
use coloc_core::Policy;
use coloc_model::GpuModel;
use rusqlite::OptionalExtension as _;
use serde::{Deserialize, Serialize};

/// The first version that has setups.
const SINCE: u32 = 2;

/// How a daemon was set up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// How it scheduled.
    pub policy: Policy,
    /// The GPUs of its machine.
    pub gpus: Vec<GpuModel>,
    /// The scheduler's seconds in one of the world's.
    pub time_scale: f64,
}

impl Journal {
    /// Writes down how a daemon is set up, if that has changed.
    pub fn note_setup(&mut self, setup: &Setup) -> Result<(), JournalError> {
        // One that cannot be read is one that has changed.
        if self.setup().is_ok_and(|last| last.as_ref() == Some(setup)) {
            return Ok(());
        }
        let query = "INSERT OR REPLACE INTO setups (at_ms, body) VALUES (?1, ?2)";
        self.db.execute(query, (Moment::now().0 as i64, json(setup)))?;
        Ok(())
    }

    /// How the last daemon was set up; `None` in a journal that does not say.
    pub fn setup(&self) -> Result<Option<Setup>, JournalError> {
        if schema::version(&self.db)? < SINCE {
            return Ok(None);
        }
        let query = "SELECT body FROM setups ORDER BY at_ms DESC LIMIT 1";
        let body = self.db.query_row(query, [], |row| row.get::<_, String>(0)).optional()?;
        body.map(|body| parse("the last setup", &body)).transpose()
    }
}
