//! Reading and writing the files of an attempt, so that a crash leaves each whole or absent.

use super::own_dir::{OwnDir, give};
use super::{Ended, RunAs, Started, Stopped};
use coloc_api::text::RawText;
use coloc_model::{Millis, TaskId};
use rustix::fs::Mode;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

/// A file of an attempt that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is a directory of this attempt already.
    #[error("{}: it exists already; an attempt has a directory of its own", .0.display())]
    Exists(PathBuf),
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

/// What decided about an attempt: its program starts once its shim has claimed it, never once the daemon revoked it.
#[derive(Clone, PartialEq, Debug)]
pub enum Claim {
    /// The shim, with the processes that there are.
    Started(Started),
    /// The daemon: nothing of this attempt starts.
    Revoked,
}

const SCRIPT: &str = "script";
const CLAIM: &str = "claim";
const EXIT: &str = "exit.json";
const STOP: &str = "stop.json";
const LIMIT: &str = "limit.json";
const EPILOG: &str = "epilog";
const FAULT: &str = "fault";
/// Where the file `exit.json` is written; it has its room on the disk from the start.
const EXIT_BESIDE: &str = ".exit.json";
/// What shims of earlier versions wrote in addition to an empty claim.
const EARLIER_STARTED: &str = "shim.json";
/// The output.
pub(crate) const LOG: &str = "log";
/// The part of it that was turned over.
pub(crate) const OLDER_LOG: &str = "log.1";
/// Bytes that the file `exit.json` has at least.
const ROOM_FOR_THE_END: usize = 512;
/// The daemon's own; others may pass through to the script.
const PASSABLE: Mode = Mode::from_raw_mode(0o711);

/// The directory of one attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunDir {
    runs: PathBuf,
    name: String,
}

impl RunDir {
    /// The directory of a task's attempt below `runs`.
    pub fn of(runs: &Path, task: TaskId, attempt: u32) -> Self {
        RunDir { runs: runs.to_owned(), name: format!("{task}.{attempt}") }
    }

    /// A directory by its path; `None` for a path without a name in a folder.
    pub fn at(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_owned();
        Some(RunDir { runs: path.parent()?.to_owned(), name })
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.runs.join(&self.name)
    }

    /// The log.
    pub fn log(&self) -> PathBuf {
        self.path().join(LOG)
    }

    /// The copy of the task's script, where its user can read it.
    pub fn script(&self) -> PathBuf {
        self.path().join(SCRIPT)
    }

    /// Opens the directory, which must be the daemon's.
    pub(crate) fn open(&self) -> io::Result<OwnDir> {
        OwnDir::open(&self.runs, &self.name)
    }

