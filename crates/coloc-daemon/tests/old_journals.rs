//! Journals of every version that was ever written, kept as they were: each must be readable for ever.

use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_core::preset::MemoryKnowledge;
use coloc_core::{Policy, Preset};
use coloc_daemon::journal::{Journal, JournalError, SCHEMA_VERSION, Setup, Trouble};
use coloc_daemon::past;
use coloc_daemon::record::{Record, Uid};
use coloc_model::{GpuModel, Millis, TaskId, TaskState};
use std::path::PathBuf;
use std::sync::Arc;

/// One for each version.
const WRITTEN: [&str; 8] = [
    include_str!("journals/version_1.sql"),
    include_str!("journals/version_2.sql"),
    include_str!("journals/version_3.sql"),
    include_str!("journals/version_4.sql"),
    include_str!("journals/version_5.sql"),
    include_str!("journals/version_6.sql"),
    include_str!("journals/version_7.sql"),
    include_str!("journals/version_8.sql"),
];
/// What was kept beside the journals that have a mark, since version 5.
const MARKS: [&[u8]; 4] = [
    include_bytes!("journals/version_5.mark"),
    include_bytes!("journals/version_6.mark"),
    include_bytes!("journals/version_7.mark"),
    include_bytes!("journals/version_8.mark"),
];

fn unpack(place: &tempfile::TempDir, sql: &str) -> PathBuf {
    let path = place.path().join("journal.db");
    let db = rusqlite::Connection::open(&path).expect("a file");
    db.execute_batch(sql).expect("a journal");
    let sealed = WRITTEN.iter().skip(4).zip(MARKS).find(|(written, _)| **written == sql);
    if let Some((_, mark)) = sealed {
        std::fs::write(place.path().join("journal.mark"), mark).expect("written");
    }
    path
}

#[test]
fn every_version_is_kept_and_read() {
    assert_eq!(WRITTEN.len() as u32, SCHEMA_VERSION, "a new version needs a journal of its own");
    for (index, sql) in WRITTEN.into_iter().enumerate() {
        let place = tempfile::tempdir().expect("a directory");
        let path = unpack(&place, sql);
        // Before a daemon brings it up to date, by a reader.
        let reader = Journal::open_reader(&path).expect("readable");
        check(&past::read(&reader, Moment(0), None).expect("a past"));
        drop(reader);
        let mut journal = Journal::open(&path).expect("migrated");
        let saved = journal.load(&place.path().join("runs")).expect("loaded");
        let arrays = index + 1 >= 6;
        assert_eq!((saved.next_task, saved.next_spec), (if arrays { 7 } else { 4 }, 4));
        let lessons = usize::from(index + 1 >= 3);
        assert_eq!(saved.lessons.len(), lessons, "taught since version 3");
        let keyed = journal.keyed(Uid(0), "nightly", Moment::now()).expect("readable");
        assert_eq!(keyed.is_some(), index + 1 >= 4, "keys since version 4");
        assert!(keyed.is_none_or(|tasks| tasks == [TaskId(2), TaskId(3)]));
        let drained = saved.gpus.iter().filter_map(|gpu| gpu.drained.as_ref());
        let reasons: Vec<&str> = drained.map(|drain| drain.reason.as_str()).collect();
        assert_eq!(
            !reasons.is_empty(),
            index + 1 >= 5,
            "drained GPUs since version 5: {reasons:?}"
        );
        let (notices, next) = &saved.notices;
        let told: Vec<u64> = notices.iter().map(|notice| notice.id).collect();
        let (ids, after): (&[u64], u64) = if index + 1 >= 7 { (&[12], 13) } else { (&[], 1) };
        assert_eq!((&told[..], *next), (ids, after), "hooks since version 7");
        let [(task, spec), array @ ..] = &saved.live[..] else { panic!("one waits: {saved:?}") };
        let of_array = |(task, _): &(Record, Arc<TaskSpec>)| {
            (task.id.0, task.held, task.array.map(|place| (place.array.0, place.index)))
        };
        let of_array: Vec<_> = array.iter().map(of_array).collect();
        let written =
            [(4, false, Some((4, 10))), (5, true, Some((4, 20))), (6, false, Some((4, 30)))];
        assert_eq!(of_array, if arrays { &written[..] } else { &[] }, "in one row since version 6");
        assert!(task.id == TaskId(3) && task.held && task.phase == TaskState::Pending);
        assert_eq!(spec.time_limit, Some(Millis::from_secs(60)));
        assert!(!journal.story(TaskId(1)).expect("a story").is_empty());
        let as_data = index + 1 >= 8;
        let attempts = journal.attempts(TaskId(1)).expect("readable");
        assert_eq!(attempts.len(), usize::from(as_data), "attempts since version 8");
        let decisions = journal.decisions(TaskId(1)).expect("readable");
        let rules = decisions.iter().flat_map(|decision| &decision.gpus).flat_map(|g| &g.refusals);
        assert_eq!(rules.count(), usize::from(as_data), "with the rules of rejected GPUs");
        let series: Option<coloc_api::view::SeriesView> =
            journal.series(TaskId(1)).expect("readable");
        assert_eq!(series.is_some(), as_data);
        check(&past::read(&journal, Moment(0), None).expect("a past"));
    }
}

fn check(past: &coloc_api::past::Past) {
    let tasks: Vec<(&str, TaskState)> =
        past.tasks.iter().map(|task| (task.kind.as_str(), task.state)).collect();
    assert_eq!(tasks, [("first", TaskState::Completed), ("second", TaskState::Failed)]);
    assert_eq!(past.tasks[0].memory_bytes, Some(2 << 30));
}

#[test]
fn a_setup_is_written_when_it_changes() {
    let place = tempfile::tempdir().expect("a directory");
    let path = unpack(&place, WRITTEN[0]);
    let mut journal = Journal::open(&path).expect("migrated");
    assert_eq!(journal.setup().expect("readable"), None);
    let policy: Policy = Preset::Coloc.policy(MemoryKnowledge::Estimate);
    let setup =
        Setup { policy, gpus: vec![GpuModel::A100_40GB; 2], time_scale: 1.0, uuids: vec![] };
    journal.note_setup(&setup).expect("written");
    journal.note_setup(&setup).expect("not written again");
    assert_eq!(journal.setup().expect("readable").as_ref(), Some(&setup));
    let rows: u32 = rusqlite::Connection::open(&path)
        .and_then(|db| db.query_row("SELECT COUNT(*) FROM setups", [], |row| row.get(0)))
        .expect("a count");
    assert_eq!(rows, 1);
}

#[test]
fn a_newer_journal_is_left_alone_and_garbage_is_said_to_be_garbage() {
    let place = tempfile::tempdir().expect("a directory");
    let newer = format!("{}PRAGMA user_version = 99;", WRITTEN[0]);
    let path = unpack(&place, &newer);
    for opened in [Journal::open(&path), Journal::open_reader(&path)] {
        assert!(matches!(opened, Err(JournalError::TooNew { found: 99 })), "{opened:?}");
    }
    std::fs::write(&path, b"this is no journal, whatever its name says").expect("written");
    let opened = Journal::open_reader(&path);
    assert!(matches!(&opened, Err(error) if error.trouble() == Trouble::Damaged), "{opened:?}");
    assert!(Journal::open_reader(&place.path().join("nothing")).is_err());
}
