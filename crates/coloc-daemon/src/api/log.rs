//! A task's output, piece by piece.

use super::answer::Failure;
use super::request::{Path, Query};
use super::tasks::detail;
use super::{Peer, State};
use crate::executor::local::run::{NotRead, Output, Part, READERS, RunDir};
use crate::owner::Shown;
use crate::record::Uid;
use axum::http::{HeaderMap, HeaderValue};
use coloc_api::request::LogRequest;
use coloc_model::TaskId;
use std::time::Duration;

/// The most of a log in one answer.
const MOST: u64 = 1 << 20;
/// A part of a log is there by then, or its file system hangs.
const DEADLINE: Duration = Duration::from_secs(10);

/// The output from an offset on, and what a reader needs to go on: where the task stands (`x-state`), where the part begins
/// (`x-offset`, later than asked for where that is gone), whose attempt it is (`x-attempt`, 0 where all of them write to
/// one file of the user's) and which is the last (`x-attempts`).
pub(super) async fn read(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
    Query(LogRequest { offset, attempt }): Query<LogRequest>,
) -> Result<(HeaderMap, Vec<u8>), Failure> {
    let Shown { detail: task, owner, output: path } = detail(&api, peer, id).await?;
    let caller = peer.caller();
    if owner != caller.uid && !caller.admin {
        return Err(Failure::NotYours(id));
    }
    if task.log_removed {
        return Err(Failure::Removed(id));
    }
    let last = task.task.attempts;
    if let Some(asked) = attempt.filter(|asked| *asked > last.max(1)) {
        return Err(Failure::NoAttempt { task: id, asked, last });
    }
    let run = |attempt| RunDir::of(&api.runs, TaskId(id), attempt);
    let (attempt, output) = match Output::at(run(last), path) {
        Output::Log(_) => {
            let attempt = attempt.unwrap_or(last).max(1);
            (attempt, Output::Log(run(attempt)))
        }
        chosen => (0, chosen),
    };
    let part = read_part(output, owner, offset).await.map_err(|error| match error {
        Unread::Not(why) => Failure::NotRead(task.log.clone(), why),
        Unread::Io(error) => Failure::File(task.log.clone(), error),
    })?;
    let mut headers = HeaderMap::new();
    headers.insert("x-state", HeaderValue::from_static(task.task.state.name()));
    headers.insert("x-offset", part.from.into());
    headers.insert("x-attempt", attempt.into());
    headers.insert("x-attempts", last.into());
    Ok((headers, part.bytes))
}

enum Unread {
    Not(NotRead),
    Io(std::io::Error),
}

async fn read_part(output: Output, owner: Uid, offset: u64) -> Result<Part, Unread> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let reads = output.reads(owner);
    let read = move || {
        // A client that has hung up meanwhile wants nothing any more.
        if !tell.is_closed() {
            let _ = tell.send(output.part(owner, offset, MOST));
        }
    };
    READERS.begin(reads, read).map_err(Unread::Not)?;
    let part = tokio::time::timeout(DEADLINE, told).await.ok().and_then(Result::ok);
    part.ok_or(Unread::Not(NotRead::Late))?.map_err(Unread::Io)
}
