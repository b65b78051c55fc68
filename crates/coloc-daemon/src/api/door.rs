//! Connections: how many, and how long somebody may say nothing on one.

use super::Peer;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

/// Who has not asked by then is hung up on. A client that has been silent for long connects anew.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// No question takes longer, its sending included: a wait is answered before.
const SLOWEST: Duration = Duration::from_secs(90);
/// Files that the daemon needs for itself.
const OWN_FILES: u64 = 192;
/// When the system has no room for a connection, it is asked again after this long.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves whoever connects, for ever.
pub async fn serve(listener: UnixListener, router: Router) {
    let room = Arc::new(Semaphore::new(most_connections()));
    loop {
        // Whoever comes when all places are taken waits at the door.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = converse(stream, router.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn most_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    files.saturating_sub(OWN_FILES).clamp(16, 8192) as usize
}

async fn converse(stream: UnixStream, router: Router) {
    let peer = Peer::of(&stream);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        let answer = tokio::time::timeout(SLOWEST, router.call(request));
        async { answer.await.map(|Ok(answer)| answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever went wrong on it, the connection is over, and its client knows.
    let _ = connection.await;
}
