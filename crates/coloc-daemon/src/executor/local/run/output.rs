//! An attempt's output as one stream of bytes, although its log is turned over: positions count from the first byte that was
//! ever written.
//!
//! A file that a user chose is opened with that user's rights, never with root's: a user who names a file that is not
//! theirs learns of it what they could have read themselves, and so does an administrator who reads their output.

use super::RunDir;
use super::files::{LOG, OLDER_LOG};
use super::readers::{READERS, Reads};
use crate::executor::local::as_user::with_identity;
use crate::file_changes::{FileChanges, Watched};
use crate::on_disk::is_on_disk;
use crate::record::Uid;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The log is turned over again and again while a client reads: more often than this is bad luck.
const TRIES: usize = 5;

/// The last words of a task are waited for this long: the owner waits with them.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// The file that notes at which position the log begins. It is written before the log is begun anew.
pub(crate) const LOG_START: &str = "log.start";

/// Where an output is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Output {
    /// In our log of an attempt.
    Log(RunDir),
    /// In a file that the task's user chose.
    Chosen(PathBuf),
}

/// A part of an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Where it begins: later than asked for where that is gone.
    pub(crate) from: u64,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
}

impl RunDir {
    fn log_begins_at(&self) -> u64 {
        let note = self.open().and_then(|dir| dir.read(LOG_START)).ok().flatten();
        String::from_utf8_lossy(&note.unwrap_or_default()).trim().parse().unwrap_or(0)
    }

    /// Opens a file of ours.
    fn file(&self, name: &str) -> io::Result<File> {
        self.open().and_then(|dir| dir.file(name))
    }

    /// At most `most` bytes of the output from a position on; none where nothing was said yet.
    fn output(&self, position: u64, most: u64) -> io::Result<Part> {
        for _ in 0..TRIES {
            let begins = self.log_begins_at();
            let part = match position.checked_sub(begins) {
                Some(offset) => {
                    let bytes = read(self.file(LOG), |_| offset, most)?.1;
                    Part { from: position, bytes }
                }
                None => {
                    let behind = begins - position;
                    let from_end = |length: u64| length.saturating_sub(behind);
                    let older = read(self.file(OLDER_LOG), from_end, most)?;
                    let ((offset, length), bytes) = older;
                    Part { from: begins - length.min(begins) + offset, bytes }
                }
            };
            if self.log_begins_at() == begins {
                return Ok(part);
            }
        }
        Ok(Part { from: position, bytes: Vec::new() })
    }
}

impl Output {
    /// Where the output of a task is that was to go to this place.
    pub(crate) fn at(run: RunDir, path: PathBuf) -> Self {
        if path == run.log() { Output::Log(run) } else { Output::Chosen(path) }
    }

    /// The user whose threads read it.
    pub(crate) fn reads(&self, owner: Uid) -> Reads {
        match self {
            Output::Log(_) => Reads::Log(owner),
            Output::Chosen(_) => Reads::Chosen(owner),
        }
    }

    /// At most `most` bytes from a position on; none where nothing was said yet.
    pub(crate) fn part(&self, owner: Uid, position: u64, most: u64) -> io::Result<Part> {
        match self {
            Output::Log(run) => run.output(position, most),
            Output::Chosen(path) => {
                let bytes = read(open_as(owner, path), |_| position, most)?.1;
                Ok(Part { from: position, bytes })
            }
        }
    }

    /// Watches it, once it is there.
    pub(crate) fn watch(&self, owner: Uid, changes: &FileChanges) -> io::Result<Watched> {
        match self {
            // The folder: the log in it is turned over.
            Output::Log(run) => changes.watch(&run.path()),
            Output::Chosen(path) => {
                // By what was opened with the user's rights, whatever is at its path by now.
                let file = open_as(owner, path)?;
                changes.watch(Path::new(&format!("/proc/self/fd/{}", file.as_raw_fd())))
            }
        }
    }

    /// Where so many bytes before the end are.
    pub(crate) fn before_end(&self, owner: Uid, bytes: u64) -> io::Result<u64> {
        let length = |file: io::Result<File>| -> io::Result<u64> {
            match file {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
                file => Ok(file?.metadata()?.len()),
            }
        };
        let end = match self {
            Output::Log(run) => run.log_begins_at() + length(run.file(LOG))?,
            Output::Chosen(path) => length(open_as(owner, path))?,
        };
        Ok(end.saturating_sub(bytes))
    }

    /// The last `most` bytes.
    pub(crate) fn end(&self, owner: Uid, most: u64) -> io::Result<Vec<u8>> {
        let file = match self {
            Output::Log(run) => run.file(LOG),
            Output::Chosen(path) => open_as(owner, path),
        };
        Ok(read(file, |length| length.saturating_sub(most), most)?.1)
    }
}

