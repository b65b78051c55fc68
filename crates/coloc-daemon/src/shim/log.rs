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
    /// How long the file is, and where it goes when it is too long.
    turned_over: Option<(u64, u64, PathBuf, PathBuf)>,
}

impl Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some((length, limit, path, older)) = &mut self.turned_over {
            if *length > 0 && *length + bytes.len() as u64 > *limit {
                fs::rename(&*path, &*older)?;
                self.file = append_to(path)?;
                *length = 0;
            }
            *length += bytes.len() as u64;
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
            match append_to(&path) {
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
        let (path, older) = (dir.log(), dir.older_log());
        let file = append_to(&path)?;
        let length = file.metadata()?.len();
        let turned_over = Some((length, order.log_limit, path, older));
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
