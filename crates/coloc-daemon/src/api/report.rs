//! What was used of the GPUs. All users see everybody's sums, as they see everybody's tasks.

use super::answer::Failure;
use super::request::Query;
use super::{Peer, State};
use crate::owner::Command;
use crate::report;
use axum::Json;
use axum::http::StatusCode;
use coloc_api::moment::Moment;
use coloc_api::report::{HistoryRequest, Report, ReportRequest, TaskHistory};

pub(super) async fn read(
    api: State,
    peer: Peer,
    Query(request): Query<ReportRequest>,
) -> Result<Json<Report>, Failure> {
    const DAY_S: i32 = 86_400;
    if !(-DAY_S..=DAY_S).contains(&request.utc_offset_s) {
        let what = "utc_offset_s: no clock is more than a day from UTC".to_owned();
        return Err(Failure::Malformed(StatusCode::UNPROCESSABLE_ENTITY, what));
    }
    let _permit = api.heavy_requests.take(peer.caller().uid).await?;
    let live = api.ask(peer.caller(), Command::Usage).await?;
    let made = api.read(move |journal| report::report(journal, &live, &request, Moment::now()));
    made.await.map(Json)
}

pub(super) async fn history(
    api: State,
    peer: Peer,
    Query(request): Query<HistoryRequest>,
) -> Result<Json<TaskHistory>, Failure> {
    let ids = request.ids.as_deref().map(|text| {
        let what = format!("ids: expected ids or ranges such as 3,7-9, not {text:?}");
        report::ids(text).ok_or(Failure::Malformed(StatusCode::UNPROCESSABLE_ENTITY, what))
    });
    let ids = ids.transpose()?;
    let _permit = api.heavy_requests.take(peer.caller().uid).await?;
    let unwritten = api.ask(peer.caller(), Command::Unwritten).await?;
    let read = move |journal: &_| report::history(journal, &request, ids.as_deref(), unwritten);
    api.read(read).await.map(Json)
}
