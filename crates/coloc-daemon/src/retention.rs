//! What ended tasks leave behind, their logs and copies of scripts: kept for a while, and then removed.

use crate::journal::{Journal, JournalError};
use crate::record::Record;
use crate::retention_clock::RetentionClockFile;
use crate::tokens::Tokens;
use coloc_api::moment::Moment;
use coloc_model::{Bytes, Millis, TaskId};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// The directories are looked at at least this often.
const LONGEST_PERIOD: Duration = Duration::from_secs(3600);
/// And at most.
const SHORTEST_PERIOD: Duration = Duration::from_secs(1);
/// So many tasks are told of at once.
const TOLD_AT_ONCE: usize = 500;

/// How long what ended tasks leave is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Since their end; `None` is for ever.
    pub age: Option<Millis>,
    /// All that tasks leave together: of more, the oldest goes first.
    pub size: Option<Bytes>,
}

impl Default for Retention {
    fn default() -> Self {
        Retention { age: Some(Millis::from_secs(30 * 86_400)), size: None }
    }
}

impl Retention {
    /// How often it is worth a look.
    fn period(self) -> Duration {
        let age = self.age.map(|age| Duration::from_millis(age.0 / 8));
        age.unwrap_or(LONGEST_PERIOD).clamp(SHORTEST_PERIOD, LONGEST_PERIOD)
    }
}

/// The directories of a task's attempts.
#[derive(Clone, PartialEq, Debug)]
struct Left {
    task: TaskId,
    ended: Moment,
    size: Bytes,
    places: Vec<PathBuf>,
}

