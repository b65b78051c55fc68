//! What a daemon keeps in its state directory, looked after from outside: checked, copied, put back, and gone on with.

mod files;

use crate::executor::local::runs_below;
use crate::journal::accept::{self, Accepted};
use crate::journal::check;
use crate::journal::{Journal, JournalError, Trouble};
use crate::serve::{DaemonError, check_free, lock};
use coloc_gpu::doctor::{Finding, Health};
use coloc_model::{Bytes, TaskId};
use files::{copy_database, free_name, move_database, remove_database, sync_name};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// So many tasks are named.
const MOST_NAMED: usize = 10;

/// A state directory that cannot be looked after.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// A daemon works there.
    #[error("a daemon works with {}: stop it first", .0.display())]
    Taken(PathBuf),
    /// The lock that keeps daemons away cannot be had.
    #[error(transparent)]
    Daemon(DaemonError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is none.
    #[error("{}: there is no journal here; --state names the directory of a daemon", .0.display())]
    NoJournal(PathBuf),
    /// It is another user's.
    #[error("{}: the journal may not be read: ask as the user of the daemon, or as root", .0.display())]
    Denied(PathBuf),
    /// There is nothing to go on without.
    #[error("{}: the journal is whole and the newest: there is nothing to accept", .0.display())]
    Newest(PathBuf),
    /// A file is in the way.
    #[error("{}: there is such a file already, and it stays: name another", .0.display())]
    Exists(PathBuf),
    /// There is no such backup, or it cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A backup could not be written.
    #[error("{}: no backup was made: {error}", file.display())]
    NotMade {
        /// Where.
        file: PathBuf,
        /// Why.
        error: JournalError,
    },
    /// A file is no backup, or a damaged one.
    #[error("{}: this cannot be put back, and nothing was changed: {error}", file.display())]
    NoBackup {
        /// Which.
        file: PathBuf,
        /// What is wrong.
        error: JournalError,
    },
    /// The system says no.
    #[error("{}: {source}", file.display())]
    Io {
        /// Where.
        file: PathBuf,
        /// What it says.
        source: io::Error,
    },
}

impl StateError {
    /// Something else was to be given; nothing was done.
    pub fn is_bad_input(&self) -> bool {
        use StateError::{Exists, Newest, NoBackup, NoJournal, Unreadable};
        matches!(self, NoJournal(_) | Newest(_) | Exists(_) | Unreadable { .. } | NoBackup { .. })
    }
}

fn at(file: &Path) -> impl FnOnce(io::Error) -> StateError + use<> {
    let file = file.to_owned();
    move |source| StateError::Io { file, source }
}

fn journal_in(state: &Path) -> PathBuf {
    state.join("journal.db")
}

/// What was found in a state directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The journal.
    pub journal: PathBuf,
    /// Its bytes, with those of its log.
    pub bytes: u64,
    /// Its tasks, where they can be counted.
    pub tasks: Option<u64>,
    /// Tasks among them that have not ended.
    pub live: Option<usize>,
    /// Its transactions.
    pub transactions: Option<u64>,
    /// Each thing that was looked at.
    pub findings: Vec<Finding>,
}

/// Looks at everything and changes nothing. Works while a daemon does.
pub fn check(state: &Path) -> Result<Report, StateError> {
    let journal = journal_in(state);
    if !journal.exists() && !journal.with_extension("mark").exists() {
        return Err(StateError::NoJournal(state.to_owned()));
    }
    let opened = std::fs::File::open(&journal);
    if opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied) {
        return Err(StateError::Denied(state.to_owned()));
    }
    let mut report = Report {
        bytes: check::size(&journal),
        tasks: None,
        live: None,
        transactions: None,
        findings: Vec::new(),
        journal,
    };
    report.look_at_journal();
    report.look_at_mark();
    report.look_at_runs(&runs_below(state));
    let what = match check_free(state) {
        Ok(()) => "none works here".to_owned(),
        Err(DaemonError::Taken(_)) => "one works here".to_owned(),
        Err(error) => error.to_string(),
    };
    report.find("daemon", Health::Ok, what, None);
    Ok(report)
}

impl Report {
    fn find(&mut self, about: &'static str, health: Health, what: String, next: Option<&str>) {
        self.findings.push(Finding { about, health, what, next: next.map(str::to_owned) });
    }

    fn look_at_journal(&mut self) {
        if !self.journal.exists() {
            // What that means, the mark says.
            return self.find("journal", Health::Missing, "there is none".to_owned(), None);
        }
        let whole = check::is_whole(&self.journal);
        let census = || Journal::open_reader(&self.journal)?.census();
        match whole.and_then(|tasks| Ok((tasks, census()?))) {
            Ok((tasks, census)) => {
                (self.tasks, self.live) = (Some(tasks), Some(census.live));
                self.transactions = census.sequence;
                let what = format!(
                    "{}, version {}, {tasks} tasks, {} of them have not ended; every row is as it was written",
                    size_of(self.bytes),
                    census.version,
                    census.live
                );
                self.find("journal", Health::Ok, what, None);
            }
            Err(error) => {
                let next = "coloc state restore FILE; without a backup, move journal.db and journal.db-wal away, and `coloc state accept`";
                // A disk that fails now may be mended, with the journal whole.
                let next = (error.trouble() == Trouble::Damaged).then_some(next);
                self.find("journal", Health::Broken, error.to_string(), next);
            }
        }
    }

