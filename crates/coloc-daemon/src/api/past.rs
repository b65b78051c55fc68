//! What ran, for a client that wants to know how it would have gone otherwise.

use super::answer::Failure;
use super::request::Query;
use super::{Peer, State};
use crate::past;
use axum::Json;
use coloc_api::moment::Moment;
use coloc_api::past::Past;
use coloc_api::request::PastRequest;

pub(super) async fn read(
    api: State,
    peer: Peer,
    Query(request): Query<PastRequest>,
) -> Result<Json<Past>, Failure> {
    let _permit = api.heavy_requests.take(peer.caller().uid).await?;
    let since = Moment((request.since_s.max(0.0) * 1000.0) as u64);
    let read = api.read(move |journal| past::read(journal, since, request.user.as_deref()));
    read.await.map(Json)
}
