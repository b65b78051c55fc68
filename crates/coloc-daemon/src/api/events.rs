//! Live views: what changes, as it changes.

use super::answer::Failure;
use super::caller::token_in;
use super::request::{Path, Query};
use super::tasks::detail;
use super::{Peer, State};
use crate::news::{Heard, Kind, News, Told};
use crate::tokens::Tokens;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use coloc_api::answer::Versioned;
use coloc_api::moment::Moment;
use coloc_api::request::EventsRequest;
use coloc_api::view::TaskDetail;
use coloc_model::TaskId;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// A wait is answered at the latest then, and asked again by a client that still waits.
const LONGEST_WAIT: Duration = Duration::from_secs(50);
/// A stream without events says this often that it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Answers when a task has ended, or with how it stands after a while.
pub(super) async fn wait(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<TaskDetail>>, Failure> {
    let mut news = api.news.subscribe();
    let until = tokio::time::Instant::now() + LONGEST_WAIT;
    loop {
        let task = detail(&api, peer, id).await?.detail;
        if task.task.state.is_over() || tokio::time::Instant::now() >= until {
            return Ok(Json(Versioned::new(task)));
        }
        loop {
            match tokio::time::timeout_at(until, news.recv()).await {
                Ok(Ok(told)) if told.ended && told.task == Some(TaskId(id)) => break,
                Ok(Ok(told)) if told.kind == Kind::Missed => break,
                Ok(Ok(_)) => {}
                // Something was missed, or the time is over: look again.
                Ok(Err(RecvError::Lagged(_))) | Err(_) => break,
                Ok(Err(RecvError::Closed)) => return Err(Failure::Stopping),
            }
        }
    }
}

/// The kinds that a listener asks for.
fn kinds(asked: Option<&str>) -> Result<Vec<Kind>, Failure> {
    let unknown = |name: &str| {
        let what =
            format!("there are no events called {name:?}: task, sample, status and decision are");
        Failure::Malformed(StatusCode::BAD_REQUEST, what)
    };
    let names = asked.unwrap_or("task").split(',');
    names.map(|name| Kind::named(name).ok_or_else(|| unknown(name))).collect()
}

/// What happens, as server-sent events. A client over the network hears nothing more once its token is revoked or has expired.
pub(super) async fn stream(
    api: State,
    peer: Peer,
    headers: HeaderMap,
    Query(request): Query<EventsRequest>,
) -> Result<Response, Failure> {
    let kinds = kinds(request.kinds.as_deref())?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let token = token_in(&headers).filter(|_| peer.by_token).map(str::to_owned);
    let samples = kinds.contains(&Kind::Sample).then(|| api.news.samples());
    let Heard { hello, replay, live } = api.news.listen(Moment::now(), last);
    let mut first = VecDeque::new();
    let said = serde_json::to_string(&hello).unwrap_or_default();
    first.push_back(Bytes::from(format!("retry: 1000\nevent: hello\ndata: {said}\n\n")));
    match replay {
        Some(replay) => {
            let wanted = replay.iter().filter(|told| is_wanted(&kinds, told));
            first.extend(wanted.map(|told| told.text.clone()));
        }
        None => first.push_back(missed(&api.news)),
    }
    let tokens = api.tokens.clone();
    let listener = Listener { first, live, samples, kinds, token, tokens, news: api.news.clone() };
    let events = futures_util::stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    let head = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((head, Body::from_stream(events)).into_response())
}

fn is_wanted(kinds: &[Kind], told: &Told) -> bool {
    told.kind == Kind::Missed || kinds.contains(&told.kind)
}

/// The listener has to ask for lists anew; from here on it can come back.
fn missed(news: &News) -> Bytes {
    Bytes::from(format!("id: {}.{}\nevent: missed\ndata: {{}}\n\n", news.epoch(), news.seq()))
}

struct Listener {
    /// What it hears before anything else.
    first: VecDeque<Bytes>,
    live: broadcast::Receiver<Arc<Told>>,
    samples: Option<watch::Receiver<Bytes>>,
    kinds: Vec<Kind>,
    token: Option<String>,
    tokens: Arc<Tokens>,
    news: Arc<News>,
}

impl Listener {
    /// The next event; `None` if there will be none.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.pop_front() {
            return Some(first);
        }
        let event = loop {
            tokio::select! {
                biased;
                told = self.live.recv() => match told {
                    Ok(told) if is_wanted(&self.kinds, &told) => break told.text.clone(),
                    Ok(_) => {}
                    // A client that lags behind is told so, and lists anew.
                    Err(RecvError::Lagged(_)) => break missed(&self.news),
                    Err(RecvError::Closed) => return None,
                },
                frame = newest(&mut self.samples) => break frame?,
                () = tokio::time::sleep(KEEP_ALIVE) => break Bytes::from_static(b":\n\n"),
            }
        };
        let ended = |token: &str| self.tokens.admit(Moment::now(), token).is_err();
        (!self.token.as_deref().is_some_and(ended)).then_some(event)
    }
}

/// What the monitor sees next, for a listener that wants to see it.
async fn newest(samples: &mut Option<watch::Receiver<Bytes>>) -> Option<Bytes> {
    let Some(samples) = samples else { return std::future::pending().await };
    samples.changed().await.ok()?;
    Some(samples.borrow_and_update().clone())
}
