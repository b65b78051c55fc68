//! `coloc emu train`: a training script without the training.

use super::phases::PhaseFlags;
use crate::error::{CliError, UsageError};
use clap::{Args, ValueEnum};
use coloc_emu_tools::train::{Checkpoint, Mix, Training, Work};
use coloc_model::Bytes;
use coloc_physics::{Phases, Profile, catalogue};
use std::path::PathBuf;
use std::process::ExitCode;

/// Train on emulated GPUs: real memory pressure, modelled speed, a log, checkpoints
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Train {
    /// A task of the built-in catalogue
    #[arg(long, value_name = "NAME", required_unless_present_any = ["mix", "memory"])]
    profile: Option<String>,
    /// Kernels of a kind instead, for seeing what monitors make of them
    #[arg(long, value_enum, conflicts_with = "profile")]
    mix: Option<MixName>,
    /// Memory on each GPU once settled, context included
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,
    /// Share of time with a kernel running, when alone
    #[arg(long, value_name = "SHARE")]
    gpu_active: Option<f64>,
    /// SM activity when alone
    #[arg(long, value_name = "SHARE")]
    sm: Option<f64>,
    /// SM occupancy when alone
    #[arg(long, value_name = "SHARE")]
    occupancy: Option<f64>,
    /// DRAM activity when alone
    #[arg(long, value_name = "SHARE")]
    dram: Option<f64>,
    /// Run time when alone
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// GPUs to use
    #[arg(long, value_name = "N")]
    gpus: Option<u32>,
    /// Samples in an iteration
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// Epochs
    #[arg(long, value_name = "N", default_value_t = 1)]
    epochs: u32,
    /// Memory that is added late on each GPU
    #[arg(long, value_name = "SIZE")]
    late_growth: Option<Bytes>,
    /// Progress at which it is added
    #[arg(long, value_name = "SHARE", default_value_t = 0.5)]
    late_growth_at: f64,
    /// Where to write how far it got, on SIGUSR1 and SIGTERM
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// Go on from the file of --checkpoint if it is there
    #[arg(long, requires = "checkpoint", conflicts_with = "resume")]
    auto_resume: bool,
    /// Seconds of this task that pass in one second of the fleet
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    time_scale: f64,
    #[command(flatten)]
    phases: PhaseFlags,
}

const EXAMPLES: &str = "\
Examples:
  coloc emu train --profile resnet
  coloc emu train --memory 30G --seconds 3600 --load-s 300 --load-mib 512
  coloc emu train --memory 8G --eval-every-s 600 --eval-s 60 --eval-mib 10G --grow-after-s 1800 --grow-mib 12G";

#[derive(ValueEnum, Clone, Copy, Debug)]
enum MixName {
    TinyKernels,
    Dense,
    MemoryBound,
}

impl From<MixName> for Mix {
    fn from(name: MixName) -> Mix {
        match name {
            MixName::TinyKernels => Mix::TinyKernels,
            MixName::Dense => Mix::Dense,
            MixName::MemoryBound => Mix::MemoryBound,
        }
    }
}

/// What a task is when only numbers are given: a medium one.
const PLAIN: [f64; 4] = [0.85, 0.5, 0.25, 0.3];
const PLAIN_SECONDS: f64 = 600.0;
const MIX_MEMORY: Bytes = Bytes::from_mib(2048);

impl Train {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let work = self.work()?;
        if !(self.time_scale > 0.0 && self.time_scale <= 1e6) {
            let given = self.time_scale;
            return Err(UsageError::value("--time-scale", "0 to 1000000", given).into());
        }
        let resume = match (&self.resume, &self.checkpoint) {
            (Some(file), _) => Some(Checkpoint::read(file, &work.name)?),
            (None, Some(file)) if self.auto_resume && file.exists() => {
                Some(Checkpoint::read(file, &work.name)?)
            }
            _ => None,
        };
        let training = Training {
            work,
            checkpoint: self.checkpoint.clone(),
            resume,
            time_scale: self.time_scale,
        };
        Ok(ExitCode::from(training.run()?))
    }

    fn work(&self) -> Result<Work, CliError> {
        let mut work = match (&self.profile, self.mix) {
            (Some(name), _) => Work::catalogued(name).ok_or_else(|| unknown(name))?,
            (None, Some(mix)) => {
                plain("kernel-mix", Mix::from(mix).profile(self.memory.unwrap_or(MIX_MEMORY)))
            }
            (None, None) => {
                let [gpu, sm, occupancy, dram] = PLAIN;
                plain("task", Profile::new(gpu, sm, occupancy, dram, Bytes::ZERO))
            }
        };
        let own = work.profile.activity;
        let share = |name: &str, given: Option<f64>, own: f64| match given {
            Some(share) if !(0.0..=1.0).contains(&share) => {
                Err(UsageError::value(name, "0 to 1", share))
            }
            given => Ok(given.unwrap_or(own)),
        };
        work.profile = Profile::new(
            share("--gpu-active", self.gpu_active, own.gpu.get())?,
            share("--sm", self.sm, own.sm.get())?,
            share("--occupancy", self.occupancy, own.occupancy.get())?,
            share("--dram", self.dram, own.dram.get())?,
            self.memory.unwrap_or(work.profile.memory),
        );
        work.seconds = self.seconds.unwrap_or(work.seconds);
        if !(work.seconds > 0.0 && work.seconds < 1e9) {
            return Err(UsageError::value(
                "--seconds",
                "more than 0 and less than 1e9",
                work.seconds,
            )
            .into());
        }
        work.gpus = self.gpus.unwrap_or(work.gpus).max(1);
        work.batch = self.batch.unwrap_or(work.batch);
        work.epochs = self.epochs.max(1);
        let at = share("--late-growth-at", Some(self.late_growth_at), 0.0)?;
        work.late_growth = self.late_growth.map(|more| (at, more));
        work.phases = self.phases.read(work.seconds)?;
        work.prints_oom = self.phases.prints_oom();
        Ok(work)
    }
}

fn plain(name: &str, profile: Profile) -> Work {
    Work {
        name: name.to_owned(),
        profile,
        gpus: 1,
        batch: 32,
        epochs: 1,
        seconds: PLAIN_SECONDS,
        late_growth: None,
        phases: Phases::NONE,
        prints_oom: false,
    }
}

fn unknown(name: &str) -> CliError {
    let known: Vec<&str> = catalogue::all().map(|workload| workload.name).collect();
    let instead = format!("the catalogue has {}", known.join(", "));
    UsageError::Unknown { what: "task", name: name.to_owned(), instead }.into()
}