    fn look_at_mark(&mut self) {
        match check::is_newest_by_mark(&self.journal) {
            Ok(Some(sequence)) => {
                let what =
                    format!("transactions up to {sequence} were acknowledged, and are there");
                self.find("mark", Health::Ok, what, None);
            }
            Ok(None) => {
                let what = "the journal is of an earlier version, which has none".to_owned();
                self.find("mark", Health::Partial, what, Some("start a daemon of this version"));
            }
            Err(JournalError::Stale { stale, .. }) => {
                let next =
                    "put back what is missing, or coloc state restore FILE, or coloc state accept";
                self.find("mark", Health::Broken, stale.to_string(), Some(next));
            }
            Err(error) => self.find("mark", Health::Broken, error.to_string(), None),
        }
    }

    fn look_at_runs(&mut self, runs: &Path) {
        let runs = accept::last_runs(runs);
        let journal = Journal::open_reader(&self.journal);
        match journal.and_then(|journal| accept::unknown_runs(&journal, &runs)) {
            Ok(unknown) if unknown.is_empty() => {
                let what = format!("of {} tasks, all of them known", runs.len());
                self.find("run directories", Health::Ok, what, None);
            }
            Ok(unknown) => {
                let what = format!("the journal does not know these tasks: {}", some_of(&unknown));
                let next = "their ids are not used again; remove what is of no use";
                self.find("run directories", Health::Partial, what, Some(next));
            }
            // Said of the journal already.
            Err(_) => {}
        }
    }
}

/// Bytes for people, however few.
pub fn size_of(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        _ => Bytes(bytes).to_string(),
    }
}

/// The first of some tasks, and how many more.
pub fn some_of(tasks: &[TaskId]) -> String {
    let named: Vec<String> = tasks.iter().take(MOST_NAMED).map(TaskId::to_string).collect();
    match tasks.len().saturating_sub(MOST_NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// A backup that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Backup {
    /// Where.
    pub file: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// The tasks in it.
    pub tasks: u64,
}

/// Writes a copy of the journal, as of one moment, to a new file. Works while a daemon does.
pub fn backup(state: &Path, file: &Path) -> Result<Backup, StateError> {
    let journal = journal_in(state);
    if !journal.exists() {
        return Err(StateError::NoJournal(state.to_owned()));
    }
    let created = File::options().create_new(true).write(true).mode(0o600).open(file);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => StateError::Exists(file.to_owned()),
        _ => at(file)(error),
    })?;
    let tasks = accept::copy(&journal, file).map_err(|error| {
        remove_database(file);
        StateError::NotMade { file: file.to_owned(), error }
    })?;
    sync_name(file)?;
    let bytes = fs::metadata(file).map_err(at(file))?.len();
    Ok(Backup { file: file.to_owned(), bytes, tasks })
}

/// What became of a journal that is not the newest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WentOn {
    /// What was there before, if anything was.
    pub kept: Option<PathBuf>,
    /// New tasks begin with this id.
    pub next_task: u32,
    /// Tasks that were started after the journal ended, and are held for that.
    pub held: Vec<u32>,
    /// Tasks that left a run directory and that the journal does not know.
    pub unknown: Vec<u32>,
}

impl WentOn {
    fn new(kept: Option<PathBuf>, accepted: Accepted) -> Self {
        let numbers = |tasks: Vec<TaskId>| tasks.into_iter().map(|task| task.0).collect();
        let Accepted { next_task, held, unknown } = accepted;
        WentOn { kept, next_task, held: numbers(held), unknown: numbers(unknown) }
    }
}

/// Puts a backup in the place of the journal, which is kept under another name.
pub fn restore(state: &Path, file: &Path) -> Result<WentOn, StateError> {
    let journal = journal_in(state);
    let copy = state.join("journal.restoring.db");
    let unreadable = |source| StateError::Unreadable { file: file.to_owned(), source };
    let kind = fs::metadata(file).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        let what = "a backup is a regular file, and this is none";
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, what)));
    }
    fs::create_dir_all(state).map_err(at(state))?;
    let _lock = alone(state)?;
    let no_backup = |error| StateError::NoBackup { file: file.to_owned(), error };
    let prepare = || -> Result<_, StateError> {
        copy_database(file, &copy)?;
        check::is_backup(&copy).map_err(no_backup)?;
        Ok(accept::prepare(&copy, &runs_below(state), &journal)?)
    };
    let (accepted, mark) = prepare().inspect_err(|_| remove_database(&copy))?;
    let kept = match journal.exists() {
        true => Some(move_database(&journal, &free_name(state, "replaced"))?),
        false => None,
    };
    fs::rename(&copy, &journal).map_err(at(&copy))?;
    sync_name(&journal)?;
    mark.write(&journal)?;
    Ok(WentOn::new(kept, accepted))
}

/// Goes on with the journal that is there, though it is not the newest. A copy of it is kept.
pub fn accept(state: &Path) -> Result<WentOn, StateError> {
    let journal = journal_in(state);
    if !journal.exists() && !journal.with_extension("mark").exists() {
        return Err(StateError::NoJournal(state.to_owned()));
    }
    let _lock = alone(state)?;
    match check::is_newest_by_mark(&journal) {
        Ok(_) => return Err(StateError::Newest(journal)),
        Err(JournalError::Stale { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let kept = match journal.exists() {
        true => {
            let kept = free_name(state, "accepted");
            copy_database(&journal, &kept)?;
            Some(kept)
        }
        false => None,
    };
    let accepted = accept::accept(&journal, &runs_below(state)).inspect_err(|_| {
        kept.iter().for_each(|kept| remove_database(kept));
    })?;
    sync_name(&journal)?;
    Ok(WentOn::new(kept, accepted))
}

/// Keeps daemons away.
fn alone(state: &Path) -> Result<File, StateError> {
    let lock = lock(state).map_err(|error| match error {
        DaemonError::Taken(state) => StateError::Taken(state),
        other => StateError::Daemon(other),
    })?;
    let file = state.join("lock");
    crate::journal::keep_owner(state, &file).map_err(at(&file))?;
    Ok(lock)
}
