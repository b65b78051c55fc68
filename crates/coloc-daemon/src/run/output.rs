//! An attempt's output as one stream of bytes, although its log is turned over: positions count from the first byte that was
//! ever written.

use super::RunDir;
use super::files::open_plain;
use crate::record::Uid;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// The log is turned over again and again while somebody reads: more often than this is bad luck.
const TRIES: usize = 5;

/// A part of an output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Where it begins: later than asked for where that is gone.
    pub(crate) from: u64,
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
}

impl RunDir {
    /// Notes at which position the log begins. It is written before the log is begun anew.
    pub(crate) fn begin_log_at(&self, position: u64) -> io::Result<()> {
        let (note, new) = (self.path().join("log.start"), self.path().join("log.start.new"));
        fs::write(&new, position.to_string())?;
        fs::rename(new, note)
    }

    fn log_begins_at(&self) -> u64 {
        let note = fs::read_to_string(self.path().join("log.start")).unwrap_or_default();
        note.trim().parse().unwrap_or(0)
    }

    /// At most `most` bytes of the output from a position on; none where nothing was said yet.
    pub(crate) fn output(&self, position: u64, most: u64, owner: Option<Uid>) -> io::Result<Part> {
        for _ in 0..TRIES {
            let begins = self.log_begins_at();
            let part = match position.checked_sub(begins) {
                Some(offset) => {
                    let bytes = read(&self.log(), owner, |_| offset, most)?.1;
                    Part { from: position, bytes }
                }
                None => {
                    let behind = begins - position;
                    let from_end = |length: u64| length.saturating_sub(behind);
                    let ((offset, length), bytes) = read(&self.older_log(), owner, from_end, most)?;
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

/// A part of a file that a user chose, which is never turned over.
pub(crate) fn of_file(
    path: &Path,
    position: u64,
    most: u64,
    owner: Option<Uid>,
) -> io::Result<Part> {
    Ok(Part { from: position, bytes: read(path, owner, |_| position, most)?.1 })
}

/// Reads from an offset that depends on the length; says which, how long the file is, and what was there.
fn read(
    path: &Path,
    owner: Option<Uid>,
    offset: impl Fn(u64) -> u64,
    most: u64,
) -> io::Result<((u64, u64), Vec<u8>)> {
    let mut file: File = match open_plain(path, owner) {
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

    #[test]
    fn positions_outlive_turning_over() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::of(place.path(), TaskId(1), 1);
        fs::create_dir_all(run.path()).unwrap();
        let at = |position, most| {
            let part = run.output(position, most, None).unwrap();
            (part.from, String::from_utf8(part.bytes).unwrap())
        };
        assert_eq!(at(0, 99), (0, String::new()), "nothing yet");
        fs::write(run.log(), "abcdef").unwrap();
        assert_eq!(at(2, 3), (2, "cde".to_owned()));
        // Turned over once, then again: the first six bytes are gone.
        fs::rename(run.log(), run.older_log()).unwrap();
        run.begin_log_at(6).unwrap();
        fs::write(run.log(), "ghij").unwrap();
        assert_eq!(at(4, 99), (4, "ef".to_owned()));
        assert_eq!(at(6, 99), (6, "ghij".to_owned()));
        fs::rename(run.log(), run.older_log()).unwrap();
        run.begin_log_at(10).unwrap();
        fs::write(run.log(), "kl").unwrap();
        assert_eq!(at(0, 99), (6, "ghij".to_owned()), "what is left");
        assert_eq!(at(8, 99), (8, "ij".to_owned()));
        assert_eq!(at(11, 99), (11, "l".to_owned()));
        // Whoever owns the directory may write anything into the note.
        fs::write(run.path().join("log.start"), "x18446744073709551616").unwrap();
        assert_eq!(at(1, 99), (1, "l".to_owned()));
    }
}
