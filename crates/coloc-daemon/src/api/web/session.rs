//! Signing in: a code over the socket, and a token for the code.

use super::codes::LASTS;
use crate::api::answer::Failure;
use crate::api::request::Body;
use crate::api::strict_json;
use crate::api::{Peer, State};
use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use coloc_api::SCHEMA;
use coloc_api::answer::{WebCode, WebSession};
use coloc_api::moment::Moment;
use coloc_api::request::{WebCodeRequest, WebSessionRequest};
use std::time::{Duration, Instant};

/// Where a code is changed for a token: the one request that is answered to clients whom nothing names.
pub(in crate::api) const SESSION: &str = "/v1/web/session";
/// How long such a token is of use.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 3600);
/// Tokens of pages that one user has at a time; the oldest makes room.
const MOST_PAGES: usize = 20;
/// What such a token is called.
pub(in crate::api) const LABEL: &str = "web";
/// A code and what is around it are shorter.
const LONGEST: usize = 4096;

/// Gives a code to a user whom the kernel names.
pub(in crate::api) async fn code(
    api: State,
    peer: Peer,
    Body(request, _held): Body<WebCodeRequest>,
) -> Result<Json<WebCode>, Failure> {
    if !peer.is_named_by_kernel() {
        return Err(Failure::NotByToken);
    }
    let reach = api.reach.map(|reach| format!("https://{}", reach.address));
    let web = api.web.map(|address| format!("http://localhost:{}", address.port()));
    let page = web.or(reach).ok_or(Failure::NoPage)?;
    let made = api.codes.make(Instant::now(), peer.caller().uid, request.scope);
    let code = made.map_err(Failure::Token)?;
    let expires_s = Moment::now().secs() + LASTS.as_secs_f64();
    Ok(Json(WebCode { schema: SCHEMA, url: format!("{page}/#c={code}"), code, expires_s }))
}

/// Gives a token for a code.
pub(in crate::api) async fn session(
    api: State,
    request: Request,
) -> Result<Json<WebSession>, Failure> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/json")) {
        let what = "a body is JSON: say so with `content-type: application/json`".to_owned();
        return Err(Failure::Malformed(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
    }
    let malformed = |what: String| Failure::Malformed(StatusCode::BAD_REQUEST, what);
    let text = axum::body::to_bytes(request.into_body(), LONGEST).await;
    let text = text.map_err(|error| malformed(error.to_string()))?;
    let WebSessionRequest { code } =
        strict_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
    let (uid, scope) = api.codes.take(Instant::now(), &code).ok_or(Failure::NoCode)?;
    let (now, tokens) = (Moment::now(), api.tokens.clone());
    let expires = Moment(now.0 + SESSION_LASTS.as_millis() as u64);
    let made = tokio::task::spawn_blocking(move || {
        tokens.make_room(now, uid, LABEL, MOST_PAGES)?;
        tokens.create(now, uid, LABEL.to_owned(), Some(expires), scope)
    });
    let made = made.await.map_err(|_| Failure::Stopping)?;
    let (token, view) = made.map_err(Failure::Token)?;
    let expires_s = expires.secs();
    Ok(Json(WebSession { schema: SCHEMA, token, scope, user: view.user, expires_s }))
}
