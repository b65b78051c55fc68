//! GPUs that take nothing new, by their names: numbers change with what is plugged in.

use super::table::{GPUS, Work, text};
use super::{Journal, JournalError, json, parse};
use crate::administration::Who;
use crate::record::Uid;
use coloc_api::moment::Moment;
use coloc_gpu::health::Condition;
use serde::{Deserialize, Serialize};

/// What is kept of a GPU.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct GpuRecord {
    /// Its name for good.
    pub uuid: String,
    /// It takes nothing new.
    pub drained: Option<Drain>,
    /// It takes only the tasks of some users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<Reserved>,
    /// Faults that were known to the administrator who let it take tasks again: only more than these drain it anew.
    pub accepted: Condition,
}

/// The users that a GPU is reserved for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reserved {
    /// They, and members of these groups.
    pub users: Vec<Who>,
    /// Until then; without it, until an administrator returns it.
    pub until: Option<Moment>,
    /// Why, for people.
    pub reason: Option<String>,
    /// The administrator.
    pub by: Uid,
}

/// Why a GPU takes nothing new.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Drain {
    /// Why, for people.
    pub reason: String,
    /// Since when.
    pub since: Moment,
    /// The user who drained it; `None` is the daemon itself, because of a fault.
    pub by: Option<Uid>,
}

pub(super) fn write(work: &mut Work<'_>, gpu: &GpuRecord) -> Result<(), JournalError> {
    work.put(&GPUS, &[text(&gpu.uuid), text(&json(gpu))])
}

impl Journal {
    /// Every GPU of which something is kept, whether it is there or not.
    pub(super) fn gpus(&self) -> Result<Vec<GpuRecord>, JournalError> {
        let mut statement = self.db.prepare(&self.query(&GPUS, "ORDER BY uuid"))?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, self.verified::<String>(&GPUS, row, 1)?)))?;
        let mut gpus = Vec::new();
        for row in rows {
            let (uuid, body): (String, Result<String, JournalError>) = row?;
            gpus.push(parse(&format!("GPU {uuid}"), &body?)?);
        }
        Ok(gpus)
    }
}