    /// Makes the directory, with the script's copy for the task's user.
    pub fn create(&self, user: Option<&RunAs>, script: Option<&RawText>) -> Result<(), RunError> {
        let make = || -> io::Result<()> {
            let dir = OwnDir::make(&self.runs, &self.name, PASSABLE)?;
            let Some(script) = script else { return Ok(()) };
            let mut file = dir.create(SCRIPT)?;
            file.write_all(script.as_bytes())?;
            // Last: until then no other user could change what is written.
            user.map_or(Ok(()), |user| give(file.as_fd(), user.uid, user.gid))
        };
        make().map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => RunError::Exists(self.path()),
            _ => self.io("", source),
        })
    }

    /// Removes the directory of an attempt that nothing was started for.
    pub fn discard(&self) {
        // What stays is swept when its time is over; its number is not used again.
        let _ = fs::remove_dir_all(self.path());
    }

    /// The shim's claim: its program may start if this says true. The claim is on the disk by then.
    pub fn claim(&self, started: &Started) -> Result<bool, RunError> {
        let claim = || -> io::Result<bool> {
            let dir = self.open()?;
            let beside = format!(".{CLAIM}");
            let mut file = dir.create(&beside)?;
            file.write_all(&serde_json::to_vec(started)?)?;
            let ours = dir.link(&beside, CLAIM)?;
            dir.remove(&beside)?;
            if ours {
                file.sync_all()?;
            }
            Ok(ours)
        };
        claim().map_err(|source| self.io(CLAIM, source))
    }

    /// The daemon's claim: true if nothing of this attempt will ever start, false if the shim was first.
    pub fn revoke(&self) -> Result<bool, RunError> {
        let revoke = || -> io::Result<bool> {
            let dir = self.open()?;
            match dir.create(CLAIM) {
                Ok(file) => file.sync_all().map(|()| true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                Err(error) => Err(error),
            }
        };
        if revoke().map_err(|source| self.io(CLAIM, source))? {
            return Ok(true);
        }
        Ok(self.claimed()? == Some(Claim::Revoked))
    }

    /// What decided about the attempt, once that is so.
    pub fn claimed(&self) -> Result<Option<Claim>, RunError> {
        let read = || -> io::Result<Option<(Vec<u8>, &str)>> {
            let dir = self.open()?;
            match dir.read(CLAIM)? {
                // Shims of earlier versions told their processes in another file.
                Some(body) if body.is_empty() => {
                    Ok(Some((dir.read(EARLIER_STARTED)?.unwrap_or_default(), EARLIER_STARTED)))
                }
                read => Ok(read.map(|body| (body, CLAIM))),
            }
        };
        match read().map_err(|source| self.io(CLAIM, source))? {
            None => Ok(None),
            Some((body, _)) if body.is_empty() => Ok(Some(Claim::Revoked)),
            Some((body, file)) => {
                self.parse(file, &body).map(|started| Some(Claim::Started(started)))
            }
        }
    }

    /// Which processes there are, once the program may have started.
    pub fn started(&self) -> Result<Option<Started>, RunError> {
        Ok(match self.claimed()? {
            Some(Claim::Started(started)) => Some(started),
            Some(Claim::Revoked) | None => None,
        })
    }

    /// Takes the room on the disk that the file of its end will need. Without, the disk may be full by then.
    pub fn make_room_for_the_end(&self) -> Result<(), RunError> {
        let make = || self.open()?.create(EXIT_BESIDE)?.write_all(&[b' '; ROOM_FOR_THE_END]);
        make().map_err(|source| self.io(EXIT_BESIDE, source))
    }

    /// An attempt that was launched has no directory any more, or what its shim makes only after its claim is there.
    pub fn has_lost_its_claim(&self) -> bool {
        let path = self.path();
        !path.exists() || [EXIT_BESIDE, EXIT].iter().any(|name| path.join(name).exists())
    }

    /// Removes the script's copy: of no use once the attempt is over.
    pub fn remove_script(&self) {
        // What stays goes with the directory.
        let _ = self.open().and_then(|dir| dir.remove(SCRIPT));
    }

    /// Says how it ended.
    pub fn write_ended(&self, ended: &Ended) -> Result<(), RunError> {
        let write = || -> io::Result<()> {
            let dir = self.open()?;
            let mut body = serde_json::to_vec(ended)?;
            // Over what is there, all of it: a shorter file would give its room away first.
            body.resize(body.len().max(ROOM_FOR_THE_END), b' ');
            let mut file = dir.overwrite(EXIT_BESIDE)?;
            file.write_all(&body)?;
            file.sync_all()?;
            dir.rename(EXIT_BESIDE, EXIT)?;
            dir.sync()
        };
        write().map_err(|source| self.io(EXIT, source))
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Result<Option<Ended>, RunError> {
        self.read(EXIT)
    }

    /// Says why the shim is about to end the program, before it does.
    pub fn write_stopping(&self, why: Stopped) -> Result<(), RunError> {
        let write = || self.open()?.replace(STOP, &serde_json::to_vec(&why)?, true);
        write().map_err(|source| self.io(STOP, source))
    }

    /// Why the shim was about to end the program, if it was.
    pub fn stopping(&self) -> Result<Option<Stopped>, RunError> {
        self.read(STOP)
    }

    /// Says what the time limit is from now on, by the world's clock.
    pub fn write_limit(&self, limit: Option<Millis>) -> Result<(), RunError> {
        let write = || self.open()?.replace(LIMIT, &serde_json::to_vec(&limit)?, true);
        write().map_err(|source| self.io(LIMIT, source))
    }

    /// What the time limit became, if it is another than at first.
    pub fn limit(&self) -> Result<Option<Option<Millis>>, RunError> {
        let body = self.open().and_then(|dir| dir.read(LIMIT));
        let body = body.map_err(|source| self.io(LIMIT, source))?;
        body.map(|body| self.parse(LIMIT, &body)).transpose()
    }

    /// Takes the epilog on; false if the shim or the daemon has done so before.
    pub fn begins_epilog(&self) -> bool {
        match self.open().and_then(|dir| dir.create(EPILOG)) {
            Ok(_) => true,
            // A disk that is full must not keep a GPU from being cleaned up.
            Err(error) => error.kind() != io::ErrorKind::AlreadyExists,
        }
    }

    /// Says what of the machine kept the shim from its work, as far as that can still be said.
    pub fn write_fault(&self, why: &str) {
        let _ = self.open().and_then(|dir| dir.replace(FAULT, why.as_bytes(), false));
    }

    /// What of the machine kept the shim from its work, if it could say so.
    pub fn fault(&self) -> Option<String> {
        let said = self.open().and_then(|dir| dir.read(FAULT)).ok().flatten()?;
        Some(String::from_utf8_lossy(&said).into_owned())
    }

    fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, RunError> {
        let body = self.open().and_then(|dir| dir.read(name));
        let body = body.map_err(|source| self.io(name, source))?;
        body.map(|body| self.parse(name, &body)).transpose()
    }

    fn parse<T: DeserializeOwned>(&self, name: &str, body: &[u8]) -> Result<T, RunError> {
        serde_json::from_slice(body)
            .map_err(|source| RunError::Garbled { file: self.path().join(name), source })
    }

    fn io(&self, name: &str, source: io::Error) -> RunError {
        RunError::Io { file: self.path().join(name), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coloc_api::moment::Moment;
    use coloc_api::view::Process;
    use std::os::unix::fs::MetadataExt as _;

    fn run(place: &Path) -> RunDir {
        let run = RunDir::of(place, TaskId(7), 1);
        run.create(None, None).unwrap();
        run
    }

    fn started() -> Started {
        let process = Process { pid: 1, began: 2 };
        let (at, boot) = (Moment(3), String::new());
        let (in_group, can_change_limit) = (false, false);
        Started {
            shim: process,
            main: Some(process),
            at,
            in_group,
            can_warn: true,
            can_change_limit,
            boot,
        }
    }

    #[test]
    fn an_attempt_that_was_given_up_never_starts() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        assert_eq!(run.claimed().unwrap(), None);
        assert!(run.revoke().unwrap());
        assert!(!run.claim(&started()).unwrap(), "the shim comes too late");
        assert_eq!(run.claimed().unwrap(), Some(Claim::Revoked));
        assert!(run.revoke().unwrap(), "it stays so");
        assert_eq!(run.started().unwrap(), None);
    }

    #[test]
    fn an_attempt_that_has_started_cannot_be_given_up() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        assert!(run.claim(&started()).unwrap());
        assert!(!run.revoke().unwrap());
        assert_eq!(run.started().unwrap(), Some(started()));
    }

    #[test]
    fn attempts_of_earlier_versions_are_understood() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        fs::write(run.path().join("claim"), "").unwrap();
        let earlier =
            r#"{"shim":{"pid":1,"began":2},"main":{"pid":1,"began":2},"at":3,"can_warn":true}"#;
        fs::write(run.path().join("shim.json"), earlier).unwrap();
        assert!(!run.revoke().unwrap());
        assert_eq!(run.started().unwrap(), Some(started()));
    }

    #[test]
    fn a_directory_is_nobody_elses_but_for_the_script() {
        let place = tempfile::tempdir().unwrap();
        let run = RunDir::of(place.path(), TaskId(7), 1);
        let root = rustix::process::geteuid().is_root();
        let user = RunAs { uid: 65_534, gid: 65_534, name: "nobody".to_owned() };
        let script = RawText::from("#!/bin/sh\n");
        run.create(root.then_some(&user), Some(&script)).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&run.path()), mode(&run.script())), (0o711, 0o600));
        if root {
            let owner = |path: &Path| fs::metadata(path).unwrap().uid();
            assert_eq!((owner(&run.path()), owner(&run.script())), (0, 65_534));
        }
        let again = run.create(None, None).unwrap_err();
        assert!(matches!(again, RunError::Exists(_)), "{again}");
    }

    #[test]
    fn a_limit_that_became_none_is_told_from_one_that_did_not_change() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        assert_eq!(run.limit().unwrap(), None);
        run.write_limit(Some(Millis(7))).unwrap();
        assert_eq!(run.limit().unwrap(), Some(Some(Millis(7))));
        run.write_limit(None).unwrap();
        assert_eq!(run.limit().unwrap(), Some(None));
    }

    #[test]
    fn garbage_is_named() {
        let place = tempfile::tempdir().unwrap();
        let run = run(place.path());
        assert!(run.ended().unwrap().is_none());
        fs::write(run.path().join("exit.json"), b"{\"exit\":").unwrap();
        let error = run.ended().unwrap_err().to_string();
        assert!(error.contains("exit.json") && error.contains("EOF"), "{error}");
    }
}
