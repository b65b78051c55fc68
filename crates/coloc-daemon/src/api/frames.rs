//! Clients at running tasks: a connection that is upgraded, and passed on to the task's shim frame by frame.
//!
//! Which user may is the owner's to say, once, before the shim hears of it. What a client sends is looked at here: no frame that is
//! too long, or not a client's to send, gets to a shim.

use super::answer::Failure;
use super::caller::token_in;
use super::connections::Switching;
use super::request::{Body, Path, Query};
use super::{ApiState, Peer, State};
use crate::executor::local::run::{Attaching, RunDir, Visit};
use crate::owner::{self, Command};
use axum::extract::FromRequestParts;
use axum::http::header::{CONNECTION, UPGRADE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use coloc_api::frame::{Frame, LARGEST, PING, PROTOCOL};
use coloc_api::moment::Moment;
use coloc_api::request::{AttachRequest, ExecRequest};
use coloc_api::spec::TerminalSize;
use coloc_model::TaskId;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// A shim that was started a moment ago listens by then.
const STARTING: Duration = Duration::from_secs(5);
/// A shim answers by then, or hangs.
const ANSWER: Duration = Duration::from_secs(10);
/// A client that says nothing for this long is gone.
const SILENCE: Duration = PING.saturating_mul(3);
/// How often a token is looked at again.
const LOOK: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// A connection that can be upgraded.
pub(super) struct Upgrade {
    on: OnUpgrade,
    switching: Switching,
    token: Option<String>,
}

impl FromRequestParts<Arc<ApiState>> for Upgrade {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<ApiState>) -> Result<Self, Failure> {
        let peer = Peer::from_request_parts(parts, api).await?;
        let asks = |name, word: &str| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            let mut words = value.unwrap_or("").split(',');
            words.any(|said| said.trim().eq_ignore_ascii_case(word))
        };
        if !asks(CONNECTION, "upgrade") || !asks(UPGRADE, PROTOCOL) {
            return Err(Failure::NoUpgrade);
        }
        let on = parts.extensions.remove().ok_or(Failure::NoUpgrade)?;
        let switching = parts.extensions.get::<Switching>().cloned().ok_or(Failure::NoUpgrade)?;
        let token = token_in(&parts.headers).filter(|_| peer.by_token).map(str::to_owned);
        // A session of the page ends without this connection's hearing of it.
        if !peer.is_named_by_kernel() && token.is_none() {
            return Err(Failure::NoUpgrade);
        }
        Ok(Upgrade { on, switching, token })
    }
}

/// The terminal of a task.
pub(super) async fn attach(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
    Query(request): Query<AttachRequest>,
    upgrade: Upgrade,
) -> Result<Response, Failure> {
    let AttachRequest { read_only, rows, columns, from } = request;
    let size = rows.zip(columns).map(|(rows, columns)| TerminalSize { rows, columns });
    let attempt = allowed(&api, peer, id, owner::Visit::Attach).await?;
    let visit = Visit::Attach(Attaching { read_only, size, from });
    upgrade.pass_on(&api, id, attempt, &visit).await
}

/// A command beside a task's program.
pub(super) async fn exec(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
    upgrade: Upgrade,
    Body(request, _held): Body<ExecRequest>,
) -> Result<Response, Failure> {
    let wish = owner::Visit::Exec(Box::new(request.clone()));
    let attempt = allowed(&api, peer, id, wish).await?;
    upgrade.pass_on(&api, id, attempt, &Visit::Exec(request)).await
}

/// The input of a task's program.
pub(super) async fn input(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
    upgrade: Upgrade,
) -> Result<Response, Failure> {
    let attempt = allowed(&api, peer, id, owner::Visit::Input).await?;
    upgrade.pass_on(&api, id, attempt, &Visit::Input).await
}

async fn allowed(api: &ApiState, peer: Peer, id: u32, visit: owner::Visit) -> Result<u32, Failure> {
    api.ask(peer.caller(), |reply| Command::Visit(TaskId(id), visit, reply)).await
}

