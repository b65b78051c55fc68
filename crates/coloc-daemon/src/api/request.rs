//! What a request says. What cannot be read is refused in the form of every other refusal.

use super::answer::Failure;
use super::strict_json::{self, Unreadable};
use super::user_limits::BytesInFlight;
use super::{ApiState, LARGEST_REQUEST, Peer};
use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;

/// What takes longer to read than others should wait is read on another thread.
const LARGE: usize = 64 << 10;

/// A client that sends too much is listened to for so long, and so much, before the refusal: one that is hung up on
/// while it sends does not read why.
const LONGEST_FAREWELL: Duration = Duration::from_secs(10);
const LARGEST_FAREWELL: usize = 4 * LARGEST_REQUEST;

/// A JSON body, and the room that it takes until it is answered.
pub(super) struct Body<T>(pub T, pub BytesInFlight);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<ApiState>> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, api: &Arc<ApiState>) -> Result<Self, Failure> {
        let (mut parts, mut body) = request.into_parts();
        let peer = Peer::from_request_parts(&mut parts, api).await?;
        check_head(&parts)?;
        let mut held = api.user_limits.receive(peer.caller().uid);
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            let broken = |error: axum::Error| malformed(StatusCode::BAD_REQUEST, error.to_string());
            let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
            if text.len() + data.len() > LARGEST_REQUEST {
                drop((text, held));
                let _ = tokio::time::timeout(LONGEST_FAREWELL, discard(body)).await;
                return Err(too_large());
            }
            held.more(data.len())?;
            text.extend_from_slice(&data);
        }
        let read = match text.len() > LARGE {
            true => {
                crate::heap::burst_is_over();
                let read =
                    tokio::task::spawn_blocking(move || strict_json::from_slice(&text)).await;
                read.map_err(|_| Failure::Stopping)?
            }
            false => strict_json::from_slice(&text),
        };
        let value = read.map_err(|error| {
            let status = match error {
                Unreadable::Syntax(_) => StatusCode::BAD_REQUEST,
                Unreadable::Data(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            malformed(status, error.to_string())
        })?;
        Ok(Body(value, held))
    }
}

async fn discard(mut body: axum::body::Body) {
    let mut left = LARGEST_FAREWELL;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, |data| data.len());
        let Some(less) = left.checked_sub(length) else { return };
        left = less;
    }
}

fn malformed(status: StatusCode, what: String) -> Failure {
    Failure::Malformed(status, what)
}

fn too_large() -> Failure {
    let what = format!("a request has at most {} MiB", LARGEST_REQUEST >> 20);
    malformed(StatusCode::PAYLOAD_TOO_LARGE, what)
}

/// Refuses before anything is read what would be refused afterwards.
fn check_head(parts: &Parts) -> Result<(), Failure> {
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let kind = text(CONTENT_TYPE).and_then(|kind| kind.split(';').next()).unwrap_or("");
    if !kind.trim().eq_ignore_ascii_case("application/json") {
        let what = "a body is JSON: say so with `content-type: application/json`";
        return Err(malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, what.to_owned()));
    }
    match text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length > LARGEST_FAREWELL => Err(too_large()),
        _ => Ok(()),
    }
}

/// What follows the question mark.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = extract::Query::from_request_parts(parts, state).await;
        read.map(|extract::Query(query)| Query(query))
            .map_err(|wrong| Failure::Malformed(wrong.status(), wrong.body_text()))
    }
}

/// What stands in the path.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = extract::Path::from_request_parts(parts, state).await;
        read.map(|extract::Path(path)| Path(path))
            .map_err(|wrong| Failure::Malformed(wrong.status(), wrong.body_text()))
    }
}
