//! Programs of the administrator's that run before and after each attempt, with the daemon's rights.

use coloc_model::Millis;
use rustix::process::geteuid;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The sticky bit of a directory: only their owners remove files.
const STICKY: u32 = 0o1000;
/// Bits by which others than its owner write a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Programs that run before and after each attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hooks {
    /// Before the program of the task.
    pub prolog: Option<PathBuf>,
    /// After everything of the task is gone.
    pub epilog: Option<PathBuf>,
    /// Each is killed after this long, by the world's clock.
    pub timeout: Millis,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks { prolog: None, epilog: None, timeout: Millis::from_secs(60) }
    }
}

/// A program that cannot be trusted with the daemon's rights, or cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// Its path depends on where the daemon was started.
    #[error("{}: name it by its whole path", .0.display())]
    Relative(PathBuf),
    /// It cannot be looked at.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is no program.
    #[error("{}: it is no file that can be executed: `chmod 755` makes a script one", .0.display())]
    NotExecutable(PathBuf),
    /// Another user could change it.
    #[error(
        "{}: another user could change it: it and its directory must belong to root or to the daemon's user, and be writable by no other (chmod go-w)",
        .0.display()
    )]
    Unsafe(PathBuf),
}

impl Hooks {
    /// Whether the programs can be run, and changed by no user but the daemon's and root.
    pub fn check(&self) -> Result<(), HookError> {
        self.prolog.iter().chain(&self.epilog).try_for_each(|program| check(program))
    }

    /// How long an attempt may take beyond its end, for its epilog.
    pub fn longest_epilog(&self) -> Duration {
        self.epilog.as_ref().map_or(Duration::ZERO, |_| Duration::from_millis(self.timeout.0))
    }
}

fn check(program: &Path) -> Result<(), HookError> {
    if !program.is_absolute() {
        return Err(HookError::Relative(program.to_owned()));
    }
    let look = |path: &Path| {
        let found = std::fs::metadata(path);
        found.map_err(|source| HookError::Io { path: path.to_owned(), source })
    };
    let file = look(program)?;
    if !file.is_file() || file.mode() & 0o111 == 0 {
        return Err(HookError::NotExecutable(program.to_owned()));
    }
    let directory = program.parent().unwrap_or(Path::new("/"));
    let place = look(directory)?;
    if !is_own(&file) || !(is_own(&place) || place.mode() & STICKY != 0) {
        return Err(HookError::Unsafe(program.to_owned()));
    }
    Ok(())
}

/// A file belongs to root or to this process's user, and no other user can write it.
pub fn is_own(file: &std::fs::Metadata) -> bool {
    let owner = file.uid() == 0 || file.uid() == geteuid().as_raw();
    owner && file.mode() & WRITABLE_BY_OTHERS == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_program_that_others_could_change_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("prolog");
        let hooks = |file: &Path| Hooks { prolog: Some(file.to_owned()), ..Hooks::default() };
        assert!(matches!(hooks(&file).check(), Err(HookError::Io { .. })));
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let set = |path: &Path, mode: u32| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&file, 0o644);
        assert!(matches!(hooks(&file).check(), Err(HookError::NotExecutable(_))));
        set(&file, 0o775);
        assert!(matches!(hooks(&file).check(), Err(HookError::Unsafe(_))));
        set(&file, 0o755);
        hooks(&file).check().unwrap();
        set(place.path(), 0o777);
        assert!(matches!(hooks(&file).check(), Err(HookError::Unsafe(_))), "it could be replaced");
        assert!(matches!(hooks(Path::new("x")).check(), Err(HookError::Relative(_))));
    }
}
