//! A directory that belongs to the daemon's user. Everything in it is opened relative to its descriptor, by a plain name,
//! and no link is followed: what a task's user does elsewhere cannot lead the daemon or a privileged shim astray.

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// No file of an attempt that is read as a whole is larger.
const LARGEST: u64 = 64 << 20;

/// A directory of ours that is open.
#[derive(Debug)]
pub(crate) struct OwnDir {
    fd: OwnedFd,
}

impl OwnDir {
    /// Opens the directory `name` in `parent`, whose own path is the administrator's choice. It must be ours.
    pub(crate) fn open(parent: &Path, name: &str) -> io::Result<Self> {
        let parent = rustix::fs::open(
            parent,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        OwnDir::below(parent.as_fd(), name)
    }

    fn below(parent: BorrowedFd<'_>, name: &str) -> io::Result<Self> {
        let fd = open_below(parent, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        is_ours(rustix::fs::fstat(&fd)?.st_uid)?;
        Ok(OwnDir { fd })
    }

    /// Makes the directory `name` in `parent`; an existing one is an error.
    pub(crate) fn make(parent: &Path, name: &str, mode: Mode) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = rustix::fs::open(parent, flags, Mode::empty())?;
        rustix::fs::mkdirat(&parent, name, mode)?;
        let made = OwnDir::below(parent.as_fd(), name)?;
        // The daemon's own mask must not decide who can reach a task's files.
        rustix::fs::fchmod(&made.fd, mode)?;
        Ok(made)
    }

    /// Makes a file, for its owner's eyes only; an existing one is an error.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let fd = open_below(self.fd.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(fd))
    }

    /// Opens a file of ours for writing over what is there, and makes it if need be.
    pub(crate) fn overwrite(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK;
        checked(open_below(self.fd.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// Opens a file of ours for appending, and makes it if need be.
    pub(crate) fn append(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NONBLOCK;
        checked(open_below(self.fd.as_fd(), name, flags, Mode::RUSR | Mode::WUSR)?)
    }

    /// Opens a file of ours for reading.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        checked(open_below(self.fd.as_fd(), name, flags, Mode::empty())?)
    }

    /// All of a file of ours; `None` where there is none.
    pub(crate) fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let file = match self.file(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        let mut body = Vec::new();
        file.take(LARGEST).read_to_end(&mut body)?;
        Ok(Some(body))
    }

    /// Writes a file whole or not at all: beside, then renamed.
    pub(crate) fn replace(&self, name: &str, body: &[u8], durable: bool) -> io::Result<()> {
        let beside = format!(".{name}");
        self.remove(&beside)?;
        let mut file = self.create(&beside)?;
        file.write_all(body)?;
        if durable {
            file.sync_all()?;
        }
        self.rename(&beside, name)?;
        if durable { self.sync() } else { Ok(()) }
    }

    /// Gives a file a new name, in place of what has it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Gives a file a second name; false where that is taken.
    pub(crate) fn link(&self, from: &str, to: &str) -> io::Result<bool> {
        match rustix::fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file, if it is there.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A name for a file in it that is short, and good as long as this is open.
    pub(crate) fn path_of(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.fd.as_raw_fd()))
    }

    /// Has its entries on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }
}

/// Gives a file to a user, where it is not theirs already.
pub(crate) fn give(file: BorrowedFd<'_>, uid: u32, gid: u32) -> io::Result<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    Ok(rustix::fs::fchown(file, Some(uid), Some(gid))?)
}

/// Opens what has this plain name in a directory, without following a link. Kernels before 5.6 have no `openat2`; for a name
/// of one part `O_NOFOLLOW` says the same.
fn open_below(
    parent: BorrowedFd<'_>,
    name: &str,
    flags: OFlags,
    mode: Mode,
) -> io::Result<OwnedFd> {
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match rustix::fs::openat2(parent, name, flags, mode, resolve) {
        Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(parent, name, flags, mode)?),
        opened => Ok(opened?),
    }
}

/// A plain file of ours, and nothing else.
fn checked(fd: OwnedFd) -> io::Result<File> {
    let file = File::from(fd);
    let meta = file.metadata()?;
    is_ours(meta.uid())?;
    if meta.is_file() { Ok(file) } else { Err(io::Error::other("it is not a plain file")) }
}

fn is_ours(uid: u32) -> io::Result<()> {
    if uid == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let what = format!("it belongs to user {uid}, not to the user that the daemon runs as");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn links_are_not_followed_and_names_lead_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("there")).unwrap();
        std::os::unix::fs::symlink("there", place.path().join("link")).unwrap();
        assert!(OwnDir::open(place.path(), "link").is_err());
        let dir = OwnDir::open(place.path(), "there").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", place.path().join("there/log")).unwrap();
        assert!(dir.file("log").is_err() && dir.append("log").is_err());
        assert!(dir.create("log").is_err(), "nothing is made over something that exists");
        for name in ["../there", "/etc/passwd", "", ".", ".."] {
            assert!(dir.file(name).is_err(), "{name:?}");
        }
        assert!(OwnDir::make(place.path(), "there", Mode::RWXU).is_err(), "it exists");
    }

    #[test]
    fn what_is_no_plain_file_of_ours_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let dir = OwnDir::make(place.path(), "run", Mode::RWXU).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(place.path().join("run/pipe")).status();
        assert!(pipe.unwrap().success());
        assert!(dir.file("pipe").is_err());
        if rustix::process::geteuid().is_root() {
            dir.create("theirs").unwrap();
            let theirs = place.path().join("run/theirs");
            std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
            let error = dir.read("theirs").unwrap_err().to_string();
            assert!(error.contains("belongs to user 65534"), "{error}");
        }
    }
}
