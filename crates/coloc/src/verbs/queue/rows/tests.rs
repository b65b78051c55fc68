//! What a queue looks like.

use super::*;
use crate::verbs::queue::fold::Folding;

fn task(id: u32, state: TaskState) -> TaskView {
    TaskView {
        id,
        name: "train.py".into(),
        user: "ada".into(),
        state,
        started_s: Some(10.0),
        time_limit_s: Some(3600.0),
        gpus: 1,
        gpu_mem_bytes: Some(12 << 30),
        peak_bytes: 3 << 29,
        gpu_ids: vec![2],
        ..TaskView::default()
    }
}

fn text(terminal: Option<usize>, tasks: &[TaskView]) -> String {
    let (rows, mut text) = (Rows::new(terminal, true), Vec::new());
    let mut rows = Folding::new(rows, Moment(100_000), false);
    tasks.iter().for_each(|task| rows.push(task));
    rows.rows().print(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_queue_reads_like_slurms() {
    let waits = TaskView {
        reason: Some("held: `coloc release` lets it go on".into()),
        gpu_ids: vec![],
        started_s: None,
        array_id: Some(8),
        array_index: Some(3),
        ..task(11, TaskState::Pending)
    };
    insta::assert_snapshot!(text(None, &[task(7, TaskState::Running), waits]), @r"
    ID        NAME      USER  ST  TIME  LIMIT    GPUS  GPU-MEM     GPU(REASON)
    7         train.py  ada   R   1:30  1:00:00  1     12.0G/1.5G  2
    11 (8_3)  train.py  ada   PD  -     1:00:00  1     12.0G/1.5G  (held: `coloc release` lets it go on)
    ");
}

#[test]
fn an_array_is_one_line_and_logs_tell_how_far_tasks_are() {
    let progress = |done, eta| {
        let total = Some(1000);
        Some(Progress { done, total, unit: "iter".into(), rate: Some(1.0), eta_s: Some(eta) })
    };
    let of_array = |id: u32, state| TaskView {
        array_id: Some(8),
        array_index: Some(id - 7),
        ..task(id, state)
    };
    let waits = |id| TaskView {
        reason: Some("array limit: 2 of it are at work".into()),
        gpu_ids: vec![],
        started_s: None,
        ..of_array(id, TaskState::Pending)
    };
    let runs = |id, done, eta, gpu| TaskView {
        progress: progress(done, eta),
        gpu_ids: vec![gpu],
        ..of_array(id, TaskState::Running)
    };
    let open = Some(Progress { done: 70, unit: "step".into(), ..Progress::default() });
    let alone = TaskView { progress: open, ..task(7, TaskState::Running) };
    let one = TaskView { array_id: Some(20), array_index: Some(3), ..task(22, TaskState::Running) };
    let tasks = [alone, runs(8, 450, 754.0, 0), runs(9, 250, 60.0, 3), waits(10), waits(12), one];
    insta::assert_snapshot!(text(None, &tasks), @r"
    ID               NAME      USER  ST         TIME  LIMIT    GPUS  GPU-MEM     DONE       GPU(REASON)
    7                train.py  ada   R          1:30  1:00:00  1     12.0G/1.5G  70 step    2
    8-10,12 [1-3,5]  train.py  ada   2 R, 2 PD  1:30  1:00:00  1     12.0G/1.5G  35% 12:34  0,3 (array limit: 2 of it are at work)
    22 (20_3)        train.py  ada   R          1:30  1:00:00  1     12.0G/1.5G  -          2
    ");
    insta::assert_snapshot!(text(Some(80), &tasks), @r"
    ID              NAME      USER  ST         TIME  GPUS  DONE       GPU(REASON)
    7               train.py  ada   R          1:30  1     70 step    2
    8-10,12 [1-3,…  train.py  ada   2 R, 2 PD  1:30  1     35% 12:34  0,3 (array li…
    22 (20_3)       train.py  ada   R          1:30  1     -          2
    ");
    let (mut rows, mut unfolded) =
        (Folding::new(Rows::new(None, false), Moment(100_000), true), Vec::new());
    tasks.iter().for_each(|task| rows.push(task));
    rows.rows().print(&mut unfolded).unwrap();
    assert_eq!(String::from_utf8(unfolded).unwrap().lines().count(), tasks.len());
}

#[test]
fn characters_are_counted_and_a_terminal_is_not_overrun() {
    let long = || TaskView { name: "ä".repeat(50), ..task(7, TaskState::Running) };
    let cut = text(Some(20), &[long()]);
    assert!(cut.lines().all(|line| line.chars().count() <= 20), "{cut}");
    let endless = TaskView { reason: Some("x".repeat(300)), ..long() };
    let whole = text(None, &[long(), endless, task(8, TaskState::Running)]);
    assert!(whole.lines().nth(2).is_some_and(|line| line.ends_with("xxx)")), "{whole}");
    let user = |line: &str| line.chars().position(|char| char == 'U' || char == 'a');
    let columns: Vec<_> = whole.lines().map(user).collect();
    assert_eq!(columns[..2], [Some(56), Some(56)], "{whole}");
}

#[test]
fn a_task_that_says_little_is_a_row() {
    let task = TaskView { started_s: None, ..task(7, TaskState::Pending) };
    let task = TaskView { time_limit_s: None, gpu_mem_bytes: None, peak_bytes: 0, ..task };
    let task = TaskView { gpu_ids: vec![], name: "a\"b".into(), ..task };
    assert!(
        text(None, &[task])
            .ends_with("a\"b   ada   PD  -     -      1     -/0.0G   (waiting for a GPU)\n")
    );
}
