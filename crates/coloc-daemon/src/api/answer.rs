//! What an error looks like over the wire, and its status.

use crate::executor::local::run::NotRead;
use crate::journal::{JournalError, Trouble};
use crate::owner::Refused;
use crate::tokens::TokenError;
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use coloc_api::SCHEMA;
use coloc_api::answer::ApiError;
use coloc_api::answer::code::{BUSY, STOPPING};
use coloc_api::frame::PROTOCOL;

/// A request that was not fulfilled.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// It cannot be read.
    #[error("{1}")]
    Malformed(StatusCode, String),
    /// Over the network a token must say which user calls.
    #[error("no token was shown: set COLOC_TOKEN, or send `authorization: Bearer …`")]
    NoToken,
    /// Or no new one was made.
    #[error(transparent)]
    Token(TokenError),
    /// What a token is not good for.
    #[error("a token cannot make tokens: `coloc token create` on the daemon's machine does")]
    NotByToken,
    /// Nor one that may only look.
    #[error(
        "this token may look and do nothing else: `coloc token create`, or `coloc web --act`, makes one that may"
    )]
    ReadOnly,
    /// The code of a page is wrong, too old or was used.
    #[error("the code is not valid: it works once, for a minute; `coloc web` gives a new one")]
    NoCode,
    /// There is no page to sign in to.
    #[error(
        "the daemon serves no page: start it with `--web 127.0.0.1:7451`, or put `web` into [api] of its configuration"
    )]
    NoPage,
    /// A browser was led here by a name that is not this machine's.
    #[error("this door answers to localhost, 127.0.0.1 and [::1] only")]
    WrongHost,
    /// Another page asks.
    #[error("a page of another site may not ask this daemon")]
    CrossSite,
    /// No handler answers at that path.
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
    /// It was not started so often.
    #[error("task {task} has no attempt {asked}: {}", attempts(*last))]
    NoAttempt { task: u32, asked: u32, last: u32 },
    /// Its time is over.
    #[error(
        "the log of task {0} is gone: what ended tasks leave is kept for a while only (--keep-logs)"
    )]
    Removed(u32),
    /// A file cannot be read.
    #[error("cannot read {0}: {1}")]
    File(String, std::io::Error),
    /// A file is not read now.
    #[error("cannot read {0}: {1}")]
    NotRead(String, NotRead),
    /// The request is to be made over a connection that can be upgraded.
    #[error("ask with `connection: upgrade` and `upgrade: {PROTOCOL}`: this is answered in frames")]
    NoUpgrade,
    /// The shim of the task says no.
    #[error("task {0}: {2}")]
    Shim(u32, String, String),
    /// The shim of the task cannot be reached.
    #[error("task {0} cannot be reached: {1}")]
    NoShim(u32, String),
    /// A mistake of ours.
    #[error("the daemon answered something else than was asked: {0}")]
    Unexpected(String),
}