/// Removes what is too old, or too much, by whatever was said last, until the sender is gone. Tells of which tasks it
/// was. How old something is goes by a clock that does not jump.
pub(crate) fn keep(
    runs: &Path,
    journal: &Path,
    rules: &Receiver<Retention>,
    mut clock: RetentionClockFile,
    tokens: &Tokens,
    tell: impl Fn(Vec<TaskId>),
) {
    let Ok(mut rule) = rules.recv() else { return };
    loop {
        let now = clock.now();
        if let Err(error) = tokens.forget_old(now) {
            tracing::warn!("old tokens cannot be forgotten: {error}");
        }
        match sweep(runs, journal, rule, now) {
            Ok(removed) => removed.chunks(TOLD_AT_ONCE).for_each(|part| tell(part.to_vec())),
            Err(error) => tracing::warn!("what tasks left cannot be swept: {error}"),
        }
        match rules.recv_timeout(rule.period()) {
            Ok(new) => rule = new,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn sweep(
    runs: &Path,
    journal: &Path,
    rule: Retention,
    now: Moment,
) -> Result<Vec<TaskId>, SweepError> {
    if rule.age.is_none() && rule.size.is_none() {
        return Ok(Vec::new());
    }
    let journal = Journal::open_reader(journal)?;
    let (mut left, mut others) = (Vec::new(), Bytes::ZERO);
    for (task, places) in attempts(runs)? {
        // How much there is counts only where a limit was set.
        let measured = places.iter().filter(|_| rule.size.is_some());
        let size = measured.map(|place| size(place)).sum();
        let ended = |record: Record| record.ended.filter(|_| record.phase.is_over());
        match journal.task(task)?.and_then(ended) {
            Some(ended) => left.push(Left { task, ended, size, places }),
            // It has not ended, or is not known: hands off.
            None => others += size,
        }
    }
    let goes = too_many(left, others, rule, now).into_iter();
    let removed = goes.filter(|left| {
        // What stays for now goes next time.
        left.places.iter().all(|place| fs::remove_dir_all(place).is_ok())
    });
    Ok(removed.map(|left| left.task).collect())
}

/// Directories whose time is over, and the oldest of those that are too much.
fn too_many(mut left: Vec<Left>, others: Bytes, rule: Retention, now: Moment) -> Vec<Left> {
    left.sort_unstable_by_key(|left| (left.ended, left.task));
    let mut total = left.iter().map(|left| left.size).sum::<Bytes>() + others;
    let goes = |left: &Left| {
        let old = rule.age.is_some_and(|age| now.0.saturating_sub(left.ended.0) > age.0);
        let goes = old || rule.size.is_some_and(|size| total > size);
        total = total.saturating_sub(left.size);
        goes
    };
    // The oldest come first: after one that stays, all stay.
    left.into_iter().take_while(goes).collect()
}

/// The directories of all attempts, by task.
pub(crate) fn attempts(runs: &Path) -> io::Result<BTreeMap<TaskId, Vec<PathBuf>>> {
    let mut all: BTreeMap<TaskId, Vec<PathBuf>> = BTreeMap::new();
    for entry in fs::read_dir(runs)? {
        let entry = entry?;
        let name = entry.file_name();
        let parts = name.to_str().and_then(|name| name.split_once('.'));
        let ids = parts.and_then(|(task, n)| Some((task.parse().ok()?, n.parse::<u32>().ok()?)));
        // What is not named so is not ours.
        let Some((task, _)) = ids.filter(|_| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        else {
            continue;
        };
        all.entry(TaskId(task)).or_default().push(entry.path());
    }
    Ok(all)
}

/// The room that the files of an attempt take.
fn size(place: &Path) -> Bytes {
    use std::os::unix::fs::MetadataExt as _;
    let files = fs::read_dir(place).into_iter().flatten().flatten();
    // Blocks have 512 bytes. A link counts for itself.
    files.filter_map(|file| file.metadata().ok()).map(|meta| Bytes(meta.blocks() * 512)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(task: u32, ended: u64, mib: u64) -> Left {
        let size = Bytes::from_mib(mib);
        Left { task: TaskId(task), ended: Moment(ended), size, places: Vec::new() }
    }

    #[test]
    fn the_old_go_and_of_too_much_the_oldest() {
        let all = || vec![left(3, 3000, 10), left(1, 1000, 10), left(2, 2000, 10)];
        let gone = |age: Option<u64>, size: Option<u64>, others: u64| -> Vec<u32> {
            let rule = Retention { age: age.map(Millis), size: size.map(Bytes::from_mib) };
            let gone = too_many(all(), Bytes::from_mib(others), rule, Moment(4000));
            gone.into_iter().map(|left| left.task.0).collect()
        };
        assert_eq!(gone(Some(1500), None, 0), [1, 2]);
        assert_eq!(gone(Some(3000), None, 0), [0; 0], "not a moment too early");
        assert_eq!(gone(None, Some(30), 0), [0; 0]);
        assert_eq!(gone(None, Some(20), 0), [1]);
        assert_eq!(gone(None, Some(20), 5), [1, 2], "what others have counts too");
        assert_eq!(gone(None, Some(0), 99), [1, 2, 3]);
        assert_eq!(gone(Some(2500), Some(29), 0), [1]);
    }

    #[test]
    fn only_directories_of_attempts_are_looked_at() {
        let place = tempfile::tempdir().unwrap();
        for name in ["7.1", "7.2", "8.1", "x", "7", "7.x", "-1.1", "9.1.old"] {
            fs::create_dir(place.path().join(name)).unwrap();
        }
        fs::write(place.path().join("10.1"), "a file").unwrap();
        std::os::unix::fs::symlink("/", place.path().join("11.1")).unwrap();
        let found: Vec<(u32, usize)> =
            attempts(place.path()).unwrap().iter().map(|(id, all)| (id.0, all.len())).collect();
        assert_eq!(found, [(7, 2), (8, 1)]);
    }

    #[test]
    fn it_looks_as_often_as_it_makes_a_difference() {
        let of = |age: Option<Millis>| Retention { age, size: None }.period();
        assert_eq!(of(None), LONGEST_PERIOD);
        assert_eq!(of(Retention::default().age), LONGEST_PERIOD);
        assert_eq!(of(Some(Millis::from_secs(80))), Duration::from_secs(10));
        assert_eq!(of(Some(Millis::ZERO)), SHORTEST_PERIOD);
    }
}
