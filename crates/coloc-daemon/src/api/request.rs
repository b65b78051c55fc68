//! What a request says. What cannot be read is refused in the form of every other refusal.

use super::answer::Failure;
use axum::Json;
use axum::extract::{self, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

/// A JSON body.
pub(super) struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let read = Json::from_request(request, state).await;
        read.map(|Json(body)| Body(body))
            .map_err(|wrong| Failure::Malformed(wrong.status(), wrong.body_text()))
    }
}

/// What follows the question mark.
pub(super) struct Query<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = extract::Query::from_request_parts(parts, state).await;
        read.map(|extract::Query(query)| Query(query))
            .map_err(|wrong| Failure::Malformed(wrong.status(), wrong.body_text()))
    }
}

/// What stands in the path.
pub(super) struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let read = extract::Path::from_request_parts(parts, state).await;
        read.map(|extract::Path(path)| Path(path))
            .map_err(|wrong| Failure::Malformed(wrong.status(), wrong.body_text()))
    }
}
