//! A task's output, piece by piece.

use super::answer::Failure;
use super::request::{Path, Query};
use super::tasks::detail;
use super::{Peer, State};
use axum::http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{Read as _, Seek as _, SeekFrom};

/// The most of a log in one answer.
const MOST: u64 = 1 << 20;

/// Which part of a log.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LogRequest {
    /// From this byte on.
    pub offset: u64,
}

/// The log from an offset on; the header `x-state` says where the task stands, so that a reader knows when no more
/// will come.
pub(super) async fn read(
    desk: State,
    peer: Peer,
    Path(id): Path<u32>,
    Query(LogRequest { offset }): Query<LogRequest>,
) -> Result<(HeaderMap, Vec<u8>), Failure> {
    let task = detail(&desk, peer, id).await?;
    let caller = peer.caller();
    if task.task.user != crate::users::name(caller.uid) && !caller.admin {
        return Err(Failure::NotYours(id));
    }
    let path = task.log.clone();
    let read = move || -> std::io::Result<Vec<u8>> {
        let owner = (!caller.admin).then_some(caller.uid);
        let mut file = match crate::run::open_plain(path.as_ref(), owner) {
            // A task that waits has said nothing yet.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        file.seek(SeekFrom::Start(offset))?;
        let mut part = Vec::new();
        file.take(MOST).read_to_end(&mut part)?;
        Ok(part)
    };
    let part = tokio::task::spawn_blocking(read).await.map_err(|_| Failure::Stopping)?;
    let part = part.map_err(|error| Failure::File(task.log.clone(), error))?;
    let mut headers = HeaderMap::new();
    if let Ok(state) = task.task.state.name().parse() {
        headers.insert("x-state", state);
    }
    Ok((headers, part))
}
