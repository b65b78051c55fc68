//! What is wanted of running tasks is written down before they hear of it. On a disk that stays full the journal has no
//! room for that: then it is written to the intent file, which is as large as it will ever be, and the tasks go all the
//! same. What is written there counts until the journal has it.

use crate::journal::digest;
use crate::record::Intent;
use crate::reserve::take_room;
use coloc_model::TaskId;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Its first word.
const NAME: &str = "coloc-intents-1";
/// Enough for thousands of tasks. Two places are written in turn, so that one is whole whatever happens.
const SLOT: usize = 512 << 10;
/// Without a file, room for one is looked for this often.
const PERIOD: Duration = Duration::from_secs(10);

/// What is wanted of attempts.
type Intents = BTreeMap<(TaskId, u32), Intent>;

/// The file with the room.
#[derive(Debug)]
pub(crate) struct IntentFile {
    path: PathBuf,
    file: Option<File>,
    /// When room was looked for.
    tried: Instant,
    /// What the file says, and how often it was written.
    intents: Intents,
    sequence: u64,
    /// The disk that a test has it on.
    #[cfg(test)]
    disk: Option<std::sync::Arc<crate::journal::disk::Disk>>,
}

impl IntentFile {
    /// Takes the room, if it can be had, or has what an earlier daemon wrote to the intent file.
    pub(crate) fn open(path: PathBuf, now: Instant) -> Self {
        let mut intent_file = IntentFile {
            path,
            file: None,
            tried: now,
            intents: Intents::new(),
            sequence: 0,
            #[cfg(test)]
            disk: None,
        };
        intent_file.file =
            intent_file.find().or_else(|_| take_room(&intent_file.path, 2 * SLOT)).ok();
        intent_file
    }

    /// On a disk of a test.
    #[cfg(test)]
    pub(crate) fn on(disk: &std::sync::Arc<crate::journal::disk::Disk>, now: Instant) -> Self {
        let intent_file = IntentFile::open(PathBuf::new(), now);
        IntentFile { intents: disk.intent_file(), disk: Some(disk.clone()), ..intent_file }
    }

    /// What was written to the intent file of an attempt and is not in the journal.
    pub(crate) fn of(&self, task: TaskId, attempt: u32) -> Option<Intent> {
        self.intents.get(&(task, attempt)).copied()
    }

    /// Writes what is wanted of attempts to the intent file. What cannot be written is not wanted yet.
    pub(crate) fn note(&mut self, wanted: impl Iterator<Item = (TaskId, u32, Intent)>) {
        let mut all = self.intents.clone();
        all.extend(wanted.map(|(task, attempt, intent)| ((task, attempt), intent)));
        if all != self.intents && self.put(&all).is_ok() {
            self.intents = all;
        }
    }

    /// The journal has all of it.
    pub(crate) fn are_kept(&mut self, now: Instant) {
        // An attempt of which the journal knows more is not asked for here.
        if !self.intents.is_empty() && self.put(&Intents::new()).is_ok() {
            self.intents.clear();
        }
        if self.file.is_none() && now.saturating_duration_since(self.tried) > PERIOD {
            self.tried = now;
            self.file = take_room(&self.path, 2 * SLOT).ok();
        }
    }

    /// Writes over what is older; returns once it is on the disk.
    fn put(&mut self, intents: &Intents) -> io::Result<()> {
        #[cfg(test)]
        if let Some(disk) = &self.disk {
            disk.note(intents);
            return Ok(());
        }
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let list: Vec<_> = intents.iter().map(|((task, n), intent)| (task, n, intent)).collect();
        let text = format!("{NAME} {} {}", self.sequence + 1, serde_json::to_string(&list)?);
        let line = format!("{text} {:016x}\n", digest([text.as_bytes()]));
        if line.len() > SLOT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let place = (self.sequence % 2) * SLOT as u64;
        file.write_all_at(line.as_bytes(), place)?;
        file.sync_data()?;
        self.sequence += 1;
        Ok(())
    }

    /// The file of an earlier daemon.
    fn find(&mut self) -> io::Result<File> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        let mut body = vec![0; 2 * SLOT];
        file.read_exact_at(&mut body, 0)?;
        let newest = body.chunks(SLOT).filter_map(parse).max_by_key(|(sequence, _)| *sequence);
        (self.sequence, self.intents) = newest.unwrap_or_default();
        Ok(file)
    }
}

fn parse(slot: &[u8]) -> Option<(u64, Intents)> {
    let line = slot.split(|byte| *byte == b'\n').next()?;
    let (text, sum) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
    if u64::from_str_radix(sum, 16).ok()? != digest([text.as_bytes()]) {
        return None;
    }
    let mut words = text.splitn(3, ' ');
    let (NAME, sequence, list) = (words.next()?, words.next()?, words.next()?) else { return None };
    let list: Vec<(TaskId, u32, Intent)> = serde_json::from_slice(list.as_bytes()).ok()?;
    let intents = list.into_iter().map(|(task, attempt, intent)| ((task, attempt), intent));
    Some((sequence.parse().ok()?, intents.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &std::path::Path) -> IntentFile {
        IntentFile::open(path.to_owned(), Instant::now())
    }

    #[test]
    fn what_is_noted_is_found_again_until_the_journal_has_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("intents");
        let mut intent_file = opened(&path);
        let size = || std::fs::metadata(&path).unwrap().len();
        assert_eq!(size(), 2 * SLOT as u64);
        for task in 1..=5 {
            intent_file.note([(TaskId(task), 2, Intent::Cancel)].into_iter());
        }
        let again = opened(&path);
        assert_eq!(again.intents, intent_file.intents);
        assert_eq!(again.of(TaskId(3), 2), Some(Intent::Cancel));
        assert_eq!(again.of(TaskId(3), 1), None, "another attempt");
        // The newest is cut off in the middle: the one before is whole.
        let last = 8 + ((intent_file.sequence - 1) % 2) * SLOT as u64;
        again.file.as_ref().unwrap().write_all_at(b"#", last).unwrap();
        assert_eq!(opened(&path).intents.len(), 4);
        intent_file.are_kept(Instant::now());
        assert!(intent_file.intents.is_empty());
        assert!(opened(&path).intents.is_empty());
        assert_eq!(size(), 2 * SLOT as u64, "it takes no more room, and gives none away");
    }

    #[test]
    fn more_than_there_is_room_for_is_not_noted() {
        let place = tempfile::tempdir().unwrap();
        let mut intent_file = opened(&place.path().join("intents"));
        intent_file.note([(TaskId(1), 1, Intent::Requeue)].into_iter());
        intent_file.note((2..100_000).map(|task| (TaskId(task), 1, Intent::Cancel)));
        assert_eq!(intent_file.intents.len(), 1);
        std::fs::write(place.path().join("nothing"), b"").unwrap();
        let intent_file = opened(&place.path().join("nothing"));
        assert!(intent_file.file.is_some(), "a file that is too small is made anew");
    }
}
