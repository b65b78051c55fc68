//! Files and directories that the daemon obeys with its rights: no user but root and its own may be able to change them.

use rustix::process::geteuid;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// The sticky bit of a directory: only their owners, and its own, remove files.
const STICKY: u32 = 0o1000;
/// Bits by which others than its owner write a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Links that are followed on one path, as the kernel does.
const MOST_LINKS: usize = 40;

/// A file belongs to root or to this process's user, and no other user can write it.
pub fn is_own(file: &Metadata) -> bool {
    is_owner_trusted(file) && file.mode() & WRITABLE_BY_OTHERS == 0
}

fn is_owner_trusted(file: &Metadata) -> bool {
    file.uid() == 0 || file.uid() == geteuid().as_raw()
}

/// A directory on the way. In one that is sticky others cannot replace what is not theirs, as in `/tmp`. Groups may write
/// above the files of a daemon that is not root's: many systems give users a group, and a mask, of their own.
fn is_way_trusted(directory: &Metadata) -> bool {
    let group = if geteuid().is_root() { 0o020 } else { 0 };
    let is_closed = directory.mode() & (0o002 | group) == 0;
    is_owner_trusted(directory) && (is_closed || directory.mode() & STICKY != 0)
}

/// The first part of an absolute path, links followed, by which another user could change what is found at its end.
pub fn changeable_part(path: &Path) -> io::Result<Option<PathBuf>> {
    untrusted_part(path, is_own)
}

/// The same for a directory of the daemon's, which may have to be made. One of a daemon that is not root's is looked at by
/// itself: that daemon obeys no other user, and its user may share a home.
pub fn changeable_directory(path: &Path) -> io::Result<Option<PathBuf>> {
    if !geteuid().is_root() {
        let found = std::fs::metadata(path).ok();
        let is_open = |found: Metadata| !is_owner_trusted(&found) || found.mode() & 0o002 != 0;
        return Ok(found.is_some_and(is_open).then(|| path.to_owned()));
    }
    let there = path.ancestors().find(|part| part.exists()).unwrap_or(Path::new("/"));
    untrusted_part(there, if there == path { is_own } else { is_way_trusted })
}

fn untrusted_part(
    path: &Path,
    is_end_trusted: fn(&Metadata) -> bool,
) -> io::Result<Option<PathBuf>> {
    let mut rest = Vec::new();
    push_parts(&mut rest, path);
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == OsStr::new("..") {
            here.pop();
            continue;
        }
        // A root directory in a link's target begins anew.
        let next = here.join(&part);
        let found = std::fs::symlink_metadata(&next)?;
        if found.is_symlink() {
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            if !is_owner_trusted(&found) {
                return Ok(Some(next));
            }
            push_parts(&mut rest, &std::fs::read_link(&next)?);
            continue;
        }
        let trusted = if rest.is_empty() { is_end_trusted(&found) } else { is_way_trusted(&found) };
        if !trusted {
            return Ok(Some(next));
        }
        here = next;
    }
    Ok(None)
}

/// Puts the parts of a path on top of those that are still to come, its first at the top.
fn push_parts(rest: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    let parts: Vec<OsString> = parts.map(|part| part.as_os_str().to_owned()).collect();
    rest.extend(parts.into_iter().rev());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn set(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn every_directory_and_link_on_the_way_counts() {
        let place = tempfile::tempdir().unwrap();
        // Where temporary directories are may be a link itself.
        let top = place.path().canonicalize().unwrap();
        let (folder, other) = (top.join("a/b"), top.join("other"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::create_dir(&other).unwrap();
        for path in [&top.join("a"), &folder, &other] {
            set(path, 0o755);
        }
        let file = folder.join("hook");
        std::fs::write(&file, "").unwrap();
        set(&file, 0o755);
        let (first, second) = (other.join("one"), other.join("two"));
        symlink("two", &first).unwrap();
        symlink("../a/./b/hook", &second).unwrap();
        let weak = |path: &Path| changeable_part(path).unwrap();
        assert_eq!((weak(&file), weak(&first)), (None, None));
        set(&top.join("a"), 0o757);
        assert_eq!(weak(&file), Some(top.join("a")), "not only the directory that it is in");
        assert_eq!(weak(&first), Some(top.join("a")), "through two links");
        set(&top.join("a"), 0o1777);
        assert_eq!(weak(&file), None, "as in /tmp");
        set(&other, 0o777);
        assert_eq!((weak(&first), weak(&file)), (Some(other.clone()), None), "where a link is");
        set(&folder, 0o1777);
        assert_eq!(weak(&folder), Some(folder.clone()), "others may make files there");
        let state = |path: &Path| changeable_directory(path).unwrap();
        assert_eq!(state(&folder), Some(folder.clone()));
        assert_eq!((state(&folder.join("x/state")), state(&top)), (None, None));
        set(&folder, 0o757);
        assert_eq!(state(&folder), Some(folder.clone()));
        set(&folder, 0o755);
        symlink("loop", folder.join("loop")).unwrap();
        assert!(changeable_part(&folder.join("loop")).is_err());
        assert!(changeable_part(&folder.join("gone")).is_err());
    }

    #[test]
    fn what_belongs_to_another_user_is_refused_wherever_it_is() {
        if !geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let (folder, file) = (place.path().join("home"), place.path().join("home/hook"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "").unwrap();
        set(&file, 0o755);
        let give = |path: &Path| std::os::unix::fs::lchown(path, Some(65_534), None).unwrap();
        give(&folder);
        set(&folder, 0o1755);
        assert!(changeable_part(&file).unwrap().is_some(), "its owner may rename what is in it");
        let link = place.path().join("link");
        symlink("/bin/sh", &link).unwrap();
        assert_eq!(changeable_part(&link).unwrap(), None);
        give(&link);
        assert_eq!(changeable_part(&link).unwrap(), Some(link));
    }
}
