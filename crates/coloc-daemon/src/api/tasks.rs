//! Tasks: submit, show, change.

use super::answer::Failure;
use super::request::{Body, Path};
use super::{ApiState, Peer, State};
use crate::executor::local::output_of;
use crate::executor::local::run::RunDir;
use crate::owner::{self, Command, Invalid, Refused, Shown, memory_view};
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{Changed, RefusedTask, Submitted, Versioned};
use coloc_api::request::{ChangeRequest, Submission};
use coloc_api::view::{TaskDetail, WhyView};
use coloc_model::TaskId;

pub(super) async fn submit(
    api: State,
    peer: Peer,
    Body(submission, _held): Body<Submission>,
) -> Result<Json<Submitted>, Failure> {
    let command = |reply| Command::Submit(Box::new(submission), reply);
    let owner::Submitted { ids, memory_rule } = api.ask(peer.caller(), command).await?;
    let ids = ids.into_iter().map(|id| id.0).collect();
    Ok(Json(Submitted { schema: SCHEMA, ids, memory_rule }))
}

pub(super) async fn show(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<TaskDetail>>, Failure> {
    detail(&api, peer, id).await.map(|shown| Json(Versioned::new(shown.detail)))
}

pub(super) async fn detail(api: &ApiState, peer: Peer, id: u32) -> Result<Shown, Failure> {
    let live = api.ask(peer.caller(), |reply| Command::Show(TaskId(id), reply)).await?;
    if let Some(shown) = live {
        return Ok(*shown);
    }
    let runs = api.runs.clone();
    let ended = api.read(move |journal| {
        let Some(record) = journal.task(TaskId(id))? else { return Ok(None) };
        let spec = journal.spec(record.spec)?;
        let run = RunDir::of(&runs, record.id, record.attempt);
        let mut shown = Shown::new(&record, &spec, output_of(&run, &record, &spec));
        let promised = record.memory.as_ref().and_then(|memory| memory.promised);
        shown.detail.task.promised_bytes = promised.map(|promised| promised.bytes.0);
        shown.detail.memory = memory_view(promised.as_ref(), None);
        shown.detail.story = journal.story(TaskId(id))?;
        shown.detail.log_removed =
            spec.output.is_none() && record.first_started.is_some() && !run.path().exists();
        Ok(Some(shown))
    });
    ended.await?.ok_or(Failure::NoTask(id))
}

pub(super) async fn why(
    api: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<WhyView>>, Failure> {
    let why = api.ask(peer.caller(), |reply| Command::Why(TaskId(id), reply)).await?;
    Ok(Json(Versioned::new(*why)))
}

pub(super) async fn change(
    api: State,
    peer: Peer,
    Body(request, _held): Body<ChangeRequest>,
) -> Result<Json<Changed>, Failure> {
    let most = api.user_limits.bounds().ids;
    if request.ids.len() > most {
        return Err(Refused::from(Invalid::ManyTasks { most }).into());
    }
    // A task that is named a thousand times is changed once.
    let mut named = rustc_hash::FxHashSet::default();
    let ids = request.ids.into_iter().filter(|id| named.insert(*id)).map(TaskId).collect();
    let command = |reply| Command::Change(ids, request.change, reply);
    let mut changed = Changed { schema: SCHEMA, done: Vec::new(), refused: Vec::new() };
    for (task, result) in api.ask(peer.caller(), command).await? {
        match result {
            Ok(()) => changed.done.push(task.0),
            Err(refused) => changed.refused.push(RefusedTask {
                id: task.0,
                code: refused.code().to_owned(),
                message: refused.to_string(),
            }),
        }
    }
    Ok(Json(changed))
}
