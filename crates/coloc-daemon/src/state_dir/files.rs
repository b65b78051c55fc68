//! Databases as files, each with its log: copied, moved, removed.

use super::{StateError, at};
use crate::journal::check::log_of;
use crate::journal::keep_owner;
use coloc_api::moment::Moment;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A name for a journal that is kept: `journal.replaced-1794798476.db`.
pub(super) fn free_name(state: &Path, why: &str) -> PathBuf {
    let now = Moment::now().0 / 1000;
    let names = (0_u32..).map(|more| match more {
        0 => state.join(format!("journal.{why}-{now}.db")),
        more => state.join(format!("journal.{why}-{now}-{more}.db")),
    });
    let free = |name: &PathBuf| !name.exists();
    names.into_iter().find(free).unwrap_or_else(|| state.join("journal.kept.db"))
}

/// Copies a database that nothing writes to, with its log, for its owner's eyes alone.
pub(super) fn copy_database(from: &Path, to: &Path) -> Result<(), StateError> {
    remove_database(to);
    for (from, to) in [(from.to_owned(), to.to_owned()), (log_of(from), log_of(to))] {
        let mut source = match File::open(&from) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(at(&from))?,
        };
        let mut copy = || -> io::Result<()> {
            let mut file = File::options().create_new(true).write(true).mode(0o600).open(&to)?;
            io::copy(&mut source, &mut file)?;
            file.sync_all()?;
            keep_owner(to.parent().unwrap_or(Path::new(".")), &to)
        };
        copy().map_err(at(&to))?;
    }
    Ok(())
}

/// Gives a database that nothing uses another name. Its log goes first: without it, the database is refused; and a log
/// without its database would be taken for the log of the next one.
pub(super) fn move_database(from: &Path, to: &Path) -> Result<PathBuf, StateError> {
    let _ = fs::remove_file(with_suffix(from, "-shm"));
    match fs::rename(log_of(from), log_of(to)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(at(&log_of(from))(error));
        }
        _ => {}
    }
    fs::rename(from, to).map_err(at(from))?;
    Ok(to.to_owned())
}

/// Removes a database that did not become one.
pub(super) fn remove_database(file: &Path) {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(with_suffix(file, suffix));
    }
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Waits until a file's name is on the disk.
pub(super) fn sync_name(file: &Path) -> Result<(), StateError> {
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(at(directory))
}
