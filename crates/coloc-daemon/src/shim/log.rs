//! A task's output: into the log, which is turned over when it is long, or where its user wants it.

use super::Streams;
use crate::run::{Order, RunDir};
use crate::text::RawText;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Where one stream goes.
#[derive(Debug)]
struct Sink {
    file: File,
    turned_over: Option<TurnedOver>,
}

/// A log that is begun anew when it is long.
#[derive(Debug)]
struct TurnedOver {
    dir: RunDir,
    /// How many bytes came before those in the file, and how many are in it.
    before: u64,
    length: u64,
    limit: u64,
}

impl TurnedOver {
    fn turn(&mut self) -> io::Result<File> {
        fs::rename(self.dir.log(), self.dir.older_log())?;
        self.before += std::mem::take(&mut self.length);
        self.dir.begin_log_at(self.before)?;
        append_to(&self.dir.log())
    }
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(log) = &mut self.turned_over {
            if log.length > 0 && log.length + bytes.len() as u64 > log.limit {
                self.file = log.turn()?;
            }
            log.length += bytes.len() as u64;
        }
        self.file.write_all(bytes)
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
            // A truncated file is written on at its end too: others may write there.
            let opened = append_to(&path).and_then(|file| {
                // What is no plain file, such as a pipe, has nothing to lose.
                if order.truncate && file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                Ok(file)
            });
            match opened {
                Ok(file) => Ok(Sink { file, turned_over: None }),
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
        let file = append_to(&dir.log())?;
        let (length, limit) = (file.metadata()?.len(), order.log_limit);
        let turned_over = Some(TurnedOver { dir: dir.clone(), before: 0, length, limit });
        Ok(Log { output: Sink { file, turned_over }, errors: None })
    }

    /// A word of our own.
    pub(super) fn say(&mut self, words: &str) -> io::Result<()> {
        self.errors.as_mut().unwrap_or(&mut self.output).write(words.as_bytes())
    }

    /// Copies the streams until they end.
    pub(super) fn copy(self, streams: Streams) -> Vec<JoinHandle<()>> {
        let mut copies = vec![copy(streams.output, self.output)];
        copies.extend(streams.errors.zip(self.errors).map(|(errors, sink)| copy(errors, sink)));
        copies
    }
}

/// A full disk must not stop the task: what cannot be written is read all the same.
fn copy(mut from: impl Read + Send + 'static, mut to: Sink) -> JoinHandle<()> {
    std::thread::spawn(move || {
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
    })
}

fn append_to(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}
