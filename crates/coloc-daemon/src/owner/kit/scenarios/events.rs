//! What listeners hear, and when.

use super::*;
use crate::news::{Kind, Told};
use coloc_api::view::{DecisionKind, DecisionView, ReasonCode, TaskView};
use tokio::sync::broadcast::Receiver;

fn heard(listener: &mut Receiver<Arc<Told>>) -> Vec<TaskView> {
    let all = std::iter::from_fn(|| listener.try_recv().ok());
    let tasks = all.filter(|told| told.kind == Kind::Task);
    let view = |told: Arc<Told>| {
        let text = std::str::from_utf8(&told.text).expect("text");
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).expect("data");
        serde_json::from_str(data).expect("a task")
    };
    tasks.map(view).collect()
}

fn states(listener: &mut Receiver<Arc<Told>>) -> Vec<(u32, TaskState)> {
    heard(listener).into_iter().map(|view| (view.id, view.state)).collect()
}

#[test]
fn a_submission_that_waits_is_told_with_what_it_waits_for() {
    let mut kit = OwnerKit::new("1xA100-40GB", whole());
    let mut listener = kit.news.subscribe();
    let first = kit.submit(train());
    kit.advance(1);
    assert_eq!(states(&mut listener).pop(), Some((first.0, TaskState::Running)));
    let second = kit.submit(train());
    kit.advance(1);
    let told = heard(&mut listener);
    let last = told.last().expect("it is told");
    assert_eq!((last.id, last.state), (second.0, TaskState::Pending));
    assert_eq!(last.reason_code, Some(ReasonCode::Exclusive), "it needs an empty GPU");
    let held = kit.submit_all(Submission { held: true, ..Submission::of(train()) });
    kit.advance(1);
    let told = heard(&mut listener);
    let last = told.last().expect("it is told");
    assert_eq!((last.id, last.reason_code), (held[0].0, Some(ReasonCode::Held)));
    assert!(last.reason.as_ref().is_some_and(|why| why.starts_with("held")));
}

#[test]
fn a_change_of_reason_is_told_and_is_not_one_change_late() {
    let mut kit = OwnerKit::new("1xA100-40GB", whole());
    kit.submit(train());
    let task = kit.submit(train());
    kit.advance(1);
    let mut listener = kit.news.subscribe();
    kit.change(task, Change::Hold).expect("it waits");
    kit.advance(1);
    let told = heard(&mut listener).pop().expect("it is told");
    assert_eq!((told.id, told.reason_code), (task.0, Some(ReasonCode::Held)));
    assert!(told.held_by.is_some() && told.reason.is_some_and(|why| why.starts_with("held")));
    kit.change(task, Change::Release).expect("it is held");
    kit.advance(1);
    let told = heard(&mut listener).pop().expect("it is told");
    assert_eq!(told.reason.as_deref(), Some("waiting for a GPU"));
    assert_eq!((told.reason_code, told.held_by), (Some(ReasonCode::Exclusive), None));
    // Nothing happens to the task, but its GPU goes away: the monitor's next look tells.
    kit.lose_gpu(0, true);
    kit.advance(2);
    kit.see(kit.sighting());
    kit.advance(1);
    let codes: Vec<_> =
        heard(&mut listener).iter().filter(|v| v.id == task.0).map(|v| v.reason_code).collect();
    assert_eq!(codes.last(), Some(&Some(ReasonCode::LostGpu)), "{codes:?}");
}

#[test]
fn nothing_is_told_that_a_crash_can_take_back() {
    let mut kit = one_gpu();
    let mut listener = kit.news.subscribe();
    kit.disk.fill(true);
    let refused = kit.obey(|reply| Command::Submit(Box::new(Submission::of(train())), reply));
    assert!(refused.is_err());
    kit.advance(2);
    assert_eq!(states(&mut listener), [], "it is not on the disk");
    kit.disk.fill(false);
    kit.advance(61);
    let task = kit.submit(train());
    kit.advance(1);
    // Each event says what the journal says, or said before.
    let told = states(&mut listener);
    assert_eq!(told.last(), Some(&(task.0, TaskState::Running)));
    let row = kit.disk.row(task).expect("it is on the disk");
    assert_eq!(row.phase, TaskState::Running, "an attempt that began is written before it is told");
    kit.complete(task);
    kit.advance(1);
    assert_eq!(states(&mut listener).last(), Some(&(task.0, TaskState::Completed)));
}

