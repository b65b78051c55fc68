//! Connections: how many, of which users, and how long a client may say or hear nothing on one.

use super::Peer;
use super::bare_refusals::{BareRefusals, refusal};
use super::stall::Stalling;
use super::unauthenticated::{Unauthenticated, UnauthenticatedConnection};
use super::user_limits::UserLimits;
use super::web::{Door, with_page};
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use coloc_api::SILENCE;
use coloc_api::answer::code::BUSY;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::process::{Resource, getrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// The same where places are scarce: a silent client makes room for one that has something to say.
const SILENCE_IN_A_CROWD: Duration = Duration::from_secs(2);
/// No question takes longer, its sending included: a wait is answered before.
const SLOWEST: Duration = Duration::from_secs(90);
/// A client that reads nothing of an answer for this long is hung up on.
const UNREAD: Duration = Duration::from_secs(60);
/// Heads of questions are shorter than this, and no more of a question or an answer is held at once.
const MOST_BUFFERED: usize = 128 << 10;
/// An unauthenticated connection has this long to agree on keys.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Connections at once where metrics are read.
pub(super) const MOST_SCRAPERS: usize = 16;
/// Files that the daemon needs for itself.
const OWN_FILES: u64 = 192;
/// The most connections over the network on which a token was shown.
const MOST_REMOTE: usize = 512;
/// The most on which none was shown.
const MOST_STRANGERS: usize = 256;
/// Connections at once on which a refusal is told; others are just hung up on.
const MOST_REFUSALS: usize = 16;
/// Where fewer than one place in this many are free, places are scarce; the network has as many of them at most.
const SHARE: usize = 4;
/// Places that only administrators get: many users together must not keep them from seeing to it.
const KEPT_FOR_ADMINISTRATORS: usize = 32;
/// What other users hear when only those places are left.
const ALL_TAKEN: &str = "all connections of the daemon are taken: try again in a moment";
/// When the system has no room for a connection, it is asked again after this long.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves every client that connects to the socket, for ever.
pub async fn serve(listener: UnixListener, router: Router, user_limits: Arc<UserLimits>) {
    let most = most_connections();
    let room = Arc::new(Semaphore::new(most));
    let kept = KEPT_FOR_ADMINISTRATORS.min(most / 8);
    let refusals = Arc::new(Semaphore::new(MOST_REFUSALS));
    tokio::spawn(crate::heap::give_back());
    loop {
        // A client that connects when all places are taken waits to be accepted.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let peer = Peer::of(&stream);
                let is_full = !peer.caller().admin && room.available_permits() < kept;
                let theirs = match user_limits.connect(peer.caller()) {
                    Ok(theirs) if !is_full => theirs,
                    other => {
                        let said = match other {
                            Ok(_) => refusal("503 Service Unavailable", BUSY, ALL_TAKEN),
                            Err(refused) => {
                                let why = refused.to_string();
                                refusal("429 Too Many Requests", "over_limit", &why)
                            }
                        };
                        if let Ok(turn) = refusals.clone().try_acquire_owned() {
                            tokio::spawn(refuse(stream, said, (place, turn)));
                        }
                        continue;
                    }
                };
                let crowded = room.available_permits() < most / SHARE;
                let silence = if crowded { SILENCE_IN_A_CROWD } else { SILENCE };
                let connection = converse(stream, Who::Known(peer), silence, router.clone());
                tokio::spawn(async move {
                    connection.await;
                    drop((place, theirs));
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Tells why a connection is refused, once something was asked on it: clients take nothing for an answer before.
async fn refuse(mut stream: UnixStream, said: Vec<u8>, _turn: impl Send) {
    let tell = async {
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(&said).await;
    };
    let _ = tokio::time::timeout(SILENCE_IN_A_CROWD, tell).await;
}

/// Serves every client that connects over the network, for ever. Without TLS nothing is said but that. No client waits
/// to be accepted: a new one can show a token although others say nothing.
pub async fn serve_remote(listener: TcpListener, tls: TlsAcceptor, router: Router) {
    let router = with_page(router, Door::Network);
    let most = most_connections() / SHARE;
    let unauthenticated =
        Unauthenticated::new(MOST_STRANGERS.min(most / 2), MOST_REMOTE.min(most / 2));
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (tls, router) = (tls.clone(), router.clone());
                let newcomer = unauthenticated.admit(from.ip());
                tokio::spawn(async move {
                    tokio::select! {
                        () = meet(stream, &tls, newcomer.clone(), router) => {}
                        () = newcomer.sent_away() => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Serves every client that connects to the page on this machine, for ever: in the clear, with the bounds of the network.
pub async fn serve_page(listener: TcpListener, router: Router, anonymous: bool) {
    let router = with_page(router, Door::Loopback { anonymous });
    let most = most_connections() / SHARE;
    // All come from one address: its share is all of them.
    let strangers = MOST_STRANGERS.min(most / 2);
    let unauthenticated = Unauthenticated::new(strangers, MOST_REMOTE.min(most / 2));
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let _ = stream.set_nodelay(true);
                let newcomer = unauthenticated.admit(from.ip());
                let who = Who::UnauthenticatedConnection(newcomer.clone());
                let connection = converse(stream, who, SILENCE, router.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = newcomer.sent_away() => {}
                    }
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

async fn meet(
    stream: TcpStream,
    tls: &TlsAcceptor,
    who: Arc<UnauthenticatedConnection>,
    router: Router,
) {
    let agreed = tokio::time::timeout(HANDSHAKE, agree(stream, tls)).await;
    if let Ok(Some(stream)) = agreed {
        converse(stream, Who::UnauthenticatedConnection(who), SILENCE, router).await;
    }
}

/// The client at the other end.
#[derive(Clone)]
enum Who {
    /// As the kernel says.
    Known(Peer),
    /// As a token will say.
    UnauthenticatedConnection(Arc<UnauthenticatedConnection>),
    /// Nothing says, and nothing depends on it.
    Anyone,
}

/// Serves every client that connects in the clear, at most so many at once, without asking which user it is: the router
/// is to have nothing in it that is not for all who can connect.
pub(super) async fn serve_open(listener: TcpListener, router: Router, most: usize) {
    let room = Arc::new(Semaphore::new(most));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = converse(stream, Who::Anyone, SILENCE_IN_A_CROWD, router.clone());
                tokio::spawn(async move {
                    connection.await;
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
        let said = refusal("400 Bad Request", "malformed", "this port speaks TLS: use https");
        stream.write_all(&said).await.ok()?;
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

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    who: Who,
    silence: Duration,
    router: Router,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        match who.clone() {
            Who::Known(peer) => drop(request.extensions_mut().insert(peer)),
            Who::UnauthenticatedConnection(newcomer) => {
                drop(request.extensions_mut().insert(newcomer))
            }
            Who::Anyone => {}
        }
        let answer = tokio::time::timeout(SLOWEST, router.call(request));
        async { answer.await.map(|Ok(answer)| answer) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(silence)
        .max_buf_size(MOST_BUFFERED)
        .serve_connection(TokioIo::new(BareRefusals::new(Stalling::new(stream, UNREAD))), service);
    // Whatever went wrong on it, the connection is over, and its client knows.
    let _ = connection.await;
}
