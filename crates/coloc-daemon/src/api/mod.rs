//! The daemon's HTTP interface: JSON over a Unix socket, where the kernel says who calls.

mod answer;
mod caller;
mod door;
mod events;
mod expected;
mod list;
mod log;
mod past;
mod tasks;

pub use answer::{ApiError, Changed, Foreseen, Gpus, Listed, Submitted};
pub use caller::Peer;
pub(crate) use door::SILENCE;
pub use door::serve;
pub(crate) use list::LINES;

use crate::journal::Journal;
use crate::owner::{Answer, Caller, Command, Input, Refused, TaskView};
use answer::Failure;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Json, Router};
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

/// Every route.
pub fn router(desk: Desk) -> Router {
    Router::new()
        .route("/v1/tasks", post(tasks::submit).get(list::list))
        .route("/v1/tasks/change", post(tasks::change))
        .route("/v1/tasks/{id}", get(tasks::show))
        .route("/v1/tasks/{id}/why", get(tasks::why))
        .route("/v1/tasks/{id}/expected", get(expected::one))
        .route("/v1/expected", get(expected::all))
        .route("/v1/tasks/{id}/wait", get(events::wait))
        .route("/v1/tasks/{id}/log", get(log::read))
        .route("/v1/teach", post(teach))
        .route("/v1/past", get(past::read))
        .route("/v1/events", get(events::stream))
        .route("/v1/gpus", get(gpus))
        .route("/v1/status", get(status))
        .route("/v1/drain", post(drain))
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(Arc::new(desk))
}

type State = axum::extract::State<Arc<Desk>>;

async fn gpus(desk: State, peer: Peer) -> Result<Json<Gpus>, Failure> {
    match desk.ask(peer.caller(), Command::Gpus).await? {
        Answer::Gpus(gpus) => Ok(Json(Gpus { schema: SCHEMA, gpus })),
        other => Err(Failure::unexpected(other)),
    }
}

async fn status(desk: State, peer: Peer) -> Result<Json<crate::owner::StatusView>, Failure> {
    match desk.ask(peer.caller(), Command::Status).await? {
        Answer::Status(status) => Ok(Json(status)),
        other => Err(Failure::unexpected(other)),
    }
}

async fn teach(
    desk: State,
    peer: Peer,
    Json(teaching): Json<crate::owner::Teaching>,
) -> Result<(), Failure> {
    match desk.ask(peer.caller(), Command::Teach(Box::new(teaching))).await? {
        Answer::Taught => Ok(()),
        other => Err(Failure::unexpected(other)),
    }
}

async fn drain(desk: State, peer: Peer, Json(draining): Json<bool>) -> Result<(), Failure> {
    match desk.ask(peer.caller(), Command::Drain(draining)).await? {
        Answer::Done => Ok(()),
        other => Err(Failure::unexpected(other)),
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        Failure::Refused(refused)
    }
}
