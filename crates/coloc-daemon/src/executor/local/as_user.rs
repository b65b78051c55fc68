//! Work on files with a user's identity, from a process that is root.
//!
//! The kernel keeps credentials by thread. Effective ids and groups decide about files, and only they are changed here:
//! real and saved ids stay root's, so that the thread can take its own identity again and so that the user can neither
//! signal nor trace it meanwhile. Effective capabilities go with the effective user id, and come back with it.

use crate::record::Uid;
use nix::unistd::User;
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::CString;
use std::io;

/// An identity that cannot be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IdentityError {
    /// The system knows no groups for that number.
    #[error("there is no user {} on this machine", .0.0)]
    Unknown(Uid),
    /// The list of users cannot be read.
    #[error("the system cannot look up user {}: {}", .0.0, .1)]
    Lookup(Uid, io::Error),
    /// The kernel refuses.
    #[error("cannot act as user {}: {}", .0.0, .1)]
    Refused(Uid, io::Error),
    /// Root's rights would stay (securebits of a container).
    #[error("cannot act as user {}: the process would keep its right to read every file", .0.0)]
    KeepsRights(Uid),
}

impl From<IdentityError> for io::Error {
    fn from(error: IdentityError) -> Self {
        io::Error::other(error)
    }
}

/// Does some work with a user's file-system identity: what it opens is opened as that user, what it creates belongs to
/// that user. A process that is not root, or is asked to be who it is, does the work as it is.
///
/// The work must neither wait for another thread nor start one: a new thread would keep the identity.
pub(crate) fn with_identity<T>(user: Uid, work: impl FnOnce() -> T) -> Result<T, IdentityError> {
    let me = geteuid();
    if !me.is_root() || me.as_raw() == user.0 {
        return Ok(work());
    }
    let identity = Identity::of(user)?;
    let _own = Own::leave(user, &identity)?;
    Ok(work())
}

/// What the kernel is told of a user.
struct Identity {
    gid: rustix::process::Gid,
    groups: Vec<rustix::process::Gid>,
}

impl Identity {
    fn of(user: Uid) -> Result<Self, IdentityError> {
        let lookup = |error: nix::Error| IdentityError::Lookup(user, error.into());
        let known = User::from_uid(user.0.into()).map_err(lookup)?;
        let known = known.ok_or(IdentityError::Unknown(user))?;
        let name = CString::new(known.name).map_err(|_| IdentityError::Unknown(user))?;
        let groups = nix::unistd::getgrouplist(&name, known.gid).map_err(lookup)?;
        let gid = |gid: nix::unistd::Gid| rustix::process::Gid::from_raw(gid.as_raw());
        Ok(Identity { gid: gid(known.gid), groups: groups.into_iter().map(gid).collect() })
    }
}

/// The thread's own identity, which it takes again when this is dropped.
struct Own {
    gid: rustix::process::Gid,
    groups: Vec<rustix::process::Gid>,
}

impl Own {
    fn leave(user: Uid, identity: &Identity) -> Result<Self, IdentityError> {
        let refused = |error: rustix::io::Errno| IdentityError::Refused(user, error.into());
        let own = Own { gid: getegid(), groups: getgroups().map_err(refused)? };
        // From here on every way out passes `drop`. The user id is last: it takes the right to change the others.
        set_thread_groups(&identity.groups).map_err(refused)?;
        set_thread_res_gid(None, identity.gid, None).map_err(refused)?;
        set_thread_res_uid(None, rustix::process::Uid::from_raw(user.0), None).map_err(refused)?;
        let left = capabilities(None).map_err(refused)?.effective;
        if left.intersects(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH) {
            return Err(IdentityError::KeepsRights(user));
        }
        Ok(own)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let back = set_thread_res_uid(None, rustix::process::Uid::ROOT, None)
            .and_then(|()| set_thread_res_gid(None, self.gid, None))
            .and_then(|()| set_thread_groups(&self.groups));
        if let Err(error) = back {
            // Later work of this thread, and threads that it starts, would act as the wrong user.
            tracing::error!("a thread cannot take its own identity again: {error}");
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    const NOBODY: Uid = Uid(65_534);

    /// A directory that every user may write to, with a file that only its owner may read.
    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let secret = place.path().join("secret");
        fs::write(&secret, "root's").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        (place, secret)
    }

    fn who() -> (u32, u32, Vec<u32>) {
        let groups = getgroups().unwrap().into_iter().map(rustix::process::Gid::as_raw);
        (geteuid().as_raw(), getegid().as_raw(), groups.collect())
    }

    #[test]
    fn files_are_opened_and_made_as_the_user() {
        if !geteuid().is_root() {
            return;
        }
        let (place, secret) = place();
        let before = who();
        let made = place.path().join("made");
        let (inside, read, seen) = with_identity(NOBODY, || {
            fs::write(&made, "nobody's").unwrap();
            (who(), fs::read(&secret), fs::read("/etc/shadow"))
        })
        .unwrap();
        assert_eq!((inside.0, inside.1), (65_534, 65_534));
        assert!(!inside.2.contains(&0), "root's groups are left: {inside:?}");
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(seen.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(who(), before);
        assert_eq!(fs::read(&secret).unwrap(), b"root's");
        let made = fs::metadata(&made).unwrap();
        assert_eq!((made.uid(), made.gid()), (65_534, 65_534));
    }

    #[test]
    fn a_panic_and_other_threads_do_not_keep_it() {
        if !geteuid().is_root() {
            return;
        }
        let before = who();
        let caught = std::panic::catch_unwind(|| with_identity(NOBODY, || panic!("on purpose")));
        assert!(caught.is_err());
        assert_eq!(who(), before);
        let (other, go) = std::sync::mpsc::channel::<()>();
        let beside = std::thread::spawn(move || {
            go.recv().unwrap();
            who()
        });
        let beside = with_identity(NOBODY, move || {
            other.send(()).unwrap();
            beside.join().unwrap()
        });
        assert_eq!(beside.unwrap(), before, "credentials are the thread's");
    }

    #[test]
    fn an_unknown_user_is_nobody_and_oneself_needs_nothing() {
        let me = Uid(geteuid().as_raw());
        assert_eq!(with_identity(me, who).unwrap(), who());
        if me.0 == 0 {
            let error = with_identity(Uid(4_000_000_123), || ()).unwrap_err();
            assert!(matches!(error, IdentityError::Unknown(_)), "{error}");
        }
    }
}
