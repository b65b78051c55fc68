//! When tasks are expected to start and to end. The owner hands out a copy of itself and goes on; one forecast at a
//! time is made on another thread.

use super::answer::Failure;
use super::request::Path;
use super::{ApiState, Peer, State};
use crate::forecast::{RunTimes, forecast};
use crate::owner::Command;
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{Foreseen, Versioned};
use coloc_api::view::Expected;
use coloc_model::TaskId;
use tokio::sync::Semaphore;

/// However many ask, only one core is busy with it.
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);

pub(super) async fn one(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<Expected>>, Failure> {
    let found = look_ahead(&api, peer, Some(TaskId(id))).await?.pop();
    found.map(|found| Json(Versioned::new(found))).ok_or(Failure::NoTask(id))
}

pub(super) async fn all(api: State, peer: Peer) -> Result<Json<Foreseen>, Failure> {
    let tasks = look_ahead(&api, peer, None).await?;
    Ok(Json(Foreseen { schema: SCHEMA, tasks, at_s: coloc_api::moment::Moment::now().secs() }))
}

async fn look_ahead(
    api: &ApiState,
    peer: Peer,
    target: Option<TaskId>,
) -> Result<Vec<Expected>, Failure> {
    let _permit = api.heavy_requests.take(peer.caller().uid).await?;
    let _only = ONE_AT_A_TIME.acquire().await.map_err(|_| Failure::Stopping)?;
    let snapshot = *api.ask(peer.caller(), Command::Snapshot).await?;
    api.read(move |journal| {
        let times = RunTimes::read(journal, &snapshot.clock)?;
        Ok(forecast(snapshot, &times, journal, target))
    })
    .await
}
