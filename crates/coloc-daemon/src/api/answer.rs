//! Bodies of answers, and what an error looks like.

use crate::foresee::Expected;
use crate::journal::JournalError;
use crate::owner::{Answer, GpuView, Refused, TaskView};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

/// Tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// The version of the answer.
    pub schema: u32,
    /// The tasks, oldest first.
    pub tasks: Vec<TaskView>,
}

/// Tasks that are on the disk.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Submitted {
    /// The version of the answer.
    pub schema: u32,
    /// Their ids.
    pub ids: Vec<u32>,
}

/// What became of wishes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Changed {
    /// The version of the answer.
    pub schema: u32,
    /// Tasks that were changed.
    pub done: Vec<u32>,
    /// Tasks that were not, and why.
    pub refused: Vec<(u32, String)>,
}

/// GPUs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Gpus {
    /// The version of the answer.
    pub schema: u32,
    /// The GPUs.
    pub gpus: Vec<GpuView>,
}

/// What is expected of tasks.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Foreseen {
    /// The version of the answer.
    pub schema: u32,
    /// Those that have not ended.
    pub tasks: Vec<Expected>,
}

/// What went wrong, for a program.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApiError {
    /// For people.
    pub error: String,
}

/// A request that was not fulfilled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// The owner says no.
    #[error("{0}")]
    Refused(Refused),
    /// There is no such task, ended or not.
    #[error("there is no task {0}")]
    NoTask(u32),
    /// The caller may not see it.
    #[error("task {0} belongs to another user")]
    NotYours(u32),
    /// The inbox is full.
    #[error("the daemon has more to do than it can: try again in a moment")]
    Busy,
    /// The owner is gone.
    #[error("the daemon is stopping")]
    Stopping,
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(JournalError),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// A mistake of ours.
    #[error("the daemon answered something else than was asked: {0}")]
    Unexpected(String),
}

impl Failure {
    pub(super) fn unexpected(answer: Answer) -> Self {
        Failure::Unexpected(format!("{answer:?}").chars().take(80).collect())
    }

    fn status(&self) -> StatusCode {
        match self {
            Failure::NoTask(_) | Failure::Refused(Refused::NoSuchTask(_)) => StatusCode::NOT_FOUND,
            Failure::NotYours(_)
            | Failure::Refused(
                Refused::NotYours(_) | Refused::NotAdmin | Refused::PriorityAboveZero,
            ) => StatusCode::FORBIDDEN,
            Failure::Refused(Refused::Invalid(_) | Refused::TooManyToForesee { .. }) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Failure::Refused(Refused::WrongPhase { .. }) => StatusCode::CONFLICT,
            Failure::Refused(Refused::DiskFull) => StatusCode::INSUFFICIENT_STORAGE,
            Failure::Refused(Refused::Draining) | Failure::Busy | Failure::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Failure::File(..) => StatusCode::NOT_FOUND,
            Failure::Journal(_) | Failure::Unexpected(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.status(), Json(ApiError { error: self.to_string() })).into_response()
    }
}
