//! How far the journal went, kept outside of it: SQLite drops the end of a damaged log without a word, and a copy from
//! yesterday looks like any other.
//!
//! The file names the journal and its last transaction. It is written after each commit and not waited for: what it says
//! has happened is on the disk, so a journal that ends earlier has lost something, and one that ends later was
//! interrupted between the two. Ids are reserved in it, a thousand at a time and waited for, before any is used.

use super::error::{JournalError, Stale, at};
use super::table::digest;
use crate::tokens::write_private;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Its first word.
const NAME: &str = "coloc-mark-1";
/// It is written to two places in turn, each in a sector of its own, so that one is whole whatever happens.
const SLOT: usize = 512;
/// Ids are reserved so many at a time.
const BLOCK: u32 = 1000;

/// Names a journal: a random number that nothing else has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Identity(u128);

impl Identity {
    /// One that nothing had before.
    pub(super) fn new() -> Result<Self, JournalError> {
        use ring::rand::SecureRandom as _;
        let mut bytes = [0; 16];
        let filled = ring::rand::SystemRandom::new().fill(&mut bytes);
        let fail = |_| at(Path::new("/dev/urandom"))(io::Error::other("no random numbers"));
        filled.map_err(fail)?;
        Ok(Identity(u128::from_be_bytes(bytes)))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32).map(Identity)
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// What is known of a journal outside of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    /// Which journal.
    pub(super) identity: Identity,
    /// Its last transaction is at least this one.
    pub(super) sequence: u64,
    /// The next task's id, as of that transaction.
    pub(super) next_task: u32,
    /// Every id of a task that was ever used is below.
    pub(super) tasks_below: u32,
    /// Every id of a submission that was ever used is below.
    pub(super) specs_below: u32,
}

/// Where the mark of a journal is.
pub(super) fn beside(journal: &Path) -> PathBuf {
    journal.with_extension("mark")
}

impl Mark {
    /// The mark of a journal that has no transaction yet.
    pub(super) fn first(identity: Identity, next_task: u32, next_spec: u32) -> Self {
        let (tasks_below, specs_below) = (block_above(next_task), block_above(next_spec));
        Mark { identity, sequence: 0, next_task, tasks_below, specs_below }
    }

    /// Reads a mark; `None` where there is none.
    pub(super) fn read(file: &Path) -> Result<Option<Self>, JournalError> {
        let bytes = match std::fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(file)(error)),
        };
        let slots = bytes.chunks(SLOT).filter_map(Mark::parse);
        // Ids are never given back, whichever of the two is the newer.
        let newer = |a: Mark, b: Mark| {
            let newest = if b.sequence > a.sequence { b } else { a };
            let tasks_below = a.tasks_below.max(b.tasks_below);
            Mark { tasks_below, specs_below: a.specs_below.max(b.specs_below), ..newest }
        };
        let stale = Stale::MarkDamaged;
        let damaged = || JournalError::Stale { file: file.with_extension("db"), stale };
        slots.reduce(newer).map(Some).ok_or_else(damaged)
    }

    fn text(&self) -> String {
        let Mark { identity, sequence, next_task, tasks_below, specs_below } = self;
        format!("{NAME} {identity} {sequence} {next_task} {tasks_below} {specs_below}")
    }

    fn parse(slot: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(slot).ok()?.trim_end();
        let (text, sum) = text.rsplit_once(' ')?;
        if u64::from_str_radix(sum, 16).ok()? != digest([text.as_bytes()]) {
            return None;
        }
        let words: Vec<&str> = text.split(' ').collect();
        let [NAME, identity, sequence, next_task, tasks_below, specs_below] = words[..] else {
            return None;
        };
        Some(Mark {
            identity: Identity::parse(identity)?,
            sequence: sequence.parse().ok()?,
            next_task: next_task.parse().ok()?,
            tasks_below: tasks_below.parse().ok()?,
            specs_below: specs_below.parse().ok()?,
        })
    }

    fn slot(&self) -> Vec<u8> {
        let text = self.text();
        let mut slot = format!("{text} {:016x}\n", digest([text.as_bytes()])).into_bytes();
        slot.resize(SLOT, b' ');
        slot
    }

    /// Writes a new mark over whatever is there, in one step; returns once it is on the disk.
    pub(super) fn write(&self, file: &Path) -> Result<(), JournalError> {
        let both = [self.slot(), self.slot()].concat();
        let fail = at(file);
        let write = || {
            write_private(file, &both)?;
            let directory = file.parent().unwrap_or(Path::new("."));
            keep_owner(directory, file)?;
            File::open(directory)?.sync_all()
        };
        write().map_err(fail)
    }
}

