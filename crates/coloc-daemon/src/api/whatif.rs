//! What would have been, and what sharing saved: worked out on a thread of its own, asked for again until it is there.

use super::answer::Failure;
use super::request::{Body, Path, Query};
use super::{ApiState, Peer, State};
use crate::whatif::{Outcome, Question, Standing, policies};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::request::{SavingsRequest, WhatifRequest};
use coloc_api::view::JobView;
use coloc_model::Fleet;

/// What is looked at if nothing is said.
const WEEK_S: f64 = 7.0 * 86_400.0;
/// GPUs of a fleet that is only imagined.
const MOST_GPUS: usize = 1024;

fn wrong(what: impl Into<String>) -> Failure {
    Failure::Malformed(StatusCode::UNPROCESSABLE_ENTITY, what.into())
}

fn told((job, standing): (u32, Standing)) -> Result<Response, Failure> {
    match standing {
        Standing::Working(done, of) => {
            let view = JobView { schema: SCHEMA, job: job.to_string(), done, of };
            Ok((StatusCode::ACCEPTED, Json(view)).into_response())
        }
        Standing::Done(Outcome::Whatif(answer)) => Ok(Json(answer).into_response()),
        Standing::Done(Outcome::Savings(answer)) => Ok(Json(answer).into_response()),
        Standing::Done(Outcome::Failed(why)) => Err(wrong(why)),
    }
}

fn ask(api: &ApiState, peer: Peer, question: Question) -> Result<Response, Failure> {
    let asked = api.whatif.ask(peer.caller().uid, question, api.news.seq());
    told(asked.ok_or(Failure::Busy)?)
}

pub(super) async fn begin(
    api: State,
    peer: Peer,
    Body(request, _held): Body<WhatifRequest>,
) -> Result<Response, Failure> {
    let WhatifRequest { since_s, user, fleet, policies: names } = request;
    let fleet = fleet.map(|fleet| fleet.parse::<Fleet>().map_err(|error| wrong(error.to_string())));
    let fleet = fleet.transpose()?;
    if fleet.as_ref().is_some_and(|fleet| fleet.len() > MOST_GPUS) {
        return Err(wrong(format!("a fleet has at most {MOST_GPUS} GPUs here")));
    }
    let policies = policies(&names).map_err(wrong)?;
    ask(&api, peer, Question::Whatif { since_s, user, fleet, policies })
}

pub(super) async fn look(
    api: State,
    _peer: Peer,
    Path(job): Path<u32>,
) -> Result<Response, Failure> {
    let standing = api.whatif.standing(job);
    let gone = || Failure::NoRoute(format!("answer {job}, or it is kept no longer"));
    told((job, standing.ok_or_else(gone)?))
}

pub(super) async fn savings(
    api: State,
    peer: Peer,
    Query(request): Query<SavingsRequest>,
) -> Result<Response, Failure> {
    // To the minute, so that a page that asks again finds its answer.
    let usual = || ((Moment::now().secs() - WEEK_S) / 60.0).floor() * 60.0;
    ask(&api, peer, Question::Savings { since_s: request.since_s.unwrap_or_else(usual) })
}
