//! `coloc emu run`, `start` and `stop`: fleets for one command or for many.

use crate::args::input::read_fleet;
use crate::error::{CliError, UsageError};
use crate::output::print_text;
use clap::Args;
use coloc_emu::{AttachError, Emulator, Options, install};
use coloc_emu_tools::run::{FleetHome, RunError};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// What a fleet is made of.
#[derive(Args, Debug)]
pub(super) struct FleetArgs {
    /// GPUs to emulate: 4xA100-40GB, 2xV100-16GB,4xT4-16GB, or a TOML file
    #[arg(long, value_name = "SPEC")]
    fleet: String,
    /// Stop the fleet's clock, so that readers can be compared
    #[arg(long)]
    freeze: bool,
    /// Fleet seconds that pass in one second
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    /// Let other users' processes use the fleet too; they can then falsify what it shows
    #[arg(long)]
    shared: bool,
}

impl FleetArgs {
    fn create(&self, directory: Option<&PathBuf>) -> Result<FleetHome, CliError> {
        if !(self.time_scale > 0.0 && self.time_scale <= 1e6) {
            let given = self.time_scale;
            return Err(UsageError::value("--time-scale", "0 to 1000000", given).into());
        }
        let fleet = read_fleet(&self.fleet)?;
        let FleetArgs { time_scale, freeze: frozen, shared, .. } = *self;
        let options = Options { time_scale, frozen, shared };
        Ok(FleetHome::create(directory.map(PathBuf::as_path), &fleet, options)?)
    }
}

/// Run a command with the emulated driver on its library path
#[derive(Args, Debug)]
pub(super) struct Run {
    #[command(flatten)]
    fleet: FleetArgs,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

impl Run {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let home = self.fleet.create(None)?;
        Ok(ExitCode::from(home.run(&self.command)?))
    }
}

/// Make a fleet that outlives the command: prints what to put into the environment
#[derive(Args, Debug)]
pub(super) struct Start {
    #[command(flatten)]
    fleet: FleetArgs,
    /// Where the fleet's state lives
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

impl Start {
    pub(super) fn run(&self) -> Result<(), CliError> {
        if Emulator::open(&self.dir).is_ok() {
            let place = self.dir.display();
            let problem =
                format!("it holds a fleet already: `coloc emu stop --dir {place}` ends it");
            return Err(UsageError::file(&self.dir, problem).into());
        }
        let home = self.fleet.create(Some(&self.dir))?;
        let quoted = |value: OsString| value.to_string_lossy().replace('\'', r"'\''");
        let lines = home.environment().into_iter();
        let lines = lines.map(|(name, value)| format!("export {name}='{}'", quoted(value)));
        print_text(&lines.collect::<Vec<_>>().join("\n"))
    }
}

/// Remove a fleet that `start` made
#[derive(Args, Debug)]
pub(super) struct Stop {
    /// Where the fleet's state lives
    #[arg(long, value_name = "DIR", env = coloc_emu::DIR_VARIABLE)]
    dir: PathBuf,
}

impl Stop {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let failed = |source| CliError::Write { file: self.dir.clone(), source };
        // A user who may not remove it must not end it for others either.
        install::may_remove(&self.dir).map_err(failed)?;
        match Emulator::open(&self.dir) {
            Ok(emulator) => emulator.close().map_err(RunError::from)?,
            // One that was ended before leaves its files, and one that cannot be read is none any more.
            Err(AttachError::Closed | AttachError::Version { .. } | AttachError::Cut { .. })
                if install::is_there(&self.dir) => {}
            Err(error) => return Err(RunError::from(error).into()),
        }
        install::remove(&self.dir).map_err(failed)
    }
}
