//! The places that are one daemon's alone: its directories, their lock, its socket.

use super::{DaemonError, at};
use crate::administration::trusted_path::changeable_directory;
use std::fs::File;
use std::io;
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixListener;

/// A lock that another process still holds after this long is in use.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// The directory of all attempts is the daemon's own. Others pass through it to what belongs to them.
pub(super) fn make_own(runs: &Path) -> io::Result<()> {
    std::fs::create_dir_all(runs)?;
    let meta = std::fs::symlink_metadata(runs)?;
    let own = rustix::process::geteuid().as_raw();
    if !meta.is_dir() || meta.uid() != own {
        let what = "it is not a directory of the user that the daemon runs as";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    std::fs::set_permissions(runs, std::fs::Permissions::from_mode(0o711))
}

/// Whether no other user can change the state of a daemon: its journal says what runs as which user, and has environments.
pub fn check_state(state: &Path) -> Result<(), DaemonError> {
    let state = std::path::absolute(state).map_err(at(state))?;
    match changeable_directory(&state).map_err(at(&state))? {
        Some(part) => Err(DaemonError::OpenState { state, part }),
        None => Ok(()),
    }
}

/// One daemon a directory. The lock is the kernel's: it goes with the process, however that ends. A child that was forked and
/// has not become another program yet holds it a moment longer than a daemon that was killed.
pub(crate) fn lock(state: &Path) -> Result<File, DaemonError> {
    let path = state.join("lock");
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
    let file = options.open(&path).map_err(at(&path))?;
    // One of an earlier version could be opened, and held, by every user.
    let private = std::fs::Permissions::from_mode(0o600);
    file.set_permissions(private).map_err(at(&path))?;
    let timeout = std::time::Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::WouldBlock) if std::time::Instant::now() < timeout => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(DaemonError::Taken(state.to_owned()));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(at(&path)(error)),
        }
    }
}

/// Says whether another daemon works with that state.
pub fn check_free(state: &Path) -> Result<(), DaemonError> {
    if state.join("lock").exists() { lock(state).map(drop) } else { Ok(()) }
}

/// Listens where no daemon does. A socket that a dead daemon left is taken away.
pub(super) fn listen(socket: &Path) -> Result<UnixListener, DaemonError> {
    if let Some(parent) = socket.parent() {
        std::fs::create_dir_all(parent).map_err(at(parent))?;
    }
    if std::os::unix::net::UnixStream::connect(socket).is_ok() {
        return Err(DaemonError::Taken(socket.to_owned()));
    }
    let left = std::fs::symlink_metadata(socket).ok();
    // What is no socket is not ours to take away: binding will say that it is in the way.
    if left.is_some_and(|left| left.file_type().is_socket()) {
        std::fs::remove_file(socket).map_err(at(socket))?;
    }
    let listener = UnixListener::bind(socket).map_err(at(socket))?;
    // A system's daemon serves every user; the kernel tells them apart.
    let mode = if rustix::process::geteuid().is_root() { 0o666 } else { 0o600 };
    let open = std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode));
    open.map_err(at(socket))?;
    Ok(listener)
}
