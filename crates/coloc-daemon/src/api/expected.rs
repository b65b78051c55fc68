//! When tasks are expected to start and to end. The owner hands out a copy of itself and goes on; one forecast at a
//! time is made on another thread. That of all tasks is kept until something changes, and for a moment where there are many: a
//! forecast of thousands takes long.

use super::answer::Failure;
use super::request::Path;
use super::{ApiState, Peer, State};
use crate::forecast::{RunTimes, forecast};
use crate::owner::Command;
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{Foreseen, Versioned};
use coloc_api::moment::Moment;
use coloc_api::view::Expected;
use coloc_model::TaskId;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// However many ask, only one core is busy with it.
static ONE_AT_A_TIME: Semaphore = Semaphore::const_new(1);
/// A forecast of many tasks is good for so long, whatever changes.
const GOOD_FOR: Duration = Duration::from_secs(5);
/// A forecast of few tasks is made anew when something has changed.
const FEW: usize = 200;
/// Time passes: no forecast is kept for longer.
const OLDEST: Duration = Duration::from_secs(30);

/// The last forecast of all tasks.
#[derive(Default, Debug)]
pub struct LastForecast(Mutex<Option<Made>>);

#[derive(Clone, Debug)]
struct Made {
    at: Instant,
    /// What had happened by then.
    seq: u64,
    foreseen: Arc<Foreseen>,
}

impl LastForecast {
    /// The last one, if it is still good.
    fn good(&self, now: Instant, seq: u64) -> Option<Arc<Foreseen>> {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let age = now.saturating_duration_since(last.at);
        let many = last.foreseen.tasks.len() > FEW;
        let good = (last.seq == seq && age < OLDEST) || (many && age < GOOD_FOR);
        good.then_some(last.foreseen)
    }

    fn keep(&self, made: Made) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }
}

pub(super) async fn one(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<Expected>>, Failure> {
    let found = look_ahead(&api, peer, Some(TaskId(id))).await?.pop();
    found.map(|found| Json(Versioned::new(found))).ok_or(Failure::NoTask(id))
}

pub(super) async fn all(api: State, peer: Peer) -> Result<Json<Arc<Foreseen>>, Failure> {
    foreseen(&api, peer).await.map(Json)
}

/// What is expected of all tasks.
pub(super) async fn foreseen(api: &ApiState, peer: Peer) -> Result<Arc<Foreseen>, Failure> {
    let seq = api.news.seq();
    if let Some(good) = api.forecast.good(Instant::now(), seq) {
        return Ok(good);
    }
    let at = Instant::now();
    let tasks = look_ahead(api, peer, None).await?;
    let foreseen = Arc::new(Foreseen { schema: SCHEMA, tasks, at_s: Moment::now().secs() });
    api.forecast.keep(Made { at, seq, foreseen: foreseen.clone() });
    Ok(foreseen)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forecast_is_kept_until_something_changes_and_many_for_a_moment() {
        let (last, now) = (LastForecast::default(), Instant::now());
        assert!(last.good(now, 0).is_none());
        let made = |tasks: usize| {
            let tasks = vec![Expected::default(); tasks];
            let foreseen = Arc::new(Foreseen { schema: SCHEMA, tasks, at_s: 0.0 });
            Made { at: now, seq: 7, foreseen }
        };
        last.keep(made(3));
        assert!(last.good(now + Duration::from_secs(20), 7).is_some(), "nothing happened");
        assert!(last.good(now + OLDEST, 7).is_none(), "time passed");
        assert!(last.good(now, 8).is_none(), "something happened");
        last.keep(made(FEW + 1));
        assert!(last.good(now + Duration::from_secs(4), 8).is_some());
        assert!(last.good(now + GOOD_FOR, 8).is_none());
    }
}
