//! The page of metrics: over the socket, over TLS with a token, and where `--metrics` says.

use super::answer::Failure;
use super::connections::{MOST_SCRAPERS, serve_open};
use super::web::is_this_machine;
use super::{ApiState, State};
use crate::owner::{Caller, Command};
use axum::Router;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::net::TcpListener;

impl ApiState {
    /// Everything that is counted and measured, in the form that a scraper asks for.
    pub(super) async fn metrics_page(&self, headers: &HeaderMap) -> Result<Response, Failure> {
        let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("");
        let ask = self.ask(Caller::DAEMON, Command::Metrics);
        let (kind, page) = self.metrics.page(accept, self.news.listeners(), ask).await?;
        let head = [
            (CONTENT_TYPE, HeaderValue::from_static(kind)),
            (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        ];
        Ok((head, page).into_response())
    }
}

/// Answers a scraper that is let in.
pub(super) async fn page(api: State, headers: HeaderMap) -> Result<Response, Failure> {
    api.metrics_page(&headers).await
}

/// Counts how a request is answered.
pub(super) async fn count(api: State, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let answer = next.run(request).await;
    api.metrics.requests.answered(answer.status(), began.elapsed());
    answer
}

/// On this machine alone, names that name servers decide about are refused: a page of another site could read what is here by one.
async fn own_name(own: SocketAddr, request: Request, next: Next) -> Response {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    match host.is_some_and(|host| is_this_machine(host) || host == own.to_string()) {
        true => next.run(request).await,
        false => Failure::WrongHost.into_response(),
    }
}

/// Serves the page and nothing else, without asking who reads it, for ever.
pub async fn serve(listener: TcpListener, api: ApiState) {
    let loopback = listener.local_addr().ok().filter(|address| address.ip().is_loopback());
    let router = Router::new()
        .route("/metrics", get(page))
        .fallback(|| async { (axum::http::StatusCode::NOT_FOUND, "see /metrics\n") })
        .with_state(Arc::new(api));
    let router = match loopback {
        Some(own) => router.layer(from_fn(move |request, next| own_name(own, request, next))),
        None => router,
    };
    serve_open(listener, router, MOST_SCRAPERS).await;
}
