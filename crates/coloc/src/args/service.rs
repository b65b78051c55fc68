//! Flags of the disciplines that go by attained service.

use super::input::read_samples;
use crate::error::{CliError, UsageError};
use clap::Args;
use coloc_core::service::{GpuTime, Service, Thresholds};
use coloc_model::Millis;
use coloc_sim::Simulation;
use std::path::PathBuf;

/// Queues by attained service.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct ServiceArgs {
    /// Limits between the queues of las2d and gittins2d in GPU seconds, such as 3250,7200 [default: none, priority changes all the time]
    #[arg(long, value_name = "LIMITS")]
    pub(crate) thresholds: Option<Thresholds>,
    /// A task that has waited this many times as long as it ran goes back to the first queue
    #[arg(long, value_name = "KNOB")]
    pub(crate) promote: Option<f64>,
    /// Look at priorities again every so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) quantum: Option<f64>,
    /// GPU seconds of past tasks for gittins2d: a CSV with a duration column [default: the tasks that end]
    #[arg(long, value_name = "SAMPLES.csv")]
    pub(crate) history: Option<PathBuf>,
}

impl ServiceArgs {
    /// These flags over what a preset says.
    pub(crate) fn over(&self, base: Service) -> Service {
        Service {
            thresholds: self.thresholds.unwrap_or(base.thresholds),
            promote: self.promote.or(base.promote),
            quantum: self.quantum.map(Millis::from_secs_f64).or(base.quantum),
            ..base
        }
    }

    /// Refuses numbers that make no sense.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let numbers = [("--promote", self.promote), ("--quantum", self.quantum)];
        let given = numbers.into_iter().filter_map(|(flag, number)| Some((flag, number?)));
        if let Some((flag, wrong)) = given.into_iter().find(|(_, n)| !(0.0..1e9).contains(n)) {
            return Err(UsageError::value(flag, "0 to 1e9", wrong).into());
        }
        if self.quantum.is_some_and(|seconds| seconds < 0.001) {
            return Err(UsageError::flag("--quantum", "at least a millisecond").into());
        }
        Ok(())
    }

    /// What past tasks had, if a file says so.
    pub(crate) fn history(&self) -> Result<Option<Vec<GpuTime>>, CliError> {
        let samples = self.history.as_deref().map(read_samples).transpose()?;
        Ok(samples.map(|seconds| seconds.into_iter().map(GpuTime::from_secs_f64).collect()))
    }

    /// Applies what concerns the simulation and not the policy.
    pub(crate) fn apply(&self, simulation: &mut Simulation) -> Result<(), CliError> {
        self.check()?;
        simulation.history = self.history()?;
        Ok(())
    }
}
