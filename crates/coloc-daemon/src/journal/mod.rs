//! What must survive: submissions, tasks and their stories, in one SQLite file.
//!
//! The table of tasks is the journal folded up: every change of a task and the line of its story that tells why are
//! written in one transaction, so a restart reads where every task stands and decides nothing again. Samples stay out
//! of it.

pub(crate) mod accept;
mod arrays;
mod attempts;
pub(crate) mod check;
#[cfg(test)]
pub(crate) mod disk;
mod error;
mod gpus;
mod keys;
mod mark;
mod notices;
mod read;
mod schema;
mod seal;
mod setup;
mod table;
mod user_usage;

pub use arrays::Array;
pub use attempts::EndedAttempt;
pub use error::{JournalError, Stale, Trouble};
pub use gpus::{Drain, GpuRecord, Reserved};
pub use keys::Keyed;
pub(crate) use mark::keep_owner;
pub use schema::SCHEMA_VERSION;
pub use setup::Setup;
pub(crate) use table::digest;

use crate::notices::Notice;
use crate::owner::SharedTexts;
use crate::record::{Record, SpecId, Uid};
use coloc_api::moment::Moment;
use coloc_api::spec::TaskSpec;
use coloc_api::view::{DecisionView, StoryLine};
use coloc_model::{Lesson, TaskId};
use mark::{Identity, Mark, MarkFile};
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use schema::SEALED_SINCE;
use seal::Seal;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use table::{FACTS, LESSONS, SPECS, STORY, TASKS, Work, number, text};

/// A lock of another program is waited for this long.
const TIMEOUT: Duration = Duration::from_secs(1);

/// A story has at most this many lines: a user who changes a task again and again must not fill the disk.
const STORY_LINES: u32 = 200;
/// Of these the first ones always stay; of the others the oldest make room.
const STORY_HEAD: u32 = 50;

/// Something to be written down.
#[derive(Clone, Debug)]
pub enum Entry {
    /// A submission.
    Spec(SpecId, Arc<TaskSpec>),
    /// A task as it stands now.
    Task(Box<Record>),
    /// New tasks that differ in an index.
    Array(Arc<Array>),
    /// What happened to a task.
    Story(TaskId, StoryLine),
    /// What was measured of tasks of a kind.
    Lesson(String, Lesson),
    /// A submission that must not count twice.
    Key(Keyed),
    /// Whether nothing new is taken and started.
    Draining(bool),
    /// An attempt that has ended.
    Attempt(Box<EndedAttempt>),
    /// What was decided of a task.
    Decision(TaskId, Box<DecisionView>),
    /// What was measured of a task that has ended.
    Series(TaskId, Moment, String),
    /// What was measured of a task is kept no longer.
    NoSeries(TaskId),
    /// With what a daemon works.
    Setup(Box<Setup>),
    /// An event that a hook is to be told of.
    Notice(Box<Notice>),
    /// A hook was told, or never will be.
    NoticeDone(u64),
    /// Whether a GPU takes tasks.
    Gpu(Box<GpuRecord>),
    /// A submission that needs less room now, or none.
    Respec(SpecId, Option<Arc<TaskSpec>>),
    /// What a submission takes more of the journal, or less, on a user's account.
    Kept {
        /// Whose.
        owner: Uid,
        /// Which.
        spec: SpecId,
        /// How much.
        bytes: i64,
    },
}

/// Everything that a daemon needs of the past.
#[derive(Debug, Default)]
pub struct Saved {
    /// When the daemon's clock began.
    pub epoch: Moment,
    /// What was measured, by signature.
    pub lessons: Vec<(String, Lesson)>,
    /// GPUs that take nothing new, or did.
    pub gpus: Vec<GpuRecord>,
    /// Tasks that have not ended.
    pub live: Vec<(Record, Arc<TaskSpec>)>,
    /// Nothing new is to be taken or started.
    pub draining: bool,
    /// What hooks were not told yet, and the number of the next notice.
    pub notices: (Vec<Notice>, u64),
    /// The next free ids.
    pub next_task: u32,
    /// The next free submission.
    pub next_spec: u32,
    /// What live tasks have in common.
    pub(crate) shared_texts: SharedTexts,
    /// Bytes that each user's submissions take.
    pub kept: Vec<(Uid, u64)>,
}

/// The journal, with one connection.
#[derive(Debug)]
pub struct Journal {
    db: Connection,
    /// Rows have checksums.
    sealed: bool,
    /// Every row was compared with its checksum a moment ago: a restart need not do that twice.
    just_checked: bool,
    /// What only the one needs that writes.
    writer: Option<Writer>,
    /// The disk that a test has it on.
    #[cfg(test)]
    disk: Option<Arc<disk::Disk>>,
}

#[derive(Debug)]
struct Writer {
    seal: Seal,
    /// What is kept outside; a copy that is being made has nothing there.
    mark: Option<MarkFile>,
    next_task: u32,
    next_story: i64,
}