/// The end of a task's output, which was to go to this place: at most `most` bytes of it. The caller waits for a second
/// at most, and not at all for a user whose files hang.
pub(crate) fn tail(run: &RunDir, path: &Path, owner: Uid, most: u64) -> io::Result<Vec<u8>> {
    let output = Output::at(run.clone(), path.to_owned());
    READERS.wait(output.reads(owner), LAST_WORDS_WAIT, move || output.end(owner, most))?
}

/// Opens a file as its user would.
fn open_as(owner: Uid, path: &Path) -> io::Result<File> {
    with_identity(owner, || open_regular(path))?
}

/// Opens what is a file on a disk. A link may lead there, but for links of /proc: they lead to what this process has,
/// which is not the user's.
fn open_regular(path: &Path) -> io::Result<File> {
    // A pipe that no process writes to would be waited for, a terminal would become ours.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let links = ResolveFlags::NO_MAGICLINKS;
    let file = match rustix::fs::openat2(CWD, path, flags, Mode::empty(), links) {
        // A kernel before 5.6. What is in /proc is refused below all the same.
        Err(rustix::io::Errno::NOSYS) => rustix::fs::open(path, flags, Mode::empty())?,
        opened => opened?,
    };
    let file = File::from(file);
    if !file.metadata()?.is_file() || !is_on_disk(&file)? {
        return Err(io::Error::other("it is not a regular file, and only those are read"));
    }
    Ok(file)
}

/// Reads from an offset that depends on the length; says which, how long the file is, and what was there.
fn read(
    file: io::Result<File>,
    offset: impl Fn(u64) -> u64,
    most: u64,
) -> io::Result<((u64, u64), Vec<u8>)> {
    let mut file = match file {
        // A task that waits has said nothing yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(((0, 0), Vec::new())),
        other => other?,
    };
    let length = file.metadata()?.len();
    let offset = offset(length);
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(((offset, length), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_model::TaskId;
    use std::fs;

    #[test]
    fn positions_outlive_turning_over() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::of(place.path(), TaskId(1), 1);
        run.create(None, None).unwrap();
        let (older, start) = (run.path().join(OLDER_LOG), run.path().join(LOG_START));
        let at = |position, most| {
            let part = run.output(position, most).unwrap();
            (part.from, String::from_utf8(part.bytes).unwrap())
        };
        assert_eq!(at(0, 99), (0, String::new()), "nothing yet");
        fs::write(run.log(), "abcdef").unwrap();
        assert_eq!(at(2, 3), (2, "cde".to_owned()));
        // Turned over once, then again: the first six bytes are gone.
        fs::rename(run.log(), &older).unwrap();
        fs::write(&start, "6").unwrap();
        fs::write(run.log(), "ghij").unwrap();
        assert_eq!(at(4, 99), (4, "ef".to_owned()));
        assert_eq!(at(6, 99), (6, "ghij".to_owned()));
        fs::rename(run.log(), &older).unwrap();
        fs::write(&start, "10").unwrap();
        fs::write(run.log(), "kl").unwrap();
        assert_eq!(at(0, 99), (6, "ghij".to_owned()), "what is left");
        assert_eq!(at(8, 99), (8, "ij".to_owned()));
        assert_eq!(at(11, 99), (11, "l".to_owned()));
        // A note that makes no sense is none.
        fs::write(&start, "x18446744073709551616").unwrap();
        assert_eq!(at(1, 99), (1, "l".to_owned()));
    }
    #[test]
    fn only_files_on_a_disk_are_opened() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), "words").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        let me = Uid(rustix::process::geteuid().as_raw());
        let open = |path: &Path| Output::Chosen(path.to_owned()).part(me, 1, 3);
        for fine in ["file", "link"] {
            assert_eq!(open(&at(fine)).unwrap(), Part { from: 1, bytes: b"ord".to_vec() });
        }
        assert_eq!(open(&at("nothing")).unwrap().bytes, b"");
        for wrong in ["/dev/zero", "/dev/null", "/", "/proc/self/maps", "/proc/self/cwd/Cargo.toml"]
        {
            assert!(open(Path::new(wrong)).is_err(), "{wrong}");
        }
        let said = open(&at("pipe")).unwrap_err().to_string();
        assert!(said.contains("not a regular file"), "{said}");
    }

    #[test]
    fn a_file_is_read_with_its_users_rights() {
        let me = rustix::process::geteuid();
        if !me.is_root() {
            return;
        }
        let of = |path: &str, user| Output::Chosen(path.into()).part(Uid(user), 0, 9);
        assert!(!of("/etc/shadow", 0).unwrap().bytes.is_empty());
        let denied = of("/etc/shadow", 65_534).unwrap_err();
        assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
        // Whether there is such a file in a place that they cannot look into is not theirs to know.
        let denied = of("/root/no-such-file", 65_534).map(|part| part.bytes);
        assert_eq!(denied.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }
}
