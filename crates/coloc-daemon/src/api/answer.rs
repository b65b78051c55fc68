//! Bodies of answers, and what an error looks like.

use super::SCHEMA;
use crate::foresee::Expected;
use crate::journal::JournalError;
use crate::owner::{Answer, GpuView, Refused, TaskView};
use crate::tokens::TokenError;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An answer with the version of its schema.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
#[schemars(rename = "{T}Answer")]
pub struct Versioned<T> {
    /// The version of the answer.
    pub schema: u32,
    /// The answer.
    #[serde(flatten)]
    pub answer: T,
}

impl<T> Versioned<T> {
    /// An answer by today's schema.
    pub fn new(answer: T) -> Self {
        Versioned { schema: SCHEMA, answer }
    }
}

/// Whether the daemon starts nothing new.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Draining {
    /// It does not.
    pub draining: bool,
}

/// Whether what was measured is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Taught {
    /// It is, and on the disk.
    pub taught: bool,
}

/// Tasks.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Listed {
    /// The version of the answer.
    pub schema: u32,
    /// The tasks, oldest first.
    pub tasks: Vec<TaskView>,
}

/// Tasks that are on the disk.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Submitted {
    /// The version of the answer.
    pub schema: u32,
    /// Their ids.
    pub ids: Vec<u32>,
}

/// What became of wishes.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Changed {
    /// The version of the answer.
    pub schema: u32,
    /// Tasks that were changed.
    pub done: Vec<u32>,
    /// Tasks that were not, and why.
    pub refused: Vec<RefusedTask>,
}

/// A task that was not changed.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct RefusedTask {
    /// The task.
    pub id: u32,
    /// Why, for programs.
    pub code: String,
    /// Why, for people.
    pub message: String,
}

/// GPUs.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Gpus {
    /// The version of the answer.
    pub schema: u32,
    /// At least one of them is made of software.
    #[serde(default)]
    pub emulated: bool,
    /// The GPUs.
    pub gpus: Vec<GpuView>,
}

/// What is expected of tasks.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct Foreseen {
    /// The version of the answer.
    pub schema: u32,
    /// Those that have not ended.
    pub tasks: Vec<Expected>,
}

/// What went wrong, for a program.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
pub struct ApiError {
    /// The version of the answer.
    pub schema: u32,
    /// For people.
    pub error: String,
    /// For programs: a word that stays.
    #[serde(default)]
    pub code: String,
}

/// The code of a daemon that cannot answer just now.
pub(crate) const BUSY: &str = "busy";
/// The code of a daemon that is about to go.
pub(crate) const STOPPING: &str = "stopping";

/// A request that was not fulfilled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It cannot be read.
    #[error("{1}")]
    Malformed(StatusCode, String),
    /// Over the network somebody must say who calls.
    #[error("no token was shown: set COLOC_TOKEN, or send `authorization: Bearer …`")]
    NoToken,
    /// Or no new one was made.
    #[error(transparent)]
    Token(TokenError),
    /// What a token is not good for.
    #[error("a token cannot make tokens: `coloc token create` on the daemon's machine does")]
    NotByToken,
    /// Nobody answers there.
    #[error("there is no {0}: this daemon serves what GET /openapi.json lists")]
    NoRoute(String),
    /// The client is of another time.
    #[error(
        "the client speaks schema {0}, this daemon up to {SCHEMA}: update the daemon, or use an older client"
    )]
    Schema(String),
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
    /// Its time is over.
    #[error(
        "the log of task {0} is gone: what ended tasks leave is kept for a while only (--keep-logs)"
    )]
    Removed(u32),
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

    /// A word for programs; docs/api.md lists them.
    fn code(&self) -> &'static str {
        match self {
            Failure::Malformed(..) => "malformed",
            Failure::NoToken | Failure::Token(TokenError::Unknown) => "no_token",
            Failure::Token(TokenError::Expired | TokenError::Revoked) => "token_ended",
            Failure::Token(TokenError::NoToken(_)) => "no_such_token",
            Failure::Token(TokenError::TooMany) => "too_many",
            Failure::NotByToken => "not_by_token",
            Failure::NoRoute(_) => "no_such_route",
            Failure::Schema(_) => "schema",
            Failure::Refused(refused) => refused.code(),
            Failure::NoTask(task) => Refused::NoSuchTask(coloc_model::TaskId(*task)).code(),
            Failure::NotYours(task) => Refused::NotYours(coloc_model::TaskId(*task)).code(),
            Failure::Busy => BUSY,
            Failure::Stopping => STOPPING,
            Failure::File(..) => "no_file",
            Failure::Removed(_) => "removed",
            Failure::Journal(_)
            | Failure::Unexpected(_)
            | Failure::Token(TokenError::NoRandomness | TokenError::File { .. }) => "internal",
        }
    }

    fn status(&self) -> StatusCode {
        match self {
            Failure::Malformed(status, _) => *status,
            Failure::NoToken
            | Failure::Token(TokenError::Unknown | TokenError::Expired | TokenError::Revoked) => {
                StatusCode::UNAUTHORIZED
            }
            Failure::NotByToken => StatusCode::FORBIDDEN,
            Failure::Token(TokenError::NoToken(_)) => StatusCode::NOT_FOUND,
            Failure::Token(TokenError::TooMany) => StatusCode::CONFLICT,
            Failure::Token(TokenError::NoRandomness | TokenError::File { .. }) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Failure::Schema(_) => StatusCode::BAD_REQUEST,
            Failure::NoRoute(_) | Failure::NoTask(_) | Failure::Refused(Refused::NoSuchTask(_)) => {
                StatusCode::NOT_FOUND
            }
            Failure::NotYours(_)
            | Failure::Refused(
                Refused::NotYours(_) | Refused::NotAdmin | Refused::PriorityAboveZero,
            ) => StatusCode::FORBIDDEN,
            Failure::Refused(Refused::Invalid(_) | Refused::TooManyToForesee { .. }) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Failure::Refused(
                Refused::WrongPhase { .. } | Refused::NotHeld { .. } | Refused::NotRunning { .. },
            ) => StatusCode::CONFLICT,
            Failure::Refused(Refused::DiskFull | Refused::NotKept) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            Failure::Refused(Refused::Draining) | Failure::Busy | Failure::Stopping => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Failure::File(..) => StatusCode::NOT_FOUND,
            Failure::Removed(_) => StatusCode::GONE,
            Failure::Journal(_) | Failure::Unexpected(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (error, code) = (self.to_string(), self.code().to_owned());
        (self.status(), Json(ApiError { schema: SCHEMA, error, code })).into_response()
    }
}