/// A connection that only reads.
fn reader(path: &Path) -> Result<Connection, JournalError> {
    let db = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    db.busy_timeout(TIMEOUT)?;
    Ok(db)
}

/// The journal holds every user's commands and environments. SQLite gives its other files the same mode.
fn keep_private(file: &Path) -> io::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let directory = file.parent().unwrap_or(Path::new("."));
    let journal = File::options().create(true).append(true).mode(0o600).open(file)?;
    journal.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    keep_owner(directory, file)?;
    // SQLite waits for what is in the file, and not for its name in the directory.
    File::open(directory)?.sync_all()
}

impl Journal {
    /// Opens or creates the journal, bringing an older one up to date. One that is damaged, or is not the newest, is
    /// refused and stays as it is.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        let marked = mark::beside(path);
        let mark = Mark::read(&marked)?;
        let checked = check::before_use(path, mark)?;
        let mark = match mark {
            Some(mark) => mark,
            // On the disk before the journal has its name: one without the other would be refused.
            None => {
                let mark = Mark::first(Identity::new()?, 1, 1);
                mark.write(&marked)?;
                mark
            }
        };
        keep_private(path).map_err(error::at(path))?;
        let mut journal = Journal::open_unchecked(path, mark.identity)?;
        if let Some(writer) = &mut journal.writer {
            let mut file = MarkFile::open(&marked, mark)?;
            let next_spec = check::next_spec(&journal.db)?;
            file.reserve(
                writer.next_task.max(writer.seal.least_task),
                u32::max(next_spec, writer.seal.least_spec),
            )?;
            writer.mark = Some(file);
        }
        journal.just_checked = checked;
        Ok(journal)
    }

    /// Opens a journal for writing, whatever is in it. One without a name gets this one.
    fn open_unchecked(path: &Path, identity: Identity) -> Result<Self, JournalError> {
        let mut db = Connection::open(path)?;
        db.busy_timeout(TIMEOUT)?;
        // The answer to a submit waits for the disk: that is what FULL means in WAL mode.
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "cache_size", -4096)?;
        schema::migrate(&mut db, identity)?;
        Journal::writing(db)
    }

    /// The journal of a connection that writes.
    fn writing(db: Connection) -> Result<Self, JournalError> {
        let next_story =
            db.query_row("SELECT COALESCE(MAX(seq), 0) + 1 FROM story", [], |row| row.get(0))?;
        let next_task = check::last_task(&db)?.saturating_add(1);
        let seal = Seal::read(&db)?;
        let writer = Writer { seal, mark: None, next_task, next_story };
        Ok(Journal {
            db,
            sealed: true,
            just_checked: false,
            writer: Some(writer),
            #[cfg(test)]
            disk: None,
        })
    }

    /// A second connection, which only reads: old tasks are looked up without stopping the owner.
    pub fn open_reader(path: &Path) -> Result<Self, JournalError> {
        let db = reader(path)?;
        let sealed = schema::version(&db)? >= SEALED_SINCE;
        Ok(Journal {
            db,
            sealed,
            just_checked: false,
            writer: None,
            #[cfg(test)]
            disk: None,
        })
    }

    /// Every row was checked when it was opened; of a very large one, only what has not ended is.
    pub fn was_checked(&self) -> bool {
        self.just_checked
    }

    /// Does some work in a transaction; returns once it is on the disk.
    fn transact(
        &mut self,
        work: impl FnOnce(&mut Work<'_>, &mut Seal) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let read_only =
            || error::at(Path::new("journal"))(io::ErrorKind::ReadOnlyFilesystem.into());
        let writer = self.writer.as_mut().ok_or_else(read_only)?;
        let transaction = self.db.transaction()?;
        let mut seal = writer.seal;
        let mut done = Work::new(&transaction, writer.next_story);
        work(&mut done, &mut seal)?;
        seal.sequence += 1;
        seal.total = seal.total.wrapping_add(done.change);
        let next_story = done.next_story;
        seal.write(&transaction)?;
        #[cfg(test)]
        self.disk.as_ref().map_or(Ok(()), |disk| disk.before_commit())?;
        transaction.commit()?;
        (writer.seal, writer.next_story) = (seal, next_story);
        if let Some(mark) = &mut writer.mark {
            mark.advance(seal.sequence, writer.next_task);
        }
        Ok(())
    }

    /// Writes all of it, or none; returns once it is on the disk.
    pub fn write(&mut self, entries: &[Entry]) -> Result<(), JournalError> {
        let (tasks, specs) = entries.iter().fold((0, 0), |(tasks, specs), entry| match entry {
            Entry::Task(record) => (tasks.max(record.id.0.saturating_add(1)), specs),
            Entry::Array(array) => (tasks.max(array.ids().end), specs),
            Entry::Spec(id, _) => (tasks, specs.max(id.0.saturating_add(1))),
            _ => (tasks, specs),
        });
        if let Some(writer) = &mut self.writer {
            if let Some(mark) = &mut writer.mark {
                mark.reserve(tasks, specs)?;
            }
            writer.next_task = writer.next_task.max(tasks);
        }
        self.transact(|work, _| entries.iter().try_for_each(|entry| write_entry(work, entry)))?;
        #[cfg(test)]
        if let Some(disk) = &self.disk {
            disk.committed(entries);
            disk.crash_point();
        }
        Ok(())
    }

    /// Writes something of no consequence, to see whether that is possible.
    pub fn try_to_write(&mut self) -> Result<(), JournalError> {
        let now = Moment::now().0 as i64;
        self.transact(|work, _| work.put(&FACTS, &[text("tried_ms"), number(now)]))
    }

    /// What a restart begins with. No task gets an id that has a directory below `runs`.
    pub fn load(&mut self, runs: &Path) -> Result<Saved, JournalError> {
        let now = Moment::now();
        let epoch = match self.fact("epoch_ms")? {
            Some(epoch) => Moment(epoch as u64),
            None => {
                let epoch = now.0 as i64;
                self.transact(|work, _| work.put(&FACTS, &[text("epoch_ms"), number(epoch)]))?;
                now
            }
        };
        match self.forget_old_keys(now).and_then(|()| self.forget_changed_arrays()) {
            // They are forgotten at the next start: this one has better things to do.
            Err(error) if error.trouble() == Trouble::DiskFull => {}
            other => other?,
        }
        let seal = self.writer.as_ref().map(|writer| writer.seal);
        let (task, spec) = seal.map_or((1, 1), |seal| (seal.least_task, seal.least_spec));
        let ran = accept::highest_run(runs).map_or(0, |run| run.saturating_add(1));
        let mut shared_texts = SharedTexts::default();
        let saved = Saved {
            epoch,
            next_task: check::last_task(&self.db)?.saturating_add(1).max(task).max(ran),
            next_spec: check::next_spec(&self.db)?.max(spec),
            draining: self.fact("draining")? == Some(1),
            lessons: self.lessons()?,
            gpus: self.gpus()?,
            notices: (self.notices()?, self.next_notice()?),
            live: self.live(&mut shared_texts)?,
            shared_texts,
            kept: self.user_usage()?,
        };
        self.just_checked = false;
        Ok(saved)
    }
}

