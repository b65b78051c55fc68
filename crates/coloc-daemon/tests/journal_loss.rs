//! A journal that is not the one that was written, or not all of it, is refused; one that is, never.

use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_api::view::StoryLine;
use coloc_daemon::journal::{Entry, Journal, JournalError, Saved, Stale, Trouble};
use coloc_daemon::record::{Record, SpecId, Uid};
use coloc_daemon::state_dir::{self, StateError};
use coloc_model::TaskId;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A state directory, and the journal in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Place(tempfile::tempdir().expect("a directory"))
    }

    fn state(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.state().join(name)
    }

    fn open(&self) -> Result<Journal, JournalError> {
        Journal::open(&self.file("journal.db"))
    }

    fn load(&self) -> Saved {
        self.open().and_then(|mut journal| journal.load(&self.file("runs"))).expect("it is whole")
    }

    /// As it is at this moment: what a `kill -9` leaves.
    fn copy(&self) -> Place {
        let copy = Place::new();
        for name in ["journal.db", "journal.db-wal", "journal.mark"] {
            if self.file(name).exists() {
                fs::copy(self.file(name), copy.file(name)).expect("copied");
            }
        }
        copy
    }

    fn refusal(&self) -> Stale {
        // SQLite leaves an empty log behind, which is as good as none.
        let names = ["journal.db", "journal.db-wal", "journal.mark"];
        let files = || names.map(|name| fs::read(self.file(name)).unwrap_or_default());
        let before = files();
        let refused = self.open().expect_err("it is refused");
        assert!(refused.to_string().contains("coloc state restore"), "{refused}");
        assert!(files() == before, "a refusal changes nothing");
        match refused {
            JournalError::Stale { stale, .. } => stale,
            other => panic!("{other}"),
        }
    }
}

fn spec() -> Arc<TaskSpec> {
    let command = vec!["true".to_owned().into()];
    Arc::new(TaskSpec::new("name".to_owned(), command, "/".to_owned().into()))
}

/// A task of its own submission.
fn submission(id: u32) -> Vec<Entry> {
    let record = Record::new(TaskId(id), SpecId(id), Uid(0), Moment::now());
    let line = StoryLine { at: Moment::now(), what: "submitted".to_owned() };
    vec![
        Entry::Spec(SpecId(id), spec()),
        Entry::Task(Box::new(record)),
        Entry::Story(TaskId(id), line),
    ]
}

fn submit(journal: &mut Journal, ids: std::ops::RangeInclusive<u32>) {
    ids.for_each(|id| journal.write(&submission(id)).expect("written"));
}

#[test]
fn whatever_a_crash_leaves_is_taken() {
    // Before the journal, after its mark.
    let place = Place::new();
    drop(place.open().expect("new"));
    fs::remove_file(place.file("journal.db")).expect("removed");
    let mark = fs::read(place.file("journal.mark")).expect("a mark");
    assert!(place.open().is_ok(), "nothing was acknowledged");
    // Between a commit and the mark; and a mark that a power loss threw back further.
    let mut journal = place.open().expect("open");
    journal.load(&place.file("runs")).expect("loaded");
    let mut copies = vec![place.copy()];
    for id in 1..=3 {
        submit(&mut journal, id..=id);
        copies.push(place.copy());
    }
    for older in 0..copies.len() {
        for newer in older..copies.len() {
            let copy = copies[newer].copy();
            fs::copy(copies[older].file("journal.mark"), copy.file("journal.mark"))
                .expect("copied");
            assert_eq!(copy.load().next_task, newer as u32 + 1, "mark {older}, journal {newer}");
        }
    }
    let copy = copies[3].copy();
    fs::write(copy.file("journal.mark"), mark).expect("written");
    assert_eq!(copy.load().live.len(), 3);
    // One that was stopped has no log, and needs none.
    drop(journal);
    assert!(!place.file("journal.db-wal").exists());
    assert_eq!(place.load().live.len(), 3);
}

