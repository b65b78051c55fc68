//! `coloc emu fault`, `clock` and `exporter`: what a running fleet is told.

use crate::error::{CliError, UsageError};
use crate::output::print_text;
use clap::{Args, Subcommand};
use coloc_emu::Emulator;
use coloc_emu::fleet::Fault;
use coloc_emu_tools::run::RunError;

fn fleet() -> Result<Emulator, CliError> {
    Ok(Emulator::from_environment().map_err(RunError::from)?)
}

/// Make something go wrong on the fleet of this environment
#[derive(Args, Debug)]
pub(super) struct FaultVerb {
    #[command(subcommand)]
    fault: FaultName,
}

#[derive(Subcommand, Clone, Copy, Debug)]
enum FaultName {
    /// A GPU falls off the bus, with all that runs on it
    Lost {
        /// Its index
        gpu: u32,
    },
    /// A GPU is reset: a lost one comes back, empty; a row that waited for it is remapped; ECC counters begin anew
    Restore {
        /// Its index
        gpu: u32,
    },
    /// The driver's kernel module is unloaded, with all that runs on its GPUs
    Unload,
    /// It is loaded again
    Load,
    /// A critical error is reported: 48 and 95 (uncorrected ECC) end all that runs on the GPU, 94 (contained) one process,
    /// 79 is the same as `lost`, 63 and 64 (row remapping) and all others end nothing
    Xid {
        /// Index of the GPU
        gpu: u32,
        /// Number of the error
        code: u32,
    },
    /// A row of the GPU's memory waits for a reset to be remapped, and XID 63 is reported
    Remap {
        /// Index of the GPU
        gpu: u32,
        /// No spare row is left for it: XID 64
        #[arg(long)]
        failed: bool,
    },
    /// Memory errors are counted, those since the last reset
    Ecc {
        /// Index of the GPU
        gpu: u32,
        /// Errors that were corrected
        #[arg(long, default_value_t = 0)]
        corrected: u64,
        /// Errors that were not
        #[arg(long, default_value_t = 0)]
        uncorrected: u64,
    },
    /// A process hangs in a kernel that never ends, and no longer hears SIGTERM
    Hang {
        /// Its process id
        pid: i32,
    },
    /// A hung process goes on
    Unhang {
        /// Its process id
        pid: i32,
    },
    /// Every NVML call takes longer; 0 ends it
    NvmlDelay {
        /// How much longer, in milliseconds
        millis: u32,
    },
    /// The next NVML calls time out
    NvmlTimeout {
        /// How many
        calls: u32,
    },
}

impl From<FaultName> for Fault {
    fn from(name: FaultName) -> Fault {
        match name {
            FaultName::Lost { gpu } => Fault::Lost { gpu },
            FaultName::Restore { gpu } => Fault::Restored { gpu },
            FaultName::Unload => Fault::Unloaded,
            FaultName::Load => Fault::Loaded,
            FaultName::Xid { gpu, code } => Fault::Xid { gpu, code },
            FaultName::Remap { gpu, failed } => Fault::Remap { gpu, failed },
            FaultName::Ecc { gpu, corrected, uncorrected } => {
                Fault::Ecc { gpu, corrected, uncorrected }
            }
            FaultName::Hang { pid } => Fault::Hang { pid },
            FaultName::Unhang { pid } => Fault::Unhang { pid },
            FaultName::NvmlDelay { millis } => Fault::NvmlDelay { millis },
            FaultName::NvmlTimeout { calls } => Fault::NvmlTimeouts { calls },
        }
    }
}

impl FaultVerb {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let emulator = fleet()?;
        let mut state = emulator.lock().map_err(RunError::from)?;
        state
            .inject(self.fault.into())
            .map_err(|error| UsageError::Emulated(error.to_string()).into())
    }
}

/// Stop the fleet's clock, let it run, or change its speed
#[derive(Args, Debug)]
pub(super) struct ClockVerb {
    /// Stop it
    #[arg(long, conflicts_with = "run")]
    freeze: bool,
    /// Let it run
    #[arg(long)]
    run: bool,
    /// Fleet seconds that pass in one second
    #[arg(long, value_name = "FACTOR")]
    time_scale: Option<f64>,
}

impl ClockVerb {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let emulator = fleet()?;
        let mut state = emulator.lock().map_err(RunError::from)?;
        let clock = state.clock();
        let scale = self.time_scale.unwrap_or(clock.scale());
        if !(scale > 0.0 && scale <= 1e6) {
            return Err(UsageError::value("--time-scale", "0 to 1000000", scale).into());
        }
        let frozen = (clock.is_frozen() || self.freeze) && !self.run;
        let now = state.host_now_ns();
        state.set_clock(now, scale, frozen);
        let seconds = state.now_ns() as f64 / 1e9;
        drop(state);
        let how = if frozen { "stopped".to_owned() } else { format!("at {scale} times speed") };
        print_text(&format!("the fleet's clock is {how}, {seconds:.3} s after its start"))
    }
}

/// Serve the fleet's metrics as dcgm-exporter does
#[derive(Args, Debug)]
pub(super) struct Exporter {
    /// Address and port to listen on; port 0 takes any
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9400")]
    listen: String,
}

impl Exporter {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let ready = |address: String| {
            // A program that closed the pipe does not need the address.
            let _ = print_text(&format!("serving http://{address}/metrics (emulated GPUs)"));
        };
        coloc_emu_tools::dcgm::serve(&self.listen, ready)
            .map_err(|error| UsageError::Emulated(error.to_string()).into())
    }
}
