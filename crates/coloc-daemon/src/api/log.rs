//! A task's output, piece by piece.

use super::answer::Failure;
use super::request::{Path, Query};
use super::tasks::detail;
use super::{Peer, State};
use crate::run::{self, RunDir};
use axum::http::{HeaderMap, HeaderValue};
use coloc_model::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The most of a log in one answer.
const MOST: u64 = 1 << 20;

/// Which part of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogRequest {
    /// From this byte on.
    pub offset: u64,
    /// Of this attempt, the first being 1; of the last if it is left out.
    pub attempt: Option<u32>,
}

/// The output from an offset on, and what a reader needs to go on: where the task stands (`x-state`), where the part begins
/// (`x-offset`, later than asked for where that is gone), whose attempt it is (`x-attempt`, 0 where all of them write to
/// one file of the user's) and which is the last (`x-attempts`).
pub(super) async fn read(
    desk: State,
    peer: Peer,
    Path(id): Path<u32>,
    Query(LogRequest { offset, attempt }): Query<LogRequest>,
) -> Result<(HeaderMap, Vec<u8>), Failure> {
    let task = detail(&desk, peer, id).await?;
    let caller = peer.caller();
    if task.task.user != crate::users::name(caller.uid) && !caller.admin {
        return Err(Failure::NotYours(id));
    }
    if task.log_removed {
        return Err(Failure::Removed(id));
    }
    let last = task.task.attempts;
    let own = RunDir::of(&desk.runs, TaskId(id), last).log() == std::path::Path::new(&task.log);
    let attempt = if own { attempt.unwrap_or(last).max(1) } else { 0 };
    let (dir, path) = (RunDir::of(&desk.runs, TaskId(id), attempt), task.log.clone());
    let read = move || {
        let owner = (!caller.admin).then_some(caller.uid);
        match own {
            true => dir.output(offset, MOST, owner),
            false => run::of_file(path.as_ref(), offset, MOST, owner),
        }
    };
    let part = tokio::task::spawn_blocking(read).await.map_err(|_| Failure::Stopping)?;
    let part = part.map_err(|error| Failure::File(task.log.clone(), error))?;
    let mut headers = HeaderMap::new();
    headers.insert("x-state", HeaderValue::from_static(task.task.state.name()));
    headers.insert("x-offset", part.from.into());
    headers.insert("x-attempt", attempt.into());
    headers.insert("x-attempts", last.into());
    Ok((headers, part.bytes))
}