/// What root writes into another user's directory must stay usable for the daemon of that user.
pub(crate) fn keep_owner(directory: &Path, file: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, lchown};
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = std::fs::metadata(directory)?;
    lchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// The end of the block of ids after this one.
fn block_above(next: u32) -> u32 {
    (next / BLOCK + 1).saturating_mul(BLOCK)
}

/// The mark of a journal that is being written.
#[derive(Debug)]
pub(super) struct MarkFile {
    path: PathBuf,
    file: File,
    mark: Mark,
    /// The slot that is written next.
    second: bool,
    /// The last write failed, and that was said.
    failing: bool,
}

impl MarkFile {
    pub(super) fn open(path: &Path, mark: Mark) -> Result<Self, JournalError> {
        let file = File::options().write(true).open(path).map_err(at(path))?;
        Ok(MarkFile { path: path.to_owned(), file, mark, second: false, failing: false })
    }

    /// Makes sure that ids below these are never used by a later life of the journal; returns once that is on the disk.
    pub(super) fn reserve(&mut self, tasks: u32, specs: u32) -> Result<(), JournalError> {
        if tasks <= self.mark.tasks_below && specs <= self.mark.specs_below {
            return Ok(());
        }
        let above = |below: u32, wanted: u32| match wanted > below {
            true => block_above(wanted),
            false => below,
        };
        let mark = Mark {
            tasks_below: above(self.mark.tasks_below, tasks),
            specs_below: above(self.mark.specs_below, specs),
            ..self.mark
        };
        self.put(mark).and_then(|()| self.file.sync_data()).map_err(at(&self.path))
    }

    /// Says that a transaction is on the disk. It is: that this cannot be written to the mark must not undo it.
    pub(super) fn advance(&mut self, sequence: u64, next_task: u32) {
        let put = self.put(Mark { sequence, next_task, ..self.mark });
        if let Err(error) = &put
            && !self.failing
        {
            tracing::warn!(
                "{}: {error}; a loss of the journal's end may go unnoticed until it can be written",
                self.path.display()
            );
        }
        self.failing = put.is_err();
    }

    fn put(&mut self, mark: Mark) -> io::Result<()> {
        let offset = if self.second { SLOT } else { 0 };
        self.file.write_all_at(&mark.slot(), offset as u64)?;
        (self.mark, self.second) = (mark, !self.second);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_slots_is_enough() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal.mark");
        assert_eq!(Mark::read(&path).unwrap(), None);
        let first = Mark::first(Identity::new().unwrap(), 1, 1);
        first.write(&path).unwrap();
        let mut file = MarkFile::open(&path, first).unwrap();
        for sequence in 1..=5 {
            file.advance(sequence, sequence as u32 + 1);
            let read = Mark::read(&path).unwrap().unwrap();
            assert_eq!((read.sequence, read.next_task), (sequence, sequence as u32 + 1));
        }
        let whole = std::fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 0x15;
            std::fs::write(&path, &damaged).unwrap();
            let read = Mark::read(&path).unwrap().unwrap();
            assert!([4, 5].contains(&read.sequence) && read.identity == first.identity);
        }
        std::fs::write(&path, vec![0; 2 * SLOT]).unwrap();
        let damaged = Mark::read(&path);
        let stale = Stale::MarkDamaged;
        assert!(matches!(damaged, Err(JournalError::Stale { stale: s, .. }) if s == stale));
    }

    #[test]
    fn ids_are_reserved_in_blocks_and_never_given_back() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("journal.mark");
        let first = Mark::first(Identity::new().unwrap(), 1, 1);
        first.write(&path).unwrap();
        let mut file = MarkFile::open(&path, first).unwrap();
        file.reserve(1000, 7).unwrap();
        assert_eq!(file.mark.tasks_below, 1000, "there was room");
        file.reserve(1001, 7).unwrap();
        file.advance(1, 1001);
        assert_eq!(Mark::read(&path).unwrap().unwrap().tasks_below, 2000);
        file.reserve(250_000, 1000).unwrap();
        let read = Mark::read(&path).unwrap().unwrap();
        assert_eq!((read.tasks_below, read.specs_below, read.sequence), (251_000, 1000, 1));
        file.reserve(u32::MAX, 1).unwrap();
        assert_eq!(Mark::read(&path).unwrap().unwrap().tasks_below, u32::MAX);
    }
}