fn write_entry(work: &mut Work<'_>, entry: &Entry) -> Result<(), JournalError> {
    match entry {
        Entry::Spec(id, spec) => work.add(&SPECS, &[number(id.0), text(&json(&**spec))]),
        Entry::Task(record) => {
            let ended = record.ended.map_or(ValueRef::Null, |ended| number(ended.0 as i64));
            let (over, body) = (record.phase.is_over(), json(&**record));
            work.put(&TASKS, &[number(record.id.0), number(over), ended, text(&body)])
        }
        Entry::Array(array) => arrays::write(work, array),
        Entry::Story(task, line) => {
            work.make_room(&STORY, "task", number(task.0), STORY_HEAD, STORY_LINES)?;
            let seq = work.next_story;
            work.next_story += 1;
            let at = number(line.at.0 as i64);
            work.add(&STORY, &[number(seq), number(task.0), at, text(&line.what)])
        }
        Entry::Lesson(signature, lesson) => {
            let now = number(Moment::now().0 as i64);
            work.put(&LESSONS, &[text(signature), now, text(&json(lesson))])
        }
        Entry::Key(keyed) => keys::write(work, keyed),
        Entry::Draining(draining) => work.put(&FACTS, &[text("draining"), number(*draining)]),
        Entry::Attempt(end) => attempts::write_attempt(work, end),
        Entry::Decision(task, decision) => attempts::write_decision(work, *task, decision),
        Entry::Series(task, at, body) => attempts::write_series(work, *task, *at, body),
        Entry::NoSeries(task) => attempts::forget_series(work, *task),
        Entry::Setup(setup) => setup::write(work, setup),
        Entry::Notice(notice) => notices::write(work, notice),
        Entry::NoticeDone(id) => notices::forget(work, *id),
        Entry::Gpu(gpu) => gpus::write(work, gpu),
        Entry::Respec(id, spec) => user_usage::respec(work, *id, spec.as_deref()),
        Entry::Kept { owner, bytes, .. } => user_usage::keep(work, *owner, *bytes),
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("records have no maps with keys that are not strings")
}

fn parse<T: serde::de::DeserializeOwned>(what: &str, body: &str) -> Result<T, JournalError> {
    // As bytes, like everything else that is read: each other way to read is compiled for each type.
    serde_json::from_slice(body.as_bytes())
        .map_err(|error| JournalError::Garbled { what: what.to_owned(), error })
}
