//! What ran where and when, what runs, and what is expected to.

use super::answer::Failure;
use super::request::Query;
use super::{Peer, State, expected};
use crate::journal::{Journal, JournalError};
use crate::owner::{Command, running_attempt, whole_view};
use axum::Json;
use coloc_api::SCHEMA;
use coloc_api::moment::Moment;
use coloc_api::request::TimelineRequest;
use coloc_api::view::{AttemptView, TaskView, TimelineAnswer, TimelineAttempt, TimelineWaiting};
use coloc_model::TaskState;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;

/// Attempts of one answer.
const MOST_ATTEMPTS: u32 = 10_000;
/// Waiting tasks of one answer.
const MOST_WAITING: usize = 2000;
/// What is shown if nothing is said.
const USUAL_S: f64 = 3600.0;

fn row(task: &TaskView, attempt: AttemptView) -> Option<TimelineAttempt> {
    Some(TimelineAttempt {
        task: task.id,
        name: task.name.clone(),
        user: task.user.clone(),
        number: attempt.number,
        gpus: attempt.gpus,
        instance: attempt.instance,
        started_s: attempt.started_s?,
        ended_s: attempt.ended_s,
        outcome: attempt.outcome,
        predicted_end_s: None,
        ooms: attempt.ooms,
    })
}

/// Attempts that have ended; of tasks of which earlier versions kept no attempts, the last one.
fn ended(
    journal: &Journal,
    from: Moment,
    to: Moment,
) -> Result<Vec<TimelineAttempt>, JournalError> {
    let (mut views, mut specs) = (FxHashMap::default(), FxHashMap::default());
    let (mut rows, mut known) = (Vec::new(), FxHashSet::default());
    for (task, attempt) in journal.attempts_between(from, to, MOST_ATTEMPTS)? {
        known.insert((task, attempt.number));
        let view = match views.entry(task) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let Some(record) = journal.task(task)? else { continue };
                let spec = journal.once_of(record.spec, &mut specs, |spec| spec)?;
                unknown.insert(whole_view(&record, spec))
            }
        };
        rows.extend(row(view, attempt));
    }
    for record in journal.ended(from, MOST_ATTEMPTS)? {
        let attempt = running_attempt(&record);
        let began = attempt.started_s.is_some_and(|started| started <= to.secs());
        if !began || known.contains(&(record.id, attempt.number)) {
            continue;
        }
        let spec = journal.once_of(record.spec, &mut specs, |spec| spec)?;
        let view = whole_view(&record, spec);
        let outcome = Some(record.phase.name().to_owned());
        rows.extend(row(&view, AttemptView { ended_s: view.ended_s, outcome, ..attempt }));
    }
    Ok(rows)
}

pub(super) async fn read(
    api: State,
    peer: Peer,
    Query(request): Query<TimelineRequest>,
) -> Result<Json<TimelineAnswer>, Failure> {
    let now_s = Moment::now().secs();
    let to_s = request.to_s.unwrap_or(now_s).clamp(0.0, 1e12);
    let from_s = request.from_s.unwrap_or(to_s - USUAL_S).clamp(0.0, 1e12);
    let permit = api.heavy_requests.take(peer.caller().uid).await?;
    let moment = |seconds: f64| Moment((seconds * 1000.0) as u64);
    let mut attempts =
        api.read(move |journal| ended(journal, moment(from_s), moment(to_s))).await?;
    let truncated = attempts.len() >= MOST_ATTEMPTS as usize;
    // The forecast wants one of its own.
    drop(permit);
    let live = api.ask(peer.caller(), Command::List).await?;
    // Without a forecast the rest is still worth telling.
    let foreseen = expected::foreseen(&api, peer).await.map(|all| all.tasks.clone());
    let foreseen: FxHashMap<u32, _> =
        foreseen.unwrap_or_default().into_iter().map(|task| (task.id, task)).collect();
    let on_gpus = |task: &&TaskView| task.state.is_on_gpus();
    for task in live.iter().filter(on_gpus) {
        let attempt = AttemptView {
            number: task.attempts,
            gpus: task.gpu_ids.clone(),
            started_s: task.started_s,
            ..AttemptView::default()
        };
        let predicted_end_s = foreseen.get(&task.id).and_then(|task| task.expected_end_s);
        attempts.extend(row(task, attempt).map(|row| TimelineAttempt { predicted_end_s, ..row }));
    }
    attempts.sort_by(|a, b| a.started_s.total_cmp(&b.started_s));
    let waits = |task: &&TaskView| matches!(task.state, TaskState::Pending | TaskState::Recovering);
    let waiting = live.iter().filter(waits).take(MOST_WAITING).map(|task| {
        let foreseen = foreseen.get(&task.id);
        TimelineWaiting {
            task: task.id,
            name: task.name.clone(),
            user: task.user.clone(),
            gpus: foreseen.map(|task| task.expected_gpus.clone()).unwrap_or_default(),
            expected_start_s: foreseen.and_then(|task| task.expected_start_s),
            expected_end_s: foreseen.and_then(|task| task.expected_end_s),
        }
    });
    let (waiting, foreign) = (waiting.collect(), api.series.foreign(from_s, to_s));
    let schema = SCHEMA;
    Ok(Json(TimelineAnswer { schema, from_s, to_s, now_s, attempts, waiting, foreign, truncated }))
}