#[test]
fn whatever_is_missing_is_noticed() {
    let place = Place::new();
    let mut journal = place.open().expect("new");
    journal.load(&place.file("runs")).expect("loaded");
    submit(&mut journal, 1..=2);
    let before = place.copy();
    submit(&mut journal, 3..=5);
    let lost = |missing, knows| Stale::Behind { missing, knows, acknowledged: 5 };

    let copy = place.copy();
    fs::copy(before.file("journal.db-wal"), copy.file("journal.db-wal")).expect("copied");
    assert_eq!(copy.refusal(), lost(3, 2));

    let copy = place.copy();
    fs::remove_file(copy.file("journal.db-wal")).expect("removed");
    assert_eq!(copy.refusal(), Stale::Gone { acknowledged: 5 }, "all of it was in the log");

    let copy = place.copy();
    fs::remove_file(copy.file("journal.db")).expect("removed");
    assert_eq!(copy.refusal(), Stale::Gone { acknowledged: 5 });
    fs::write(copy.file("journal.db"), "").expect("written");
    assert_eq!(copy.refusal(), Stale::Gone { acknowledged: 5 });

    let copy = place.copy();
    fs::remove_file(copy.file("journal.mark")).expect("removed");
    assert_eq!(copy.refusal(), Stale::NoMark);
    fs::write(copy.file("journal.mark"), "coloc-mark-1 what?").expect("written");
    assert_eq!(copy.refusal(), Stale::MarkDamaged);

    let other = Place::new();
    other.load();
    drop(journal);
    fs::copy(place.file("journal.db"), other.file("journal.db")).expect("copied");
    assert_eq!(other.refusal(), Stale::Another);

    let old = place.copy();
    fs::remove_file(old.file("journal.db")).expect("removed");
    let db = rusqlite::Connection::open(old.file("journal.db")).expect("a file");
    db.execute_batch(include_str!("journals/version_4.sql")).expect("a journal");
    drop(db);
    assert_eq!(old.refusal(), Stale::Earlier);
}

#[test]
fn a_row_that_was_changed_or_is_missing_or_old_is_noticed() {
    let place = Place::new();
    let mut journal = place.open().expect("new");
    journal.load(&place.file("runs")).expect("loaded");
    journal.write(&[Entry::Draining(false)]).expect("written");
    submit(&mut journal, 1..=3);
    drop(journal);
    let changes = [
        "UPDATE tasks SET body = replace(body, '\"held\":false', '\"held\":true') WHERE id = 2",
        "UPDATE specs SET body = replace(body, 'true', 'rm') WHERE id = 3",
        "UPDATE tasks SET over = 1, ended_ms = 5 WHERE id = 1",
        "UPDATE facts SET value = 1 WHERE name = 'draining'",
        "UPDATE story SET seq = 77 WHERE seq = 2",
        "UPDATE seal SET least_task = 99",
        "DELETE FROM tasks WHERE id = 2",
        "DELETE FROM story WHERE seq = 1",
        "DELETE FROM seal",
        "INSERT INTO story SELECT seq + 100, task, at_ms, what, sum FROM story",
    ];
    for change in changes {
        let copy = place.copy();
        let db = rusqlite::Connection::open(copy.file("journal.db")).expect("a file");
        assert!(db.execute(change, []).expect(change) > 0, "{change}");
        drop(db);
        let refused = copy.open().expect_err(change);
        assert_eq!(refused.trouble(), Trouble::Damaged, "{change}: {refused}");
        assert!(refused.to_string().contains("coloc state restore"), "{refused}");
        let accepted = state_dir::accept(copy.state()).expect_err("accepting is for what is whole");
        assert!(matches!(accepted, StateError::Newest(_) | StateError::Journal(_)), "{accepted}");
        let report = state_dir::check(copy.state()).expect("a report");
        assert!(format!("{report:?}").contains("Broken"), "{change}: {report:?}");
    }
    // A database of before under the log of after has rows that are whole, and old.
    let mut journal = place.open().expect("whole");
    submit(&mut journal, 4..=4);
    let old = place.copy();
    journal.write(&[Entry::Draining(true)]).expect("written");
    rusqlite::Connection::open(place.file("journal.db"))
        .and_then(|db| db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())))
        .expect("into the database");
    submit(&mut journal, 5..=5);
    let mixed = place.copy();
    fs::copy(old.file("journal.db"), mixed.file("journal.db")).expect("copied");
    assert_eq!(mixed.open().expect_err("it is refused").trouble(), Trouble::Damaged);
}