impl Upgrade {
    /// Tells the shim, and passes frames on from the moment that both sides have agreed.
    async fn pass_on(
        self,
        api: &Arc<ApiState>,
        id: u32,
        attempt: u32,
        visit: &Visit,
    ) -> Result<Response, Failure> {
        let run = RunDir::of(&api.runs, TaskId(id), attempt);
        let unreachable = |error: io::Error| Failure::NoShim(id, error.to_string());
        let shim = reach(&run).await.map_err(unreachable)?;
        let agreed = timeout(ANSWER, greet(shim, visit)).await;
        let silent = |_| Failure::NoShim(id, "its shim says nothing".to_owned());
        let (shim, answer) = agreed.map_err(silent)?.map_err(unreachable)?;
        if let Frame::Refused(code, why) = answer {
            return Err(Failure::Shim(id, code, why));
        }
        let Upgrade { on, switching, token } = self;
        let api = api.clone();
        tokio::spawn(async move {
            // From here on nothing of what passes is HTTP.
            switching.speaks_frames();
            if let Ok(client) = on.await {
                let is_admitted = |token: &str| api.tokens.admit(Moment::now(), token).is_ok();
                tunnel(TokioIo::new(client), shim, || token.as_deref().is_none_or(is_admitted))
                    .await;
            }
            // The client's place among the connections is given back with this.
            drop(switching);
        });
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
    }
}

/// Connects to the shim of an attempt, which is our own user's: the directory of its socket is.
async fn reach(run: &RunDir) -> io::Result<UnixStream> {
    let until = tokio::time::Instant::now() + STARTING;
    loop {
        let place = run.visits()?;
        let error = match UnixStream::connect(place.path()).await {
            Ok(shim) => return Ok(shim),
            Err(error) => error,
        };
        let is_starting = matches!(run.claimed(), Ok(None));
        let is_busy = error.kind() == io::ErrorKind::WouldBlock;
        if !(is_starting || is_busy) || tokio::time::Instant::now() >= until {
            return Err(match error.kind() {
                io::ErrorKind::NotFound => {
                    io::Error::other("it was started by an earlier version of the daemon")
                }
                io::ErrorKind::ConnectionRefused => io::Error::other("it has just ended"),
                _ => error,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn greet(mut shim: UnixStream, visit: &Visit) -> io::Result<(UnixStream, Frame)> {
    let body = serde_json::to_vec(visit)?;
    shim.write_all(&(body.len() as u32).to_be_bytes()).await?;
    shim.write_all(&body).await?;
    let mut head = [0; coloc_api::frame::HEAD];
    shim.read_exact(&mut head).await?;
    let [_, a, b, c, d] = head;
    let length = (u32::from_be_bytes([a, b, c, d]) as usize).min(LARGEST);
    let mut frame = head.to_vec();
    frame.resize(head.len() + length, 0);
    shim.read_exact(&mut frame[head.len()..]).await?;
    match Frame::take(&mut frame) {
        Ok(Some(answer @ (Frame::Accepted | Frame::Refused(..)))) => Ok((shim, answer)),
        _ => Err(io::Error::other("its shim is of another version")),
    }
}

/// Passes frames on until either side has gone, or the client may no more.
async fn tunnel(
    client: TokioIo<hyper::upgrade::Upgraded>,
    shim: UnixStream,
    is_admitted: impl Fn() -> bool,
) {
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let (mut from_shim, mut to_shim) = shim.into_split();
    let mut looks = tokio::time::interval(LOOK);
    let (mut come, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    let down = async {
        let _ = tokio::io::copy(&mut from_shim, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    let up = async {
        while let Ok(Ok(length @ 1..)) = timeout(SILENCE, from_client.read(&mut piece)).await {
            come.extend_from_slice(&piece[..length]);
            loop {
                match Frame::take(&mut come) {
                    Ok(Some(frame)) if frame.is_clients() => {
                        // A shim that has hung up has said something before: that is still passed on.
                        let _ = to_shim.write_all(&frame.bytes()).await;
                    }
                    Ok(None) => break,
                    Ok(Some(_)) | Err(_) => return,
                }
            }
        }
    };
    let ended = async {
        while is_admitted() {
            looks.tick().await;
        }
    };
    tokio::select! {
        () = down => return,
        () = up => {}
        () = ended => {}
    }
    let _ = timeout(ANSWER, to_shim.write_all(&Frame::Gone.bytes())).await;
}
