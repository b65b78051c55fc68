//! Tasks: submit, show, change.

use super::answer::{Changed, Failure, RefusedTask, Submitted, Versioned};
use super::request::{Body, Path};
use super::{Desk, Peer, SCHEMA, State};
use crate::launch::output_of;
use crate::owner::{Answer, Change, Command, Submission, TaskDetail, TaskView, WhyView, task_view};
use crate::record::Record;
use crate::run::RunDir;
use crate::spec::TaskSpec;
use axum::Json;
use coloc_model::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(super) async fn submit(
    desk: State,
    peer: Peer,
    Body(submission): Body<Submission>,
) -> Result<Json<Submitted>, Failure> {
    match desk.ask(peer.caller(), Command::Submit(Box::new(submission))).await? {
        Answer::Submitted { ids } => {
            Ok(Json(Submitted { schema: SCHEMA, ids: ids.into_iter().map(|id| id.0).collect() }))
        }
        other => Err(Failure::unexpected(other)),
    }
}

pub(super) fn view(record: &Record, spec: &TaskSpec) -> TaskView {
    task_view(record, spec, &crate::users::name(record.owner)).owned()
}

pub(super) async fn show(
    desk: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<TaskDetail>>, Failure> {
    detail(&desk, peer, id).await.map(|task| Json(Versioned::new(task)))
}

pub(super) async fn detail(desk: &Desk, peer: Peer, id: u32) -> Result<TaskDetail, Failure> {
    if let Answer::Task(Some(task)) = desk.ask(peer.caller(), Command::Show(TaskId(id))).await? {
        return Ok(*task);
    }
    let runs = desk.runs.clone();
    let ended = desk.read(move |journal| {
        let Some(record) = journal.task(TaskId(id))? else { return Ok(None) };
        let spec = journal.spec(record.spec)?;
        let story = journal.story(TaskId(id))?;
        let run = RunDir::of(&runs, record.id, record.attempt);
        let log = output_of(&run, &record, &spec).display().to_string();
        let log_removed =
            spec.output.is_none() && record.first_started.is_some() && !run.path().exists();
        let (command, directory) = (spec.command.clone(), spec.directory.clone());
        let (task, holds) = (view(&record, &spec), record.holds);
        let estimate_bound_bytes = spec.estimate.map(|estimate| estimate.bound.0);
        let estimator = spec.estimator.clone();
        let host_mem_bytes = spec.host_memory.map(|memory| memory.0);
        Ok(Some(TaskDetail {
            task,
            command,
            directory,
            gpu_kinds: spec.gpu_kinds,
            log,
            log_removed,
            estimate_bound_bytes,
            estimator,
            estimate_flags: spec.estimate_flags,
            host_mem_bytes,
            holds,
            story,
        }))
    });
    ended.await?.ok_or(Failure::NoTask(id))
}

pub(super) async fn why(
    desk: State,
    peer: Peer,
    Path(id): Path<u32>,
) -> Result<Json<Versioned<WhyView>>, Failure> {
    match desk.ask(peer.caller(), Command::Why(TaskId(id))).await? {
        Answer::Why(why) => Ok(Json(Versioned::new(*why))),
        other => Err(Failure::unexpected(other)),
    }
}

/// Something to be done with tasks.
#[derive(Clone, PartialEq, Eq, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeRequest {
    /// The tasks.
    pub ids: Vec<u32>,
    /// What.
    pub change: Change,
}

pub(super) async fn change(
    desk: State,
    peer: Peer,
    Body(request): Body<ChangeRequest>,
) -> Result<Json<Changed>, Failure> {
    let ids = request.ids.into_iter().map(TaskId).collect();
    match desk.ask(peer.caller(), Command::Change(ids, request.change)).await? {
        Answer::Changed(each) => {
            let mut changed = Changed { schema: SCHEMA, done: Vec::new(), refused: Vec::new() };
            for (task, result) in each {
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
        other => Err(Failure::unexpected(other)),
    }
}