#[test]
fn no_id_is_used_twice() {
    let place = Place::new();
    let mut journal = place.open().expect("new");
    assert_eq!(journal.load(&place.file("runs")).expect("loaded").next_task, 1);
    submit(&mut journal, 1..=3);
    let before = place.copy();
    submit(&mut journal, 4..=1002);
    drop(journal);
    // Traces of tasks are enough.
    fs::create_dir_all(place.file("runs/1400.2")).expect("a directory");
    assert_eq!(place.load().next_task, 1401);
    let empty = Place::new();
    fs::create_dir_all(empty.file("runs/7.1")).expect("a directory");
    assert_eq!(empty.load().next_task, 8);
    // A journal of before, with the mark of now: every id that was reserved counts as used.
    fs::copy(place.file("journal.mark"), before.file("journal.mark")).expect("copied");
    assert!(before.open().is_err());
    let went_on = state_dir::accept(before.state()).expect("accepted");
    assert_eq!(went_on.next_task, 2000);
    assert!(went_on.kept.is_some_and(|kept| kept.exists()));
    let saved = before.load();
    assert_eq!((saved.next_task, saved.next_spec, saved.live.len()), (2000, 2000, 3));
    assert_eq!(before.load().next_task, 2000, "at every start");
    let again = state_dir::accept(before.state());
    assert!(matches!(again, Err(StateError::Newest(_))), "{again:?}");
    // It is another journal now: the old one is not mistaken for it.
    fs::copy(place.file("journal.db"), before.file("journal.db")).expect("copied");
    assert_eq!(before.refusal(), Stale::Another);
    // Without any journal.
    fs::remove_file(before.file("journal.db")).expect("removed");
    let went_on = state_dir::accept(before.state()).expect("accepted");
    assert_eq!((went_on.next_task, went_on.kept), (3000, None));
    assert_eq!((before.load().next_task, before.load().live.len()), (3000, 0));
    let mode = std::os::unix::fs::MetadataExt::mode(
        &fs::metadata(before.file("journal.db")).expect("a file"),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_backup_is_put_back_and_the_runs_of_another_life_count_for_nothing() {
    let place = Place::new();
    let mut journal = place.open().expect("new");
    journal.load(&place.file("runs")).expect("loaded");
    submit(&mut journal, 1..=2);
    let file = place.file("backup.db");
    // Beside a daemon, that is, while the journal is open.
    let made = state_dir::backup(place.state(), &file).expect("a backup");
    assert_eq!(made.tasks, 2);
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&file).expect("a file"));
    assert_eq!(mode & 0o777, 0o600);
    let again = state_dir::backup(place.state(), &file);
    assert!(matches!(again, Err(StateError::Exists(_))), "{again:?}");
    submit(&mut journal, 3..=4);
    drop(journal);
    // Task 2 was started after the backup, and so were 3 and 4.
    for run in ["2.1", "3.1", "4.1", "4.2"] {
        fs::create_dir_all(place.file("runs").join(run)).expect("a directory");
    }
    let before = place.copy();
    // Put in the journal's place by hand, it is refused.
    fs::copy(&file, before.file("journal.db")).expect("copied");
    assert_eq!(before.refusal(), Stale::Behind { missing: 2, knows: 2, acknowledged: 4 });
    let went_on = state_dir::restore(place.state(), &file).expect("restored");
    assert_eq!((went_on.next_task, went_on.held, went_on.unknown), (1000, vec![2], vec![3, 4]));
    let saved = place.load();
    assert_eq!(saved.next_task, 1000);
    let [(first, _), (second, _)] = &saved.live[..] else { panic!("{saved:?}") };
    assert!(!first.held && second.held && second.attempt == 1, "{second:?}");
    // What was replaced is whole.
    let replaced = Journal::open_reader(&went_on.kept.expect("it was kept")).expect("readable");
    assert!(replaced.task(TaskId(4)).expect("readable").is_some());
    let garbage = place.file("garbage");
    for wrong in ["", "this is no journal"] {
        fs::write(&garbage, wrong).expect("written");
        let refused = state_dir::restore(place.state(), &garbage).expect_err("refused");
        assert!(matches!(refused, StateError::NoBackup { .. }), "{refused}");
        assert_eq!(place.load().live.len(), 2, "nothing was changed");
        assert!(!place.file("journal.restoring.db").exists());
    }
}

#[test]
fn troubles_are_told_apart() {
    let place = Place::new();
    let mut journal = place.open().expect("new");
    journal.load(&place.file("runs")).expect("loaded");
    let other = rusqlite::Connection::open(place.file("journal.db")).expect("a file");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let locked = journal.write(&submission(1)).expect_err("it is locked");
    assert_eq!(locked.trouble(), Trouble::Locked, "{locked}");
    other.execute_batch("ROLLBACK").expect("unlocked");
    journal.write(&submission(1)).expect("written");
    let mut reader = Journal::open_reader(&place.file("journal.db")).expect("readable");
    let written = reader.write(&submission(2)).expect_err("it only reads");
    assert_eq!(written.trouble(), Trouble::ReadOnly, "{written}");
    assert!(
        Journal::open_reader(&place.file("none")).is_err_and(|e| e.trouble() == Trouble::Denied)
    );
}
