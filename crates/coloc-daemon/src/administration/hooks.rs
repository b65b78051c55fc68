//! Programs of the administrator's that run before and after each attempt, with the daemon's rights.

use super::trusted_path::changeable_part;
use coloc_model::Millis;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
        "{}: another user could change it: {} must belong to root or to the daemon's user, and be writable by no other (chmod go-w)",
        program.display(),
        part.display()
    )]
    Unsafe {
        /// The program.
        program: PathBuf,
        /// The part of its path by which it could be changed.
        part: PathBuf,
    },
}

impl Hooks {
    /// Whether the programs can be run, and changed by no user but the daemon's and root.
    pub fn check(&self) -> Result<(), HookError> {
        self.prolog.iter().chain(&self.epilog).try_for_each(|program| check_program(program))
    }

    /// How long an attempt may take beyond its end, for its epilog.
    pub fn longest_epilog(&self) -> Duration {
        self.epilog.as_ref().map_or(Duration::ZERO, |_| Duration::from_millis(self.timeout.0))
    }
}

/// Whether a program can be run, and changed by no user but the daemon's and root: neither it nor a directory above it. It is
/// asked again before each start, so that what was changed since is not run.
pub fn check_program(program: &Path) -> Result<(), HookError> {
    if !program.is_absolute() {
        return Err(HookError::Relative(program.to_owned()));
    }
    let fail = |source| HookError::Io { path: program.to_owned(), source };
    let file = std::fs::metadata(program).map_err(fail)?;
    if !file.is_file() || file.mode() & 0o111 == 0 {
        return Err(HookError::NotExecutable(program.to_owned()));
    }
    match changeable_part(program).map_err(fail)? {
        Some(part) => Err(HookError::Unsafe { program: program.to_owned(), part }),
        None => Ok(()),
    }
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
        assert!(matches!(hooks(&file).check(), Err(HookError::Unsafe { .. })));
        set(&file, 0o755);
        hooks(&file).check().unwrap();
        set(place.path(), 0o777);
        assert!(
            matches!(hooks(&file).check(), Err(HookError::Unsafe { .. })),
            "it could be replaced"
        );
        assert!(matches!(hooks(Path::new("x")).check(), Err(HookError::Relative(_))));
    }
}
