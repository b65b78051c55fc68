//! Connections: how many, of whom, and how long somebody may say or hear nothing on one.

use super::Peer;
use super::stall::Stalling;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustc_hash::FxHashMap;
use rustix::process::{Resource, getrlimit};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Who has not asked by then is hung up on. A client that has been silent for long connects anew.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// The same where places are scarce: who has nothing to say makes room for who has.
const SILENCE_IN_A_CROWD: Duration = Duration::from_secs(2);
/// No question takes longer, its sending included: a wait is answered before.
const SLOWEST: Duration = Duration::from_secs(90);
/// Who reads nothing of an answer for this long is hung up on.
const UNREAD: Duration = Duration::from_secs(60);
/// Heads of questions are shorter than this, and no more of a question or an answer is held at once.
const MOST_BUFFERED: usize = 128 << 10;
/// A stranger has this long to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Files that the daemon needs for itself.
const OWN_FILES: u64 = 192;
/// The most connections over the network: strangers must not take the places of those who are here.
const MOST_REMOTE: usize = 512;
/// One user has at most one place in this many.
const SHARE: usize = 4;
/// When the system has no room for a connection, it is asked again after this long.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves whoever connects to the socket, for ever.
pub async fn serve(listener: UnixListener, router: Router) {
    let most = most_connections();
    let room = Arc::new(Semaphore::new(most));
    let guests = Guests { most: (most / SHARE).max(1), by_user: Arc::default() };
    loop {
        // Whoever comes when all places are taken waits at the door.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let peer = Peer::of(&stream);
                // Who has too many is hung up on: others would wait for them.
                let Some(guest) = guests.welcome(peer) else { continue };
                let crowded = room.available_permits() < most / SHARE;
                let silence = if crowded { SILENCE_IN_A_CROWD } else { SILENCE };
                let connection = converse(stream, Some(peer), silence, router.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop((place, guest));
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Serves whoever connects over the network, for ever. Without TLS nothing is said but that.
pub async fn serve_remote(listener: TcpListener, tls: TlsAcceptor, router: Router) {
    let room = Arc::new(Semaphore::new(MOST_REMOTE.min(most_connections() / SHARE)));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (tls, router) = (tls.clone(), router.clone());
                tokio::spawn(async move {
                    let agreed = tokio::time::timeout(HANDSHAKE, agree(stream, &tls)).await;
                    if let Ok(Some(stream)) = agreed {
                        converse(stream, None, SILENCE, router).await;
                    }
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

type Encrypted = tokio_rustls::server::TlsStream<TcpStream>;

async fn agree(mut stream: TcpStream, tls: &TlsAcceptor) -> Option<Encrypted> {
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    // A handshake begins with a byte that is no letter; a request in the clear with its method.
    if first[0].is_ascii_uppercase() {
        let said = "{\"schema\":1,\"error\":\"this port speaks TLS: use https\"}";
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{said}",
            said.len()
        );
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.shutdown().await.ok()?;
        return None;
    }
    let _ = stream.set_nodelay(true);
    tls.accept(stream).await.ok()
}

fn most_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    files.saturating_sub(OWN_FILES).clamp(16, 8192) as usize
}

/// How many connections each user has.
struct Guests {
    most: usize,
    by_user: Arc<Mutex<FxHashMap<Peer, usize>>>,
}

/// A user's place, given back when it goes.
struct Guest {
    peer: Peer,
    by_user: Arc<Mutex<FxHashMap<Peer, usize>>>,
}

fn counts(by_user: &Mutex<FxHashMap<Peer, usize>>) -> MutexGuard<'_, FxHashMap<Peer, usize>> {
    // Counting does not panic.
    by_user.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guests {
    fn welcome(&self, peer: Peer) -> Option<Guest> {
        let mut by_user = counts(&self.by_user);
        let here = by_user.entry(peer).or_default();
        let welcome = *here < self.most || peer.caller().admin;
        *here += usize::from(welcome);
        welcome.then(|| Guest { peer, by_user: self.by_user.clone() })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut by_user = counts(&self.by_user);
        if let Some(here) = by_user.get_mut(&self.peer) {
            *here -= 1;
            if *here == 0 {
                by_user.remove(&self.peer);
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Option<Peer>,
    silence: Duration,
    router: Router,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let answer = tokio::time::timeout(SLOWEST, router.call(request));
        async { answer.await.map(|Ok(answer)| answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(silence)
        .max_buf_size(MOST_BUFFERED)
        .serve_connection(TokioIo::new(Stalling::new(stream, UNREAD)), service);
    // Whatever went wrong on it, the connection is over, and its client knows.
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_cannot_take_every_place() {
        let guests = Guests { most: 2, by_user: Arc::default() };
        let nobody = Peer::test(65_533);
        let first = guests.welcome(nobody).expect("a place");
        let _second = guests.welcome(nobody).expect("a place");
        assert!(guests.welcome(nobody).is_none());
        assert!(guests.welcome(Peer::test(65_532)).is_some(), "another user");
        drop(first);
        assert!(guests.welcome(nobody).is_some(), "there is room again");
        assert!((0..9).all(|_| guests.welcome(Peer::test(0)).is_some()), "root may");
    }
}