#[test]
fn many_changes_at_once_are_one_event_each_and_very_many_are_missed() {
    let mut kit = OwnerKit::new("1xA100-40GB", whole());
    let mut listener = kit.news.subscribe();
    kit.submit(train());
    let task = kit.submit(train());
    kit.advance(1);
    states(&mut listener);
    // Within 50 ms, a task is told twice at most: at once, and how it stands in the end.
    for _ in 0..10 {
        kit.change(task, Change::Hold).expect("it waits");
        kit.change(task, Change::Release).expect("it is held");
    }
    kit.advance(1);
    let told = heard(&mut listener);
    assert!(told.len() <= 2, "{}", told.len());
    assert_eq!(told.last().and_then(|view| view.reason.as_deref()), Some("waiting for a GPU"));
    let indices = (0..3000).collect();
    let array = Some(coloc_api::request::ArrayRequest { indices, at_once: None });
    kit.submit_all(Submission { array, ..Submission::of(train()) });
    kit.advance(1);
    let all: Vec<_> = std::iter::from_fn(|| listener.try_recv().ok()).collect();
    assert!(all.iter().any(|told| told.kind == Kind::Missed) && all.len() < 100, "{}", all.len());
}

#[test]
fn what_a_task_waits_for_is_kept_when_it_changes_with_what_gpus_said() {
    let mut kit = OwnerKit::new("1xA100-40GB", whole());
    let first = kit.submit(train());
    let second = kit.submit(train());
    let look = |kit: &mut OwnerKit| {
        kit.advance(2);
        kit.see(kit.sighting());
    };
    let told = |kit: &OwnerKit| {
        let all = kit.owner().journal.decisions(second).expect("the journal is read");
        let refused =
            |d: &DecisionView| d.gpus.iter().filter(|gpu| !gpu.refusals.is_empty()).count();
        all.iter().map(|d| (d.kind, d.reason_code, refused(d))).collect::<Vec<_>>()
    };
    look(&mut kit);
    look(&mut kit);
    let waits = (DecisionKind::Waits, Some(ReasonCode::Exclusive), 1);
    assert_eq!(told(&kit), [waits], "once, also if there is no listener");
    kit.lose_gpu(0, true);
    look(&mut kit);
    let lost = (DecisionKind::Waits, Some(ReasonCode::LostGpu), 1);
    assert_eq!(told(&kit), [waits, lost]);
    kit.lose_gpu(0, false);
    look(&mut kit);
    kit.change(first, Change::Cancel).expect("it has not ended");
    kit.advance(2);
    look(&mut kit);
    assert_eq!(told(&kit).last(), Some(&(DecisionKind::Starts, None, 0)));
}

#[test]
fn listeners_hear_how_far_tasks_are() {
    let mut kit = OwnerKit::new("1xA100-40GB", shared());
    let task = kit.submit(train());
    kit.advance(10);
    kit.see(kit.sighting());
    let mut listener = kit.news.subscribe();
    let mut done = Vec::new();
    for _ in 0..2 {
        kit.advance(10);
        kit.see(kit.sighting());
        kit.advance(1);
        let told = heard(&mut listener).into_iter().filter(|view| view.id == task.0);
        done.extend(told.filter_map(|view| view.progress).map(|progress| progress.done));
    }
    assert!(done.len() >= 2 && done.is_sorted() && done[0] < done[done.len() - 1], "{done:?}");
    assert!(done.len() <= 4, "no more often than logs are looked at: {done:?}");
}
