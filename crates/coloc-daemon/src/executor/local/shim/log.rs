//! A task's output: into the log, which is turned over when it is long, or where its user wants it.

use super::terminal::Printing;
use crate::executor::local::as_user::with_identity;
use crate::executor::local::run::{LOG, LOG_START, OLDER_LOG, Order, OwnDir, RunDir};
use crate::on_disk::is_on_disk;
use crate::record::Uid;
use coloc_api::text::RawText;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io::{self, PipeReader, Read, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// The mask of new files where the submission says none.
const USUAL_MASK: u32 = 0o022;

/// Where the output comes from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A pipe that the program writes to.
    Pipe(PipeReader),
    /// Its terminal.
    Terminal(Printing),
}

impl Read for Source {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::Pipe(pipe) => pipe.read(into),
            Source::Terminal(terminal) => terminal.read(into),
        }
    }
}

/// Where one stream goes.
#[derive(Debug)]
struct Sink {
    file: File,
    place: Place,
}

/// Our log, or a file of the user's.
#[derive(Debug)]
enum Place {
    /// Our log.
    Own(TurnedOver),
    /// A file that this user chose: it is written with that user's rights, as it was opened. Quotas count, and files that look
    /// at who writes see the user.
    Theirs(Uid),
}

/// A log that is begun anew when it is long.
#[derive(Debug)]
struct TurnedOver {
    dir: OwnDir,
    /// How many bytes came before those in the file, and how many are in it.
    before: u64,
    length: u64,
    limit: u64,
}

impl TurnedOver {
    fn turn(&mut self) -> io::Result<File> {
        self.dir.rename(LOG, OLDER_LOG)?;
        self.before += std::mem::take(&mut self.length);
        self.dir.replace(LOG_START, self.before.to_string().as_bytes(), false)?;
        self.dir.append(LOG)
    }
}

impl Sink {
    /// Does something with the rights that its file was opened with.
    fn with_rights<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        match self.place {
            Place::Own(_) => Ok(work(self)),
            Place::Theirs(user) => Ok(with_identity(user, || work(self))?),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Place::Own(log) = &mut self.place {
            if log.length > 0 && log.length + bytes.len() as u64 > log.limit {
                self.file = log.turn()?;
            }
            log.length += bytes.len() as u64;
        }
        let mut left = bytes;
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A pipe that is full: its reader decides how fast the task may write, as in a shell.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll(&mut [PollFd::new(&self.file, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The sinks of a task.
#[derive(Debug)]
pub(super) struct Log {
    output: Sink,
    errors: Option<Sink>,
}

impl Log {
    /// Opens what the order names; otherwise says what could not be opened.
    pub(super) fn open(dir: &RunDir, order: &Order) -> Result<Self, (PathBuf, io::Error)> {
        let theirs = |path: &RawText| {
            let path = order.directory.as_path().join(path.as_path());
            match open_as_user(&path, order) {
                Ok(file) => Ok(Sink { file, place: Place::Theirs(user_of(order)) }),
                Err(error) => Err((path, error)),
            }
        };
        let output = match &order.output {
            Some(path) => theirs(path)?,
            None => Log::of(dir, order).map_err(|error| (dir.log(), error))?.output,
        };
        Ok(Log { output, errors: order.errors.as_ref().map(theirs).transpose()? })
    }

    /// Our own log.
    pub(super) fn of(dir: &RunDir, order: &Order) -> io::Result<Self> {
        let dir = dir.open()?;
        let file = dir.append(LOG)?;
        let (length, limit) = (file.metadata()?.len(), order.log_limit);
        let place = Place::Own(TurnedOver { dir, before: 0, length, limit });
        Ok(Log { output: Sink { file, place }, errors: None })
    }

    /// Begins the user's files anew. They are written on at their end all the same: others may write there.
    pub(super) fn truncate(&mut self) -> io::Result<()> {
        let sinks = [Some(&mut self.output), self.errors.as_mut()];
        for sink in sinks.into_iter().flatten() {
            if matches!(sink.place, Place::Theirs(_)) && sink.file.metadata()?.is_file() {
                sink.with_rights(|sink| sink.file.set_len(0))??;
            }
        }
        Ok(())
    }

    /// A word of our own.
    pub(super) fn say(&mut self, words: &str) -> io::Result<()> {
        let sink = self.errors.as_mut().unwrap_or(&mut self.output);
        sink.with_rights(|sink| sink.write(words.as_bytes()))?
    }

    /// Copies the streams until they end.
    pub(super) fn copy(
        self,
        output: Source,
        errors: Option<PipeReader>,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let mut copies = vec![copy(output, self.output)?];
        if let Some((errors, sink)) = errors.zip(self.errors) {
            copies.push(copy(errors, sink)?);
        }
        Ok(copies)
    }
}

/// The user whose task it is.
fn user_of(order: &Order) -> Uid {
    let own = || rustix::process::geteuid().as_raw();
    Uid(order.user.as_ref().map_or_else(own, |user| user.uid))
}

/// Opens a file that the task's user chose, with that user's rights and without waiting for anything.
fn open_as_user(path: &Path, order: &Order) -> io::Result<File> {
    let mask = Mode::from_raw_mode(order.umask.unwrap_or(USUAL_MASK) & 0o777);
    let open = || {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let before = rustix::process::umask(mask);
        // Links of /proc lead to what this process has, which is not the user's.
        let links = ResolveFlags::NO_MAGICLINKS;
        let mode = Mode::from_raw_mode(0o666);
        let opened = match rustix::fs::openat2(CWD, path, flags, mode, links) {
            // A kernel before 5.6. What is in /proc is refused below all the same.
            Err(rustix::io::Errno::NOSYS) => rustix::fs::open(path, flags, mode),
            opened => opened,
        };
        rustix::process::umask(before);
        opened
    };
    match with_identity(user_of(order), open)? {
        Ok(fd) => can_be_written(File::from(fd)),
        Err(rustix::io::Errno::NXIO) => Err(io::Error::other(
            "no program reads from this pipe or socket: start the reader first",
        )),
        Err(error) => Err(error.into()),
    }
}

/// Plain files, pipes that are read, terminals and `/dev/null` take output. Other devices do not: some block for ever, and
/// some are disks.
fn can_be_written(file: File) -> io::Result<File> {
    let meta = file.metadata()?;
    let kind = meta.file_type();
    let is_null = kind.is_char_device() && meta.rdev() == rustix::fs::makedev(1, 3);
    let is_data = kind.is_file() && is_on_disk(&file)?;
    if is_data || kind.is_fifo() || is_null || rustix::termios::isatty(&file) {
        return Ok(file);
    }
    if kind.is_file() {
        return Err(io::Error::other("it is a file of the kernel's, and no place for output"));
    }
    let what = match FileType::from_raw_mode(meta.mode()) {
        FileType::Directory => "directory",
        FileType::Socket => "socket",
        _ => "device",
    };
    Err(io::Error::other(format!(
        "it is a {what}: output goes to plain files, pipes that are read, terminals and /dev/null"
    )))
}

/// A full disk must not stop the task: what cannot be written is read all the same.
fn copy_all(from: &mut impl Read, to: &mut Sink) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => {
                let _ = to.write(&buffer[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Copies on a thread of its own.
fn copy(mut from: impl Read + Send + 'static, mut to: Sink) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("copy".to_owned()).spawn(move || {
        // For good: nothing of this thread is done with other rights.
        let _ = to.with_rights(|to| copy_all(&mut from, to));
    })
}
