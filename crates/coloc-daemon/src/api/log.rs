//! A task's output, piece by piece, or as it is written.

use super::answer::Failure;
use super::caller::token_in;
use super::request::{Path, Query};
use super::tasks::detail;
use super::{Peer, State};
use crate::executor::local::run::{NotRead, Output, Part, READERS, Reads, RunDir};
use crate::file_changes::Watched;
use crate::news::{Kind, Told};
use crate::owner::Shown;
use crate::record::Uid;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use coloc_api::moment::Moment;
use coloc_api::request::LogRequest;
use coloc_api::view::TaskView;
use coloc_model::TaskId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The most of a log in one answer.
const MOST: u64 = 1 << 20;
/// A part of a log is there by then, or its file system hangs.
const DEADLINE: Duration = Duration::from_secs(10);
/// What is written within this time is one piece.
const GATHERED: Duration = Duration::from_millis(20);
/// A file of which the kernel tells nothing, or that is not there yet, is looked at this often.
const LOOK: Duration = Duration::from_secs(1);
/// The others too now and then: a file may be replaced by another, and a token withdrawn.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The output from an offset on, and what a reader needs to go on: where the task stands (`x-state`), where the part begins
/// (`x-offset`, later than asked for where that is gone), whose attempt it is (`x-attempt`, 0 where all of them write to
/// one file of the user's) and which is the last (`x-attempts`).
pub(super) async fn read(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
    request_headers: HeaderMap,
    Query(LogRequest { offset, attempt, follow }): Query<LogRequest>,
) -> Result<Response, Failure> {
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
    let file = task.log.clone();
    let part = read_part(output.clone(), owner, offset).await.map_err(|e| e.of(&file))?;
    let mut headers = HeaderMap::new();
    headers.insert("x-state", HeaderValue::from_static(task.task.state.name()));
    headers.insert("x-offset", part.from.into());
    headers.insert("x-attempt", attempt.into());
    headers.insert("x-attempts", last.into());
    if !follow {
        return Ok((headers, part.bytes).into_response());
    }
    let token = token_in(&request_headers).filter(|_| peer.by_token).map(str::to_owned);
    let next = part.from + part.bytes.len() as u64;
    let news = api.news.subscribe();
    let follower = Follower {
        api,
        peer,
        id,
        attempt,
        owner,
        output,
        next,
        token,
        news,
        watched: None,
        looked: false,
        more: true,
    };
    let rest = futures_util::stream::unfold(follower, |mut follower| async move {
        follower.next().await.map(|piece| (piece, follower))
    });
    let first = futures_util::stream::iter([Ok(Bytes::from(part.bytes))]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, rest));
    Ok((headers, body).into_response())
}

/// The attempt writes nothing more.
fn has_ended(task: &TaskView, attempt: u32) -> bool {
    let of_this = attempt == 0 || task.attempts == attempt;
    task.state.is_over()
        || task.attempts > attempt.max(1)
        || (of_this && task.attempts > 0 && !task.state.is_on_gpus())
}

/// A client that reads on.
struct Follower {
    api: State,
    peer: Peer,
    id: u32,
    attempt: u32,
    owner: Uid,
    output: Output,
    next: u64,
    token: Option<String>,
    news: broadcast::Receiver<Arc<Told>>,
    /// The kernel tells when the output changes.
    watched: Option<Watched>,
    /// Whether the attempt goes on was asked since the task last changed.
    looked: bool,
    /// The last piece was as long as one can be.
    more: bool,
}

impl Follower {
    /// What was written next; `None` once all was said, or the client's token is of no use any more.
    async fn next(&mut self) -> Option<Result<Bytes, std::io::Error>> {
        if !self.more {
            tokio::time::sleep(GATHERED).await;
        }
        loop {
            // Asked before the file is read: what an attempt wrote before its end is there then.
            let ended = !std::mem::replace(&mut self.looked, true) && self.is_over().await;
            let part = match self.read().await {
                Ok(part) => part,
                Err(Unread::Not(_)) => Part { from: self.next, bytes: Vec::new() },
                Err(Unread::Io(error)) => return Some(Err(error)),
            };
            let withdrawn = |token: &str| self.api.tokens.admit(Moment::now(), token).is_err();
            if self.token.as_deref().is_some_and(withdrawn) {
                return None;
            }
            if !part.bytes.is_empty() {
                self.next = part.from + part.bytes.len() as u64;
                self.more = part.bytes.len() as u64 >= MOST;
                // An end that was asked for before this is to be asked for again.
                self.looked = !ended;
                return Some(Ok(Bytes::from(part.bytes)));
            }
            if ended {
                return None;
            }
            self.wait().await;
            tokio::time::sleep(GATHERED).await;
        }
    }

    /// Reads on; what is not watched yet is watched first, so that nothing is written in between unheard.
    async fn read(&mut self) -> Result<Part, Unread> {
        let (output, owner, from) = (self.output.clone(), self.owner, self.next);
        let changes = self.watched.is_none().then(|| self.api.file_changes.clone());
        let (watched, part) = on_reader(self.output.reads(owner), move || {
            let watched = changes.and_then(|changes| output.watch(owner, &changes).ok());
            Ok((watched, output.part(owner, from, MOST)?))
        })
        .await?;
        self.watched = self.watched.take().or(watched);
        Ok(part)
    }

    /// Waits until the output or the task changes, or it is time to look.
    async fn wait(&mut self) {
        let Follower { watched, news, .. } = self;
        let look = if watched.is_some() { LOOK_AGAIN } else { LOOK };
        let changed = async {
            match watched.as_mut() {
                Some(watched) => watched.changed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            there = changed => if !there { self.watched = None },
            () = of_task(news, TaskId(self.id)) => self.looked = false,
            () = tokio::time::sleep(look) => {
                self.looked = false;
                self.watched = None;
            }
        }
    }

    async fn is_over(&self) -> bool {
        match detail(&self.api, self.peer, self.id).await {
            Ok(shown) => has_ended(&shown.detail.task, self.attempt),
            Err(Failure::Busy) => false,
            Err(_) => true,
        }
    }
}

enum Unread {
    Not(NotRead),
    Io(std::io::Error),
}

impl Unread {
    fn of(self, file: &str) -> Failure {
        match self {
            Unread::Not(why) => Failure::NotRead(file.to_owned(), why),
            Unread::Io(error) => Failure::File(file.to_owned(), error),
        }
    }
}

async fn read_part(output: Output, owner: Uid, offset: i64) -> Result<Part, Unread> {
    on_reader(output.reads(owner), move || {
        let from = match u64::try_from(offset) {
            Ok(from) => from,
            Err(_) => output.before_end(owner, offset.unsigned_abs())?,
        };
        output.part(owner, from, MOST)
    })
    .await
}

/// Has a thread that reads outputs do something.
async fn on_reader<T: Send + 'static>(
    reads: Reads,
    read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Unread> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let job = move || {
        // A client that has hung up meanwhile wants nothing any more.
        if !tell.is_closed() {
            let _ = tell.send(read());
        }
    };
    READERS.begin(reads, job).map_err(Unread::Not)?;
    let answer = tokio::time::timeout(DEADLINE, told).await.ok().and_then(Result::ok);
    answer.ok_or(Unread::Not(NotRead::Late))?.map_err(Unread::Io)
}

/// Waits until a task is not as it was, or that may have been missed.
async fn of_task(news: &mut broadcast::Receiver<Arc<Told>>, task: TaskId) {
    loop {
        match news.recv().await {
            Ok(told) if told.task == Some(task) || told.kind == Kind::Missed => return,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
