//! The daemon's HTTP interface: JSON over a Unix socket, where the kernel says who calls, and over TLS, where a token
//! does.

mod answer;
mod bare_refusals;
mod caller;
mod config;
mod connections;
mod events;
mod expected;
mod frames;
mod heavy_requests;
mod list;
mod log;
mod maxima;
mod metrics;
mod neighbours;
mod openapi;
mod past;
mod report;
mod request;
mod routes;
mod selection;
mod series;
mod stall;
mod stream_wrapper;
mod strict_json;
mod tasks;
mod timeline;
mod tokens;
mod unauthenticated;
mod user_limits;
mod version;
mod web;
mod whatif;

use caller::Peer;
use coloc_api::SCHEMA;
use coloc_api::answer::{Draining, Gpus, Served, Taught, Versioned};
pub use connections::{serve, serve_page, serve_remote};
pub use expected::LastForecast;
pub use heavy_requests::HeavyRequests;
pub use metrics::serve as serve_metrics;
pub use openapi::document;
pub use tokens::Reach;
pub use user_limits::UserLimits;
pub use web::Codes;

use crate::file_changes::FileChanges;
use crate::journal::Journal;
use crate::metrics::Exporter;
use crate::news::News;
use crate::owner::{Caller, Command, GpusServed, Input, Refused, Reply};
use crate::series::Series;
use crate::settings::Source;
use crate::tokens::Tokens;
use answer::Failure;
use axum::{Json, Router};
use coloc_api::request::{GpuReservation, GpuService, Teaching};
use coloc_api::view::StatusView;
use request::Body;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The largest request: a megabyte of environment fits several times.
const LARGEST_REQUEST: usize = 16 << 20;
/// Questions that need much memory are dealt with so many at once.
pub(crate) const HEAVY_AT_ONCE: usize = 3;
/// Threads that read the journal, and what else the event loop cannot wait for.
pub(crate) const BLOCKING_THREADS: usize = 32;
/// An owner that has not answered by then is stuck.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What handlers need.
#[derive(Clone)]
pub struct ApiState {
    /// The owner's inbox.
    pub inbox: mpsc::SyncSender<Input>,
    /// The journal's file, for what has ended.
    pub journal: PathBuf,
    /// Where attempts have their directories.
    pub runs: PathBuf,
    /// The GPUs are made of software.
    pub emulated: bool,
    /// What unauthenticated connections show.
    pub tokens: Arc<Tokens>,
    /// Where the daemon can be reached from elsewhere.
    pub reach: Option<Reach>,
    /// Where the page is served on this machine, if it is.
    pub web: Option<std::net::SocketAddr>,
    /// Codes that pages sign in with.
    pub codes: Arc<Codes>,
    /// Where settings come from.
    pub source: Arc<Source>,
    /// What users have of this interface, and may have.
    pub user_limits: Arc<UserLimits>,
    /// Heavy requests that are under way.
    pub heavy_requests: Arc<HeavyRequests>,
    /// Plays the past.
    pub whatif: Arc<crate::whatif::Worker>,
    /// What is measured over time.
    pub series: Arc<Series>,
    /// The last forecast of all tasks.
    pub forecast: Arc<LastForecast>,
    /// Makes the page of metrics.
    pub metrics: Arc<Exporter>,
    /// Changes of tasks.
    pub news: Arc<News>,
    /// Changes of files that clients read on.
    pub file_changes: Arc<FileChanges>,
}

/// An answer of the owner's that is on its way.
type Awaited<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

impl ApiState {
    /// Asks the owner and waits.
    async fn ask<T: Send + 'static>(
        &self,
        caller: Caller,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, Failure> {
        self.begin(caller, command)?.await
    }

    /// Asks the owner; the answer can be waited for later.
    fn begin<T: Send + 'static>(
        &self,
        caller: Caller,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<Awaited<T>, Failure> {
        let (reply, answer) = Reply::channel();
        let sent = self.inbox.try_send(Input::Command(caller, command(reply)));
        sent.map_err(|error| match error {
            mpsc::TrySendError::Full(_) => Failure::Busy,
            mpsc::TrySendError::Disconnected(_) => Failure::Stopping,
        })?;
        Ok(Box::pin(async {
            match tokio::time::timeout(TIMEOUT, answer).await {
                Ok(Ok(answer)) => Ok(answer?),
                Ok(Err(_)) => Err(Failure::Stopping),
                Err(_) => Err(Failure::Busy),
            }
        }))
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
pub fn router(api: ApiState) -> Router {
    let api = Arc::new(api);
    let served = routes::routes().into_iter();
    let router = served.fold(Router::new(), |router, route| {
        let handler = match route.acts {
            true => route.handler.layer(axum::middleware::from_fn(caller::refuse_readers)),
            false => route.handler,
        };
        router.route(route.path, handler)
    });
    router
        .fallback(|uri: axum::http::Uri| async move { Failure::NoRoute(uri.path().to_owned()) })
        .method_not_allowed_fallback(|uri: axum::http::Uri| async move {
            let what = format!("{} is asked in another way: see GET /openapi.json", uri.path());
            Failure::Malformed(axum::http::StatusCode::METHOD_NOT_ALLOWED, what)
        })
        .layer(axum::middleware::from_fn_with_state(api.clone(), caller::admit))
        .layer(axum::middleware::from_fn(version::agree))
        .layer(axum::middleware::from_fn_with_state(api.clone(), metrics::count))
        .with_state(api)
}

type State = axum::extract::State<Arc<ApiState>>;

async fn gpus(api: State, peer: Peer) -> Result<Json<Gpus>, Failure> {
    let (gpus, host) = api.ask(peer.caller(), Command::Gpus).await?;
    Ok(Json(Gpus { schema: SCHEMA, emulated: api.emulated, host, gpus }))
}

async fn status(api: State, peer: Peer) -> Result<Json<Versioned<StatusView>>, Failure> {
    let status = api.ask(peer.caller(), Command::Status).await?;
    Ok(Json(Versioned::new(StatusView { scope: peer.scope, ..status })))
}

async fn teach(
    api: State,
    peer: Peer,
    Body(teaching, _held): Body<Teaching>,
) -> Result<Json<Versioned<Taught>>, Failure> {
    api.ask(peer.caller(), |reply| Command::Teach(Box::new(teaching), reply)).await?;
    Ok(Json(Versioned::new(Taught { taught: true })))
}

async fn drain(
    api: State,
    peer: Peer,
    Body(draining, _held): Body<bool>,
) -> Result<Json<Versioned<Draining>>, Failure> {
    api.ask(peer.caller(), |reply| Command::Drain(draining, reply)).await?;
    Ok(Json(Versioned::new(Draining { draining })))
}

async fn serve_gpus(
    api: State,
    peer: Peer,
    Body(request, _held): Body<GpuService>,
) -> Result<Json<Served>, Failure> {
    let served = api.ask(peer.caller(), |reply| Command::ServeGpus(request, reply)).await?;
    let GpusServed { gpus, notes } = served;
    Ok(Json(Served { schema: SCHEMA, gpus, notes }))
}

async fn reserve_gpus(
    api: State,
    peer: Peer,
    Body(request, _held): Body<GpuReservation>,
) -> Result<Json<Served>, Failure> {
    let served = api.ask(peer.caller(), |reply| Command::ReserveGpus(request, reply)).await?;
    let GpusServed { gpus, notes } = served;
    Ok(Json(Served { schema: SCHEMA, gpus, notes }))
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::Refused(refused)
    }
}
