//! What ran, for whoever wants to know how it would have gone otherwise.

use super::State;
use super::answer::Failure;
use super::request::Query;
use crate::past::{self, Past};
use crate::record::Moment;
use axum::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of the past is wanted.
#[derive(Clone, PartialEq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PastRequest {
    /// What was submitted since, in seconds since 1970.
    pub since_s: f64,
    /// Only this user's.
    pub user: Option<String>,
}

pub(super) async fn read(
    desk: State,
    Query(request): Query<PastRequest>,
) -> Result<Json<Past>, Failure> {
    let since = Moment((request.since_s.max(0.0) * 1000.0) as u64);
    let read = desk.read(move |journal| past::read(journal, since, request.user.as_deref()));
    read.await.map(Json)
}
