//! What a command can fail of, and the exit code that says so.

mod usage;

pub(crate) use usage::{SweepError, UsageError};

use crate::estimating::LayersError;
use crate::output::visible::visible_lines;
use crate::verbs::estimate::EstimateError;
use coloc_api::SCHEMA;
use coloc_model::FleetError;
use coloc_sim::SimulationError;
use coloc_sim::trace::{GenerateError, TraceError};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code for a daemon that went away while the program waited; `docs/commands.md` lists them all.
const DAEMON_GONE: u8 = 122;

/// A command could not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// What the user asked for makes no sense.
    #[error("{0}")]
    Usage(#[from] UsageError),
    /// A fleet could not be read.
    #[error("--fleet: {0}")]
    Fleet(#[from] FleetError),
    /// A fleet file could not be read.
    #[error("{}: {problem}", file.display())]
    FleetFile { file: PathBuf, problem: String },
    /// A trace could not be read.
    #[error("{0}")]
    Trace(#[from] TraceError),
    /// A trace could not be made.
    #[error("{0}")]
    Generate(#[from] GenerateError),
    /// A simulation could not be started.
    #[error("{0}")]
    Simulation(#[from] SimulationError),
    /// A task's need could not be estimated.
    #[error("{0}")]
    Estimate(#[from] EstimateError),
    /// A file of measured pairs could not be read.
    #[error("{}, line {line}: {problem}", file.display())]
    Pairs { file: PathBuf, line: u64, problem: String },
    /// An emulated fleet could not be made or joined.
    #[error("{0}")]
    Emulator(#[from] coloc_emu_tools::run::RunError),
    /// An emulated training could not go on.
    #[error("{0}")]
    Training(#[from] coloc_emu_tools::train::TrainError),
    /// The GPUs could not be asked.
    #[error("{0}")]
    Driver(#[from] coloc_gpu::driver::DriverError),
    /// The daemon could not be talked to, or says no.
    #[error("{0}")]
    Client(#[from] coloc_api::client::ClientError),
    /// The daemon went away and did not come back.
    #[error(
        "{error}; looked for it for {limit}: its tasks go on, and `coloc wait` or `coloc logs -f` finds them once it is back"
    )]
    Gone { limit: coloc_model::Millis, error: coloc_api::client::ClientError },
    /// The connection to a command broke.
    #[error("{0}: the command went with the connection")]
    ExecLost(coloc_api::client::ClientError),
    /// The daemon did a part of what it was asked.
    #[error("{0}")]
    Refused(String),
    /// Some tasks of a sweep were submitted, and the next was refused.
    #[error(
        "{submitted} of {of} tasks were submitted ({ids}), the others were not: {error}; `coloc cancel {ids}` takes them back"
    )]
    PartOfSweep { submitted: usize, of: usize, ids: String, error: Box<CliError> },
    /// The daemon cannot work.
    #[error("{0}")]
    Daemon(#[from] coloc_daemon::serve::DaemonError),
    /// What a daemon keeps cannot be looked after.
    #[error("{0}")]
    State(coloc_daemon::state_dir::StateError),
    /// A journal cannot be read.
    #[error("{}: {error}", file.display())]
    Journal { file: PathBuf, error: coloc_daemon::journal::JournalError },
    /// The doctor found something broken.
    #[error("{0} BROKEN")]
    Broken(String),
    /// A task could not be run.
    #[error("{0}")]
    Shim(#[from] coloc_daemon::executor::local::shim::ShimError),
    /// A configuration file makes no sense.
    #[error("{0}")]
    Config(#[from] crate::config::ConfigError),
    /// A file could not be written.
    #[error("cannot write {}: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
}

impl From<LayersError> for CliError {
    fn from(error: LayersError) -> Self {
        CliError::Estimate(error.into())
    }
}

impl From<coloc_emu_tools::train::CheckpointError> for CliError {
    fn from(error: coloc_emu_tools::train::CheckpointError) -> Self {
        CliError::Usage(error.into())
    }
}

impl CliError {
    /// Prints the error, as a line of JSON for a caller that reads JSON. Exit code 2 means that the input was wrong and
    /// nothing was done; 1 that the world got in the way.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        // The reader of our output went away: there is no reader to tell.
        if let CliError::Write { source, .. } = self
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return ExitCode::SUCCESS;
        }
        let exit_code = self.exit_code();
        match json {
            true => {
                let error = serde_json::json!({
                    "code": self.code(), "message": self.to_string(), "exit_code": exit_code,
                });
                eprintln!("{}", serde_json::json!({ "schema": SCHEMA, "error": error }));
            }
            // A name or a path in it may come from any user.
            false => eprintln!("coloc: {}", visible_lines(&self.to_string())),
        }
        ExitCode::from(exit_code)
    }

    /// A word for programs; docs/commands.md lists them.
    fn code(&self) -> &str {
        match self {
            CliError::Usage(_) | CliError::Generate(_) => "usage",
            CliError::Fleet(_) | CliError::FleetFile { .. } => "fleet",
            CliError::Trace(_) | CliError::Pairs { .. } => "trace",
            CliError::Simulation(_) => "simulation",
            CliError::Estimate(_) => "estimate",
            CliError::Emulator(_) | CliError::Training(_) => "emulator",
            CliError::Driver(_) => "driver",
            CliError::Broken(_) => "broken",
            CliError::Client(error) => error.code(),
            CliError::PartOfSweep { error, .. } => error.code(),
            CliError::Gone { .. } | CliError::ExecLost(_) => "daemon_gone",
            CliError::Refused(_) => "refused",
            CliError::Daemon(_) | CliError::Shim(_) => "daemon",
            CliError::Journal { .. } | CliError::State(_) => "journal",
            CliError::Config(_) => "config",
            CliError::Write { .. } => "write",
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            CliError::Write { .. }
            | CliError::Emulator(_)
            | CliError::Training(_)
            | CliError::Driver(_)
            | CliError::Client(_)
            | CliError::Refused(_)
            | CliError::PartOfSweep { .. }
            | CliError::Daemon(_)
            | CliError::Journal { .. }
            | CliError::State(_)
            | CliError::Shim(_) => 1,
            CliError::Gone { .. } | CliError::ExecLost(_) => DAEMON_GONE,
            CliError::Broken(_) => 3,
            _ => 2,
        }
    }
}
