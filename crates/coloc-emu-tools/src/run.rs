//! Fleets and the commands that run on them.

use crate::signals::{Signals, send};
use coloc_emu::install::{self, InstallError};
use coloc_emu::{AttachError, Emulator, Identity, Options};
use coloc_model::Fleet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{SystemTime, UNIX_EPOCH};

/// A command could not be run on a fleet.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The fleet could not be made.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The libraries could not be laid out.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The command could not be started.
    #[error("cannot run {}: {source}", program.display())]
    Start {
        /// What was to be run.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something about this process itself.
    #[error("cannot {what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// A fleet with its libraries and tools laid out in a directory of its own.
#[derive(Debug)]
pub struct FleetHome {
    directory: PathBuf,
    emulator: Emulator,
    keep: bool,
}

impl FleetHome {
    /// Makes a fleet. Without a directory, one is made among the temporary files and removed on drop.
    pub fn create(
        directory: Option<&Path>,
        fleet: &Fleet,
        options: Options,
    ) -> Result<Self, RunError> {
        let system = |what| move |source| RunError::System { what, source };
        let path = directory.map_or_else(temporary_name, Path::to_owned);
        // Others may look things up there, and put nothing in their place.
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o755);
        builder.create(&path).map_err(system("make the fleet's directory"))?;
        let path = path.canonicalize().map_err(system("find the fleet's directory"))?;
        let binary = std::env::current_exe()
            .and_then(|path| path.canonicalize())
            .map_err(system("find the running program"))?;
        let home = || -> Result<Emulator, RunError> {
            let emulator = Emulator::create(&path, fleet, options)?;
            install::install(&path, &binary)?;
            Ok(emulator)
        };
        match home() {
            Ok(emulator) => Ok(FleetHome { directory: path, emulator, keep: directory.is_some() }),
            Err(error) => {
                if directory.is_none() {
                    let _ = install::remove(&path);
                }
                Err(error)
            }
        }
    }

    /// What a child needs in its environment.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        install::environment(&self.directory)
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The fleet.
    pub fn emulator(&self) -> &Emulator {
        &self.emulator
    }

    /// Runs a command on the fleet. Signals that we get go to it; its exit code is returned.
    pub fn run(&self, command: &[OsString]) -> Result<u8, RunError> {
        let (program, arguments) = command.split_first().ok_or_else(|| RunError::Start {
            program: PathBuf::new(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "no command was given"),
        })?;
        // An interrupt from the keyboard reaches the command by itself: it is in our group.
        let forwarded = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGCONT];
        let held: Vec<i32> =
            forwarded.into_iter().chain([libc::SIGINT, libc::SIGQUIT, libc::SIGCHLD]).collect();
        let system = |what| move |source| RunError::System { what, source };
        let signals = Signals::hold(&held).map_err(system("hold signals"))?;
        let start = |source| RunError::Start { program: PathBuf::from(program), source };
        let mut command = Command::new(program);
        command.args(arguments).envs(self.environment());
        signals.release_in(&mut command);
        let mut child = command.spawn().map_err(start)?;
        loop {
            if let Some(status) = child.try_wait().map_err(system("wait for the command"))? {
                return Ok(exit_code(status));
            }
            match signals.wait(None) {
                Some(signal) if forwarded.contains(&signal) => send(child.id(), signal),
                _ => {}
            }
        }
    }
}

impl Drop for FleetHome {
    fn drop(&mut self) {
        if !self.keep {
            // Best effort: the directory lies among temporary files.
            let _ = self.emulator.close();
            let _ = install::remove(&self.directory);
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, signal) => 128u8.wrapping_add(signal.unwrap_or(0) as u8),
    }
}

/// Directories of fleets among temporary files carry the id of the process that made them.
const PREFIX: &str = "coloc-emu-";

/// Removes what runners left behind that were killed before they could.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let maker = rest.split('-').next().and_then(|pid| pid.parse().ok());
        if maker.is_some_and(|pid| Identity::of(pid).is_none()) {
            // Another user's directory stays: it is not ours to remove.
            let _ = Emulator::open(&entry.path()).map(|emulator| emulator.close());
            let _ = install::remove(&entry.path());
        }
    }
}

fn temporary_name() -> PathBuf {
    sweep(&std::env::temp_dir());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |span| span.as_nanos());
    std::env::temp_dir().join(format!("{PREFIX}{}-{now:x}", std::process::id()))
}
