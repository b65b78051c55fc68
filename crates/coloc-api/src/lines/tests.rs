//! What is written is read, and strange lines are refused.

use super::*;
use proptest::prelude::*;

/// What a task that waits says if it says nothing else.
fn usual(id: u32) -> Option<String> {
    let waits = TaskState::ALL[id as usize % TaskState::ALL.len()] == TaskState::Pending;
    waits.then(|| WAITING.to_owned())
}

fn task() -> impl Strategy<Value = TaskView> {
    let numbers = (any::<u32>(), any::<[u32; 4]>(), any::<[Option<u32>; 2]>());
    let times = any::<(u32, Option<u32>, Option<u32>, Option<u32>)>();
    let sizes = any::<(u64, Option<u64>, Option<u64>)>();
    let signed = any::<(i32, Option<i32>)>();
    let words = (any::<String>(), "[a\\\\\t\n\r]{0,6}", prop::option::of("[^\0]{1,9}"));
    let gpus = prop::collection::vec(any::<u32>(), 0..4);
    let progress = any::<Option<(u64, Option<u64>, Option<u16>, Option<u32>, String)>>();
    let gpus = (gpus, progress);
    (numbers, times, sizes, signed, words, gpus).prop_map(
        |((id, counts, array), times, sizes, signed, (name, user, reason), (gpu_ids, progress))| {
            let seconds = |millis: u32| f64::from(millis) / 1000.0;
            TaskView {
                id,
                state: TaskState::ALL[id as usize % TaskState::ALL.len()],
                array_id: array[0],
                array_index: array[1],
                submitted_s: seconds(times.0),
                started_s: times.1.map(seconds),
                ended_s: times.2.map(seconds),
                time_limit_s: times.3.map(seconds),
                priority: signed.0,
                exit_code: signed.1,
                gpus: counts[0],
                attempts: counts[1],
                ooms: counts[2],
                preemptions: counts[3],
                peak_bytes: sizes.0,
                gpu_mem_bytes: sizes.1,
                estimate_bytes: sizes.2,
                gpu_ids,
                name,
                user,
                reason: reason.or_else(|| usual(id)),
                bound_bytes: sizes.1,
                promised_bytes: sizes.2,
                used_bytes: sizes.1,
                first_started_s: times.1.map(seconds),
                held_by: array[0].map(|_| "b\tob".to_owned()),
                position: array[1].filter(|&place| place > 0),
                reason_code: array[0].map(|n| ReasonCode::ALL[n as usize % 19]),
                progress: progress.map(|(done, total, rate, eta, unit)| Progress {
                    done,
                    total,
                    rate: rate.map(|rate| f64::from(rate) / 7.0),
                    eta_s: eta.map(f64::from),
                    unit,
                }),
                stopped_s: times.2.map(seconds),
            }
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(task in task()) {
        let mut text = Vec::new();
        write(&mut text, &task);
        let line = text.strip_suffix(b"\n").expect("a whole line");
        prop_assert!(!line.contains(&b'\n'));
        prop_assert_eq!(line.split(|&byte| byte == b'\t').count(), HEADER.split('\t').count());
        prop_assert_eq!(read(line).map(TaskView::owned), Ok(task));
    }

    #[test]
    fn no_line_is_too_strange(line in prop::collection::vec(any::<u8>(), 0..200), cut in 0usize..90) {
        let _ = read(&line);
        let mut text = Vec::new();
        write(&mut text, &TaskView::<String>::default());
        text.extend_from_slice(&line);
        let _ = read(&text[cut.min(text.len())..]);
    }
}

/// A list of an earlier version ends with the reason.
#[test]
fn a_line_without_progress_is_read() {
    let mut text = Vec::new();
    write(&mut text, &TaskView::<String> { id: 7, ..TaskView::default() });
    let text = String::from_utf8(text).unwrap();
    let before = text.trim_end_matches('\n').strip_suffix("\t\t").unwrap();
    assert_eq!(read(before.as_bytes()).map(|task| task.id), Ok(7));
}

#[test]
fn a_wrong_line_is_named() {
    assert_eq!(read(b"1\tpending\t2").map(|task| task.id), Err(BadLine::Short("array_index")));
    assert_eq!(read(b"\xff").map(|task| task.id), Err(BadLine::NoText));
    let text = read(b"1\tasleep").map(|task| task.id).unwrap_err().to_string();
    assert_eq!(text, "a line of the list has \"asleep\" as state");
}

#[test]
fn a_wait_before_the_end_is_no_run_time() {
    let task = TaskView::<String> {
        state: TaskState::Cancelled,
        started_s: Some(10.0),
        stopped_s: Some(15.0),
        ended_s: Some(100.0),
        ..TaskView::default()
    };
    assert_eq!(task.ran_s(200.0), Some(5.0));
    let runs = TaskView { state: TaskState::Running, ended_s: None, ..task.clone() };
    assert_eq!(runs.ran_s(200.0), Some(190.0));
    let old = TaskView { stopped_s: None, ..task };
    assert_eq!(old.ran_s(200.0), Some(90.0), "a daemon that does not say");
}
