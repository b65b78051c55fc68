//! Tasks: submit, show, change.

use super::answer::Failure;
use super::request::{Body, Path};
use super::{ApiState, Peer, State, neighbours};
use crate::executor::local::output_of;
use crate::executor::local::run::RunDir;
use crate::owner::{self, Command, Invalid, Refused, Shown, memory_view};
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::answer::{Changed, RefusedTask, Submitted, Versioned};
use coloc_api::request::{ChangeRequest, Submission};
use coloc_api::view::{MemoryView, TaskDetail, TaskView, WhyView};
use coloc_model::{Millis, TaskId};

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
    let mut shown = detail(&api, peer, id).await?;
    neighbours::add(&api, peer, &mut shown.detail).await?;
    Ok(Json(Versioned::new(shown.detail)))
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
        shown.tell(&record, journal.story(TaskId(id))?);
        shown.detail.attempts_list = journal.attempts(TaskId(id))?;
        shown.detail.decisions = journal.decisions(TaskId(id))?;
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
    match api.ask(peer.caller(), |reply| Command::Why(TaskId(id), reply)).await {
        Ok(why) => Ok(Json(Versioned::new(*why))),
        Err(Failure::Refused(Refused::NoSuchTask(_))) => {
            let TaskDetail { task, memory, .. } = detail(&api, peer, id).await?.detail;
            Ok(Json(Versioned::new(ended(task, memory))))
        }
        Err(failure) => Err(failure),
    }
}

/// What is said of a task that does not wait any more because it is over.
fn ended(task: TaskView, memory: MemoryView) -> WhyView {
    let promised_bytes = task.promised_bytes;
    let summary = how_it_ended(&task);
    let (awaits, ahead, gpus, host) = (None, 0, Vec::new(), Default::default());
    WhyView { task, summary, promised_bytes, memory, awaits, ahead, gpus, host }
}

/// How a task ended, in a sentence: why, after how long and where.
fn how_it_ended(task: &TaskView) -> String {
    let why = task.reason.clone().or_else(|| match task.exit_code {
        Some(0) | None => None,
        Some(code) => Some(format!("exit code {code}")),
    });
    let ran = task.started_s.zip(task.ended_s).map(|(start, end)| (end - start).max(0.0));
    let ran = ran.map(|seconds| format!("ran for {}", Millis((seconds * 1000.0) as u64)));
    let gpus: Vec<String> = task.gpu_ids.iter().map(u32::to_string).collect();
    let place = match gpus.len() {
        0 => None,
        1 => Some(format!("on GPU {}", gpus[0])),
        _ => Some(format!("on GPUs {}", gpus.join(", "))),
    };
    let ran = match (ran, place) {
        (Some(ran), Some(place)) => format!("{ran} {place}"),
        (ran, _) => ran.unwrap_or_else(|| "never ran".to_owned()),
    };
    let ooms = match task.ooms {
        0 => String::new(),
        1 => ", once out of memory".to_owned(),
        many => format!(", {many} times out of memory"),
    };
    let attempts = match task.attempts {
        0 | 1 => ooms,
        many => format!(" in its last of {many} attempts{ooms}"),
    };
    match why {
        Some(why) => format!("{why}; it {ran}{attempts}"),
        None => format!("it {ran}{attempts}"),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_its_reason_its_time_and_its_place() {
        let well = TaskView {
            started_s: Some(10.0),
            ended_s: Some(100.0),
            exit_code: Some(0),
            attempts: 1,
            gpu_ids: vec![2],
            ..TaskView::default()
        };
        assert_eq!(how_it_ended(&well), "it ran for 90.0 s on GPU 2");
        let badly = TaskView {
            exit_code: Some(3),
            attempts: 4,
            ooms: 2,
            gpu_ids: vec![0, 1],
            ..well.clone()
        };
        assert_eq!(
            how_it_ended(&badly),
            "exit code 3; it ran for 90.0 s on GPUs 0, 1 in its last of 4 attempts, 2 times out of memory"
        );
        let never = TaskView {
            reason: Some("cancelled by its user".to_owned()),
            started_s: None,
            gpu_ids: vec![],
            attempts: 0,
            ..well
        };
        assert_eq!(how_it_ended(&never), "cancelled by its user; it never ran");
    }
}
