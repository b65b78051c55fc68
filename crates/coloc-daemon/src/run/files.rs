//! Reading and writing the files of an attempt, so that a crash leaves each whole or absent.

use super::{Ended, Order, Started};
use crate::record::Uid;
use crate::text::RawText;
use coloc_model::TaskId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// A file of an attempt that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The file system says no.
    #[error("{}: {source}", file.display())]
    Io {
        /// Which.
        file: PathBuf,
        /// What it says.
        source: io::Error,
    },
    /// It is not what it should be.
    #[error("{}: {source}", file.display())]
    Garbled {
        /// Which.
        file: PathBuf,
        /// What was wrong.
        source: serde_json::Error,
    },
}

/// Whether somebody else was first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The attempt is ours.
    Ours,
    /// It is somebody else's.
    Taken,
}

/// The file with the task's script.
const SCRIPT: &str = "script";
/// Bytes that the word of an end has at least.
const ROOM_FOR_THE_END: usize = 512;

/// The directory of one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// The directory of a task's attempt below `runs`.
    pub fn of(runs: &Path, task: TaskId, attempt: u32) -> Self {
        RunDir { path: runs.join(format!("{task}.{attempt}")) }
    }

    /// A directory that somebody named.
    pub fn at(path: PathBuf) -> Self {
        RunDir { path }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// The part of the log that was turned over.
    pub fn older_log(&self) -> PathBuf {
        self.path.join("log.1")
    }

    /// The copy of the task's script.
    pub fn script(&self) -> PathBuf {
        self.path.join(SCRIPT)
    }

    /// Makes the directory with its order and script, for nobody's eyes but the owner's.
    pub fn create(&self, order: &Order, script: Option<&RawText>) -> Result<(), RunError> {
        use std::os::unix::fs::{DirBuilderExt as _, chown};
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.path);
        made.map_err(|source| self.io("", source))?;
        self.write("order.json", order)?;
        if let Some(script) = script {
            let written = fs::write(self.script(), script.as_bytes());
            written.map_err(|source| self.io(SCRIPT, source))?;
        }
        if let Some(user) = &order.user {
            let script = script.map(|_| SCRIPT);
            for name in ["order.json"].into_iter().chain(script).chain([""]) {
                let owned = chown(self.path.join(name), Some(user.uid), Some(user.gid));
                owned.map_err(|source| self.io(name, source))?;
            }
        }
        Ok(())
    }

    /// Tries to be the one who decides about this attempt.
    pub fn claim(&self) -> Result<Claim, RunError> {
        match OpenOptions::new().write(true).create_new(true).open(self.path.join("claim")) {
            Ok(file) => file.sync_all().map(|()| Claim::Ours),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Claim::Taken),
            Err(error) => Err(error),
        }
        .map_err(|source| self.io("claim", source))
    }

    /// What to run.
    pub fn order(&self) -> Result<Order, RunError> {
        let order = self.read("order.json")?;
        order.ok_or_else(|| self.io("order.json", io::ErrorKind::NotFound.into()))
    }

    /// Says which processes are there.
    pub fn write_started(&self, started: &Started) -> Result<(), RunError> {
        self.write("shim.json", started)
    }

    /// Which processes are there, once there are any.
    pub fn started(&self) -> Result<Option<Started>, RunError> {
        self.read("shim.json")
    }

    /// Takes the room on the disk that the word of its end will need. Without, it may be full by then.
    pub fn make_room_for_the_end(&self) -> Result<(), RunError> {
        let room = fs::write(self.path.join(".exit.json"), [b' '; ROOM_FOR_THE_END]);
        room.map_err(|source| self.io(".exit.json", source))
    }

    /// Says how it ended.
    pub fn write_ended(&self, ended: &Ended) -> Result<(), RunError> {
        let beside = self.path.join(".exit.json");
        let write = || -> io::Result<()> {
            let mut body = serde_json::to_vec(ended)?;
            // Over what is there, all of it: a shorter file would give its room away first.
            body.resize(body.len().max(ROOM_FOR_THE_END), b' ');
            let open = OpenOptions::new().write(true).create(true).truncate(false).open(&beside);
            let mut file = open?;
            file.write_all(&body)?;
            file.sync_all()?;
            fs::rename(&beside, self.path.join("exit.json"))
        };
        write().map_err(|source| self.io("exit.json", source))
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Result<Option<Ended>, RunError> {
        self.read("exit.json")
    }

    fn io(&self, name: &str, source: io::Error) -> RunError {
        RunError::Io { file: self.path.join(name), source }
    }

    /// Whole or not at all: written beside, then renamed. It is not waited for: only processes need it, and they do
    /// not survive the end of the machine.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), RunError> {
        let beside = self.path.join(format!(".{name}"));
        let write = || -> io::Result<()> {
            let mut file = File::create(&beside)?;
            file.write_all(&serde_json::to_vec(value)?)?;
            fs::rename(&beside, self.path.join(name))
        };
        write().map_err(|source| self.io(name, source))
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunError> {
        let file = self.path.join(name);
        match read_plain(&file) {
            Ok(body) => serde_json::from_slice(&body)
                .map(Some)
                .map_err(|source| RunError::Garbled { file, source }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RunError::Io { file, source }),
        }
    }
}

/// Opens a file in a directory that belongs to a user, who may have put anything there: a link to what only root may
/// read, or a pipe that never answers. Where `owner` is given, the file must be theirs.
pub(crate) fn open_plain(path: &Path, owner: Option<Uid>) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    match owner {
        Some(owner) if meta.uid() != owner.0 => {
            Err(io::Error::other("it belongs to somebody else"))
        }
        _ => Ok(file),
    }
}

/// No file of an attempt is larger.
const LARGEST: u64 = 64 << 20;

fn read_plain(path: &Path) -> io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut body = Vec::new();
    open_plain(path, None)?.take(LARGEST).read_to_end(&mut body)?;
    Ok(body)
}

/// The end of a user's file, at most `most` bytes of it.
pub(crate) fn tail(path: &Path, owner: Uid, most: u64) -> io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = open_plain(path, Some(owner))?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut end = Vec::new();
    file.take(most).read_to_end(&mut end)?;
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_can_claim_an_attempt() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::of(place.path(), TaskId(7), 1);
        fs::create_dir(run.path()).unwrap();
        assert_eq!(run.claim().unwrap(), Claim::Ours);
        assert_eq!(run.claim().unwrap(), Claim::Taken);
    }

    #[test]
    fn garbage_is_named() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::at(place.path().to_owned());
        assert!(run.ended().unwrap().is_none());
        fs::write(place.path().join("exit.json"), b"{\"exit\":").unwrap();
        let error = run.ended().unwrap_err().to_string();
        assert!(error.contains("exit.json") && error.contains("EOF"), "{error}");
    }
}
