//! Live views: changes of tasks as they happen.

use super::answer::Failure;
use super::caller::token_in;
use super::request::Path;
use super::tasks::detail;
use super::{Peer, State};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use coloc_api::answer::Versioned;
use coloc_api::moment::Moment;
use coloc_api::view::TaskDetail;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// A wait is answered at the latest then, and asked again by a client that still waits.
const LONGEST_WAIT: Duration = Duration::from_secs(50);

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
                Ok(Ok(view)) if view.id == id && view.state.is_over() => break,
                Ok(Ok(_)) => {}
                // Something was missed, or the time is over: look again.
                Ok(Err(RecvError::Lagged(_))) | Err(_) => break,
                Ok(Err(RecvError::Closed)) => return Err(Failure::Stopping),
            }
        }
    }
}

/// Every change of every task, as server-sent events. A client over the network hears nothing more once its token is revoked or
/// has expired.
pub(super) async fn stream(
    api: State,
    peer: Peer,
    headers: HeaderMap,
) -> Sse<impl futures_core::Stream<Item = Result<Event, Infallible>>> {
    let news = api.news.subscribe();
    let token = token_in(&headers).filter(|_| peer.by_token).map(str::to_owned);
    let changes = futures_util::stream::unfold((news, token), move |(mut news, token)| {
        let tokens = api.tokens.clone();
        async move {
            let received = news.recv().await;
            if token.as_deref().is_some_and(|token| tokens.admit(Moment::now(), token).is_err()) {
                return None;
            }
            let event = match received {
                Ok(view) => Event::default().event("task").json_data(&*view).ok()?,
                // A client that lags behind is told so, and lists anew.
                Err(RecvError::Lagged(_)) => Event::default().event("missed"),
                Err(RecvError::Closed) => return None,
            };
            Some((Ok(event), (news, token)))
        }
    });
    Sse::new(changes).keep_alive(KeepAlive::default())
}