impl Failure {
    /// A word for programs; docs/api.md lists them.
    fn code(&self) -> &'static str {
        match self {
            Failure::Malformed(..) => "malformed",
            Failure::NoToken | Failure::Token(TokenError::Unknown) => "no_token",
            Failure::Token(TokenError::Expired | TokenError::Revoked) => "token_ended",
            Failure::Token(TokenError::NoToken(_)) => "no_such_token",
            Failure::Token(TokenError::TooMany) => "too_many",
            Failure::NotByToken => "not_by_token",
            Failure::ReadOnly => "read_only",
            Failure::NoCode => "no_code",
            Failure::NoPage => "no_page",
            Failure::WrongHost => "wrong_host",
            Failure::CrossSite => "cross_site",
            Failure::NoRoute(_) => "no_such_route",
            Failure::Schema(_) => "schema",
            Failure::Refused(refused) => refused.code(),
            Failure::NoTask(task) => Refused::NoSuchTask(coloc_model::TaskId(*task)).code(),
            Failure::NotYours(task) => Refused::NotYours(coloc_model::TaskId(*task)).code(),
            Failure::Busy | Failure::NotRead(..) => BUSY,
            Failure::Stopping => STOPPING,
            Failure::File(..) => "no_file",
            Failure::Removed(_) => "removed",
            Failure::NoUpgrade => "no_upgrade",
            Failure::Shim(_, code, _) => code_of_shim(code),
            Failure::NoShim(..) => "no_shim",
            Failure::NoAttempt { .. } => "no_such_attempt",
            Failure::Journal(error) => error.trouble().code(),
            Failure::Unexpected(_)
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
            Failure::NotByToken | Failure::ReadOnly | Failure::CrossSite => StatusCode::FORBIDDEN,
            Failure::NoCode => StatusCode::UNAUTHORIZED,
            Failure::NoPage => StatusCode::CONFLICT,
            Failure::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Failure::Token(TokenError::NoToken(_)) => StatusCode::NOT_FOUND,
            Failure::Token(TokenError::TooMany) => StatusCode::CONFLICT,
            Failure::Token(TokenError::NoRandomness | TokenError::File { .. }) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Failure::Schema(_) => StatusCode::BAD_REQUEST,
            Failure::NoRoute(_)
            | Failure::NoTask(_)
            | Failure::NoAttempt { .. }
            | Failure::Refused(
                Refused::NoSuchTask(_) | Refused::Ended { .. } | Refused::NoSuchGpu(_),
            ) => StatusCode::NOT_FOUND,
            Failure::NotYours(_)
            | Failure::Refused(
                Refused::NotYours(_)
                | Refused::NotAdmin
                | Refused::TokenForOthers
                | Refused::PriorityAboveZero
                | Refused::LongerWhileRunning(_)
                | Refused::PoolDenied(_),
            ) => StatusCode::FORBIDDEN,
            Failure::Refused(
                Refused::Invalid(_)
                | Refused::TooManyToForecast { .. }
                | Refused::LongTimeLimit { .. },
            ) => StatusCode::UNPROCESSABLE_ENTITY,
            Failure::Refused(Refused::OverLimit(_)) => StatusCode::TOO_MANY_REQUESTS,
            Failure::Refused(
                Refused::WrongPhase { .. }
                | Refused::NotHeld { .. }
                | Refused::NotRunning { .. }
                | Refused::NoTerminal(_)
                | Refused::NoInput(_),
            ) => StatusCode::CONFLICT,
            Failure::Refused(Refused::Journal(why) | Refused::NotKept(why)) => unwritten(*why),
            Failure::Refused(Refused::Draining)
            | Failure::Busy
            | Failure::NotRead(..)
            | Failure::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Failure::File(..) => StatusCode::NOT_FOUND,
            Failure::Removed(_) => StatusCode::GONE,
            Failure::NoUpgrade => StatusCode::UPGRADE_REQUIRED,
            Failure::Shim(_, code, _) if code == "over_limit" => StatusCode::TOO_MANY_REQUESTS,
            Failure::Shim(..) => StatusCode::CONFLICT,
            Failure::NoShim(..) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Journal(error) => unwritten(error.trouble()),
            Failure::Unexpected(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// The words of a shim, which may be of another version.
fn code_of_shim(code: &str) -> &'static str {
    let known = ["over_limit", "not_started", "ended", "fed", "no_terminal", "no_input"];
    known.into_iter().find(|&known| known == code).unwrap_or("refused")
}

/// How often a task was started.
fn attempts(last: u32) -> String {
    match last {
        0 => "it has not been started yet".to_owned(),
        1 => "it was started once".to_owned(),
        many => format!("it was started {many} times"),
    }
}

/// A lock goes away by itself; what else is wrong with the journal does not.
fn unwritten(why: Trouble) -> StatusCode {
    match why {
        Trouble::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        Trouble::Locked => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (error, code) = (self.to_string(), self.code().to_owned());
        (self.status(), Json(ApiError { schema: SCHEMA, error, code })).into_response()
    }
}
