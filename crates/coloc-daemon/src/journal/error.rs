//! What can be wrong with a journal, told apart, each with what to do about it.

use super::SCHEMA_VERSION;
use rusqlite::ErrorCode;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What keeps the journal from being written or read, as callers tell it apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trouble {
    /// The file system has no room.
    DiskFull,
    /// The disk fails.
    DiskError,
    /// The file system or the file is read-only.
    ReadOnly,
    /// The daemon's user may not open it.
    Denied,
    /// Another process holds its lock.
    Locked,
    /// What is in it is not what was written.
    Damaged,
    /// Anything else.
    Other,
}

impl Trouble {
    /// A word for programs; docs/api.md lists them.
    pub const fn code(self) -> &'static str {
        match self {
            Trouble::DiskFull => "disk_full",
            Trouble::DiskError => "disk_error",
            Trouble::ReadOnly => "disk_read_only",
            Trouble::Denied => "journal_denied",
            Trouble::Locked => "journal_locked",
            Trouble::Damaged => "journal_damaged",
            Trouble::Other => "journal",
        }
    }

    /// What the system says, in our words.
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Trouble::DiskFull,
            io::ErrorKind::ReadOnlyFilesystem => Trouble::ReadOnly,
            io::ErrorKind::PermissionDenied => Trouble::Denied,
            _ => Trouble::DiskError,
        }
    }

    fn of_sqlite(error: &rusqlite::Error) -> Self {
        // The index of the log has no room. SQLite calls that an error of the disk.
        const NO_ROOM_FOR_THE_INDEX: i32 = rusqlite::ffi::SQLITE_IOERR_SHMSIZE;
        let Some(told) = error.sqlite_error() else { return Trouble::Other };
        match told.code {
            _ if told.extended_code == NO_ROOM_FOR_THE_INDEX => Trouble::DiskFull,
            ErrorCode::DiskFull => Trouble::DiskFull,
            ErrorCode::SystemIoFailure => Trouble::DiskError,
            ErrorCode::ReadOnly => Trouble::ReadOnly,
            ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied
            | ErrorCode::AuthorizationForStatementDenied => Trouble::Denied,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Trouble::Locked,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Trouble::Damaged,
            _ => Trouble::Other,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trouble::DiskFull => {
                "the disk with the journal is full: nothing new is taken until there is room"
            }
            Trouble::DiskError => {
                "the disk with the journal fails: look at the kernel's messages (dmesg), and then at `coloc state check`"
            }
            Trouble::ReadOnly => {
                "the journal is on a file system, or is a file, that is read-only: make it writable"
            }
            Trouble::Denied => {
                "the journal cannot be opened: the state directory and its files must belong to the daemon's user, who must be able to write there; of a read-only disk, use a copy"
            }
            Trouble::Locked => {
                "another program holds the journal's lock: end that one (`fuser` names it)"
            }
            Trouble::Damaged => {
                "the journal is damaged: stop the daemon, `coloc state check` says where, `coloc state restore` puts a backup back"
            }
            Trouble::Other => "the journal cannot be used",
        })
    }
}

/// What was expected of a journal by what is kept outside of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stale {
    /// It ends before what was acknowledged.
    Behind {
        /// Transactions that are missing.
        missing: u64,
        /// The last task that it knows.
        knows: u32,
        /// The last task that was acknowledged.
        acknowledged: u32,
    },
    /// It is not the one that was used here.
    Another,
    /// It is from before the one that was used here, or of an earlier version.
    Earlier,
    /// It is not there at all, or has nothing in it, and there was one.
    Gone {
        /// The last task that was acknowledged.
        acknowledged: u32,
    },
    /// What is kept outside of it is not there.
    NoMark,
    /// What is kept outside of it cannot be read.
    MarkDamaged,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stale::Behind { missing, knows, acknowledged } => {
                write!(f, "its last {missing} transactions are missing")?;
                match acknowledged > knows {
                    true => write!(
                        f,
                        ": it knows tasks up to {knows}, and tasks up to {acknowledged} were acknowledged"
                    ),
                    false => f.write_str(": what happened last to tasks is not in it"),
                }
            }
            Stale::Another => f.write_str("it is not the journal that was used in this directory"),
            Stale::Earlier => {
                f.write_str("it is older than the journal that was used in this directory")
            }
            Stale::Gone { acknowledged } => write!(
                f,
                "it is missing or empty, and tasks up to {acknowledged} were acknowledged in this directory"
            ),
            Stale::NoMark => f.write_str(
                "journal.mark, which says how far it went, is missing: whether it is whole cannot be told",
            ),
            Stale::MarkDamaged => f.write_str(
                "journal.mark, which says how far it went, is damaged: whether it is whole cannot be told",
            ),
        }
    }
}

/// Something that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A newer coloc wrote the file.
    #[error(
        "the journal has version {found}, this coloc knows up to {SCHEMA_VERSION}: use the newer one"
    )]
    TooNew {
        /// The file's version.
        found: u32,
    },
    /// A row is not what it should be.
    #[error("the journal's row for {what} cannot be read: {error}; {}", Trouble::Damaged)]
    Garbled {
        /// Which.
        what: String,
        /// What was wrong.
        error: serde_json::Error,
    },
    /// Something in the file is not what was written.
    #[error("{what}; {}", Trouble::Damaged)]
    Damaged {
        /// What, and where.
        what: String,
    },
    /// It is sound, but not the newest.
    #[error(
        "{}: {stale}. Put back what is missing and start again; or `coloc state restore FILE` puts a backup back; or \
         `coloc state accept` goes on with what there is, and uses no id twice",
        file.display()
    )]
    Stale {
        /// The journal.
        file: PathBuf,
        /// What was expected.
        stale: Stale,
    },
    /// A file beside the database.
    #[error("{}: {source}; {}", file.display(), Trouble::of_io(source))]
    Io {
        /// Which.
        file: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no room for a copy.
    #[error("there is no room for it")]
    NoRoom,
    /// SQLite says no.
    #[error("{trouble} ({0})", trouble = Trouble::of_sqlite(.0))]
    Sqlite(#[from] rusqlite::Error),
}

impl JournalError {
    /// What kind of trouble it is.
    pub fn trouble(&self) -> Trouble {
        match self {
            JournalError::TooNew { .. } | JournalError::Stale { .. } => Trouble::Other,
            JournalError::NoRoom => Trouble::DiskFull,
            JournalError::Garbled { .. } | JournalError::Damaged { .. } => Trouble::Damaged,
            JournalError::Io { source, .. } => Trouble::of_io(source),
            JournalError::Sqlite(error) => Trouble::of_sqlite(error),
        }
    }

    pub(super) fn damaged(what: impl Into<String>) -> Self {
        JournalError::Damaged { what: what.into() }
    }
}

/// Puts a path to what the system says.
pub(super) fn at(file: &Path) -> impl FnOnce(io::Error) -> JournalError + use<> {
    let file = file.to_owned();
    move |source| JournalError::Io { file, source }
}
