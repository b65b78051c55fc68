//! The daemon's HTTP interface: JSON over a Unix socket, where the kernel says who calls, and over TLS, where a token
//! does.

mod answer;
mod caller;
mod config;
mod door;
mod events;
mod expected;
mod list;
mod log;
mod openapi;
mod past;
mod request;
mod routes;
mod stall;
mod tasks;
mod tokens;
mod version;

pub use answer::{
    ApiError, Changed, Draining, Foreseen, Gpus, Listed, RefusedTask, Submitted, Taught, Versioned,
};
pub(crate) use answer::{BUSY, STOPPING};
use caller::Peer;
pub use config::{ConfigInForce, Reload};
pub(crate) use door::SILENCE;
pub use door::{serve, serve_remote};
pub(crate) use list::LINES;
pub use openapi::document;
pub use tokens::{Reach, TokenList, TokenMade, TokenRequest};
pub(crate) use version::SCHEMA_HEADER;

use crate::journal::Journal;
use crate::owner::{Answer, Caller, Command, Input, Refused, StatusView, TaskView, Teaching};
use crate::settings::Source;
use crate::tokens::Tokens;
use answer::Failure;
use axum::extract::DefaultBodyLimit;
use axum::{Json, Router};
use request::Body;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The version of every answer.
pub const SCHEMA: u32 = 1;
/// The largest request: a megabyte of environment fits several times.
const LARGEST_REQUEST: usize = 16 << 20;
/// An owner that has not answered by then is stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// What handlers need.
#[derive(Clone)]
pub struct Desk {
    /// The owner's inbox.
    pub inbox: mpsc::SyncSender<Input>,
    /// The journal's file, for what has ended.
    pub journal: PathBuf,
    /// Where attempts have their directories.
    pub runs: PathBuf,
    /// The GPUs are made of software.
    pub emulated: bool,
    /// What strangers show.
    pub tokens: Arc<Tokens>,
    /// Where the daemon can be reached from elsewhere.
    pub reach: Option<Reach>,
    /// Where settings come from.
    pub source: Arc<Source>,
    /// Changes of tasks.
    pub news: tokio::sync::broadcast::Sender<Arc<TaskView>>,
}

impl Desk {
    /// Asks the owner and waits.
    async fn ask(&self, caller: Caller, command: Command) -> Result<Answer, Failure> {
        self.begin(caller, command)?.await
    }

    /// Asks the owner; the answer can be waited for later.
    fn begin(
        &self,
        caller: Caller,
        command: Command,
    ) -> Result<impl Future<Output = Result<Answer, Failure>> + use<>, Failure> {
        let (reply, answer) = tokio::sync::oneshot::channel();
        let sent = self.inbox.try_send(Input::Command(caller, command, reply));
        sent.map_err(|error| match error {
            mpsc::TrySendError::Full(_) => Failure::Busy,
            mpsc::TrySendError::Disconnected(_) => Failure::Stopping,
        })?;
        Ok(async {
            match tokio::time::timeout(PATIENCE, answer).await {
                Ok(Ok(Answer::Refused(refused))) => Err(refused.into()),
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(_)) => Err(Failure::Stopping),
                Err(_) => Err(Failure::Busy),
            }
        })
    }

    /// Reads from the journal, away from the event loop.
    async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Journal) -> Result<T, crate::journal::JournalError> + Send + 'static,
    ) -> Result<T, Failure> {
        let path = self.journal.clone();
        let read = move || Journal::open_reader(&path).and_then(|journal| look(&journal));
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|_| Failure::Stopping)?.map_err(Failure::Journal)
    }
}

/// Serves every route.
pub fn router(desk: Desk) -> Router {
    let desk = Arc::new(desk);
    let served = routes::routes().into_iter();
    let router =
        served.fold(Router::new(), |router, route| router.route(route.path, route.handler));
    router
        .fallback(|uri: axum::http::Uri| async move { Failure::NoRoute(uri.path().to_owned()) })
        .method_not_allowed_fallback(|uri: axum::http::Uri| async move {
            let what = format!("{} is asked in another way: see GET /openapi.json", uri.path());
            Failure::Malformed(axum::http::StatusCode::METHOD_NOT_ALLOWED, what)
        })
        .layer(axum::middleware::from_fn_with_state(desk.clone(), caller::admit))
        .layer(axum::middleware::from_fn(version::agree))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(desk)
}

type State = axum::extract::State<Arc<Desk>>;

async fn gpus(desk: State, peer: Peer) -> Result<Json<Gpus>, Failure> {
    match desk.ask(peer.caller(), Command::Gpus).await? {
        Answer::Gpus(gpus) => Ok(Json(Gpus { schema: SCHEMA, emulated: desk.emulated, gpus })),
        other => Err(Failure::unexpected(other)),
    }
}

async fn status(desk: State, peer: Peer) -> Result<Json<Versioned<StatusView>>, Failure> {
    match desk.ask(peer.caller(), Command::Status).await? {
        Answer::Status(status) => Ok(Json(Versioned::new(status))),
        other => Err(Failure::unexpected(other)),
    }
}

async fn teach(
    desk: State,
    peer: Peer,
    Body(teaching): Body<Teaching>,
) -> Result<Json<Versioned<Taught>>, Failure> {
    match desk.ask(peer.caller(), Command::Teach(Box::new(teaching))).await? {
        Answer::Taught => Ok(Json(Versioned::new(Taught { taught: true }))),
        other => Err(Failure::unexpected(other)),
    }
}

async fn drain(
    desk: State,
    peer: Peer,
    Body(draining): Body<bool>,
) -> Result<Json<Versioned<Draining>>, Failure> {
    match desk.ask(peer.caller(), Command::Drain(draining)).await? {
        Answer::Done => Ok(Json(Versioned::new(Draining { draining }))),
        other => Err(Failure::unexpected(other)),
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::Refused(refused)
    }
}
