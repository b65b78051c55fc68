//! Which tasks were on the GPUs of one that has ended, while it was.

use super::answer::Failure;
use super::{ApiState, Peer};
use crate::journal::{Journal, JournalError};
use crate::owner::Command;
use coloc_api::moment::Moment;
use coloc_api::view::{AttemptView, GpuView, NeighbourView, TaskDetail};
use coloc_model::TaskId;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// Attempts of the task that are looked at, the last ones.
const MOST_ATTEMPTS: usize = 8;
/// Attempts of others that are looked through for each of them.
const LOOKED_THROUGH: u32 = 2000;
/// Neighbours that are told.
const MOST: usize = 50;

/// When both were there: of an attempt, and of another that has not ended if its end is not known.
fn overlap(attempt: &AttemptView, from: f64, to: Option<f64>) -> Option<(f64, f64)> {
    let since = attempt.started_s?.max(from);
    let until = attempt.ended_s?.min(to.unwrap_or(f64::MAX));
    (since < until).then_some((since, until))
}

/// Others that have ended too.
fn ended(
    journal: &Journal,
    task: TaskId,
    attempts: &[AttemptView],
) -> Result<Vec<NeighbourView>, JournalError> {
    let (mut found, mut specs) = (Vec::new(), FxHashMap::default());
    let mut names: FxHashMap<TaskId, (String, String)> = FxHashMap::default();
    for attempt in attempts.iter().rev().take(MOST_ATTEMPTS) {
        let (Some(began), Some(end)) = (attempt.started_s, attempt.ended_s) else { continue };
        let moment = |seconds: f64| Moment((seconds * 1000.0) as u64);
        let others = journal.attempts_between(moment(began), moment(end), LOOKED_THROUGH)?;
        for (other, theirs) in others.into_iter().filter(|(other, _)| *other != task) {
            let span = theirs.started_s.and_then(|from| overlap(attempt, from, theirs.ended_s));
            let Some((since_s, until_s)) = span else { continue };
            let shared = theirs.gpus.iter().filter(|gpu| attempt.gpus.contains(gpu));
            for &gpu in shared.take(MOST.saturating_sub(found.len())) {
                let (name, user) = match names.entry(other) {
                    Entry::Occupied(known) => known.get().clone(),
                    Entry::Vacant(unknown) => {
                        let Some(record) = journal.task(other)? else { continue };
                        let spec = journal.once_of(record.spec, &mut specs, |spec| spec)?;
                        let named = (spec.name.clone(), crate::users::name(record.owner));
                        unknown.insert(named).clone()
                    }
                };
                found.push(NeighbourView {
                    id: other.0,
                    name,
                    user,
                    gpu,
                    since_s,
                    until_s: Some(until_s),
                    used_bytes: theirs.peak_bytes,
                    slows_this: None,
                    slowed_by_this: None,
                });
            }
        }
    }
    Ok(found)
}

/// Others that are still there.
fn running(gpus: &[GpuView], attempts: &[AttemptView]) -> Vec<NeighbourView> {
    let mut found = Vec::new();
    for attempt in attempts.iter().rev().take(MOST_ATTEMPTS) {
        for gpu in gpus.iter().filter(|gpu| attempt.gpus.contains(&gpu.index)) {
            for resident in &gpu.residents {
                let span = resident.since_s.and_then(|since| overlap(attempt, since, None));
                let Some((since_s, until_s)) = span else { continue };
                found.push(NeighbourView {
                    id: resident.id,
                    name: resident.name.clone(),
                    user: resident.user.clone(),
                    gpu: gpu.index,
                    since_s,
                    until_s: Some(until_s),
                    used_bytes: resident.used_bytes.unwrap_or(0),
                    slows_this: None,
                    slowed_by_this: None,
                });
            }
        }
    }
    found
}

/// Adds the neighbours of a task that has ended. What they cost each other was believed while both ran, and was not kept.
pub(super) async fn add(
    api: &ApiState,
    peer: Peer,
    detail: &mut TaskDetail,
) -> Result<(), Failure> {
    if !detail.task.state.is_over() || detail.attempts_list.is_empty() {
        return Ok(());
    }
    let (task, attempts) = (TaskId(detail.task.id), detail.attempts_list.clone());
    let (gpus, _) = api.ask(peer.caller(), Command::Gpus).await?;
    let mut all = running(&gpus, &attempts);
    all.extend(api.read(move |journal| ended(journal, task, &attempts)).await?);
    all.sort_by(|a, b| a.since_s.total_cmp(&b.since_s).then(a.id.cmp(&b.id)));
    all.truncate(MOST);
    detail.neighbours = all;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::view::ResidentView;

    #[test]
    fn neighbours_are_those_who_were_there_at_the_same_time() {
        let attempt = AttemptView {
            gpus: vec![1],
            started_s: Some(100.0),
            ended_s: Some(200.0),
            ..AttemptView::default()
        };
        assert_eq!(overlap(&attempt, 50.0, Some(150.0)), Some((100.0, 150.0)));
        assert_eq!(overlap(&attempt, 150.0, None), Some((150.0, 200.0)));
        assert_eq!(overlap(&attempt, 50.0, Some(100.0)), None);
        assert_eq!(overlap(&attempt, 200.0, None), None);
        let resident = |id, since_s| ResidentView { id, since_s, ..ResidentView::default() };
        let gpu = |index, residents| GpuView { index, residents, ..GpuView::default() };
        let gpus = [
            gpu(0, vec![resident(7, Some(120.0))]),
            gpu(1, vec![resident(8, Some(120.0)), resident(9, Some(300.0)), resident(10, None)]),
        ];
        let found = running(&gpus, &[attempt]);
        let told: Vec<_> = found.iter().map(|n| (n.id, n.since_s, n.until_s)).collect();
        assert_eq!(told, [(8, 120.0, Some(200.0))]);
    }
}
