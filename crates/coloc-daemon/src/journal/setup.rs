//! With which policy and GPUs a daemon ran, so that its history can be played again.

use super::table::{SETUPS, Work, number, text};
use super::{Journal, JournalError, json, parse, schema};
use coloc_api::moment::Moment;
use coloc_core::Policy;
use rusqlite::OptionalExtension as _;

/// The first version that has setups.
const SINCE: u32 = 2;

/// How a daemon was set up.
pub type Setup = coloc_api::past::Setup<Policy>;

pub(super) fn write(work: &mut Work<'_>, setup: &Setup) -> Result<(), JournalError> {
    let (at, body) = (Moment::now().0 as i64, json(setup));
    work.put(&SETUPS, &[number(at), text(&body)])
}

impl Journal {
    /// Writes down how a daemon is set up, if that has changed.
    pub fn note_setup(&mut self, setup: &Setup) -> Result<(), JournalError> {
        // One that cannot be read is one that has changed.
        if self.setup().is_ok_and(|last| last.as_ref() == Some(setup)) {
            return Ok(());
        }
        self.transact(|work, _| write(work, setup))
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
