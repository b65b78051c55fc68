//! How the modelled devices behave.

use super::policy::positive;
use crate::error::{CliError, UsageError};
use crate::tables::{slowdowns, speeds};
use clap::{Args, ValueEnum};
use coloc_physics::{Interference, Noise, PairTable, SharedGpu};
use coloc_sim::trace::published_speeds;
use coloc_sim::{Declarations, PreemptionCost, Simulation, SmError, Trace};
use std::path::PathBuf;

/// Tasks that save their work.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum CheckpointFlag {
    /// A preempted task starts anew
    None,
    /// A preempted task goes on where it was
    All,
}

/// The model behind a simulation.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Model")]
pub(crate) struct PhysicsArgs {
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Vary the speed of each run as twin runs vary (3 %)
    #[arg(long)]
    pub(crate) noise: bool,
    /// Multiply all interference coefficients, to see how much a result depends on them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub(crate) interference: f64,
    /// Measured pairs that override the model: CSV with task, beside, speed and, if known, share
    #[arg(long, value_name = "FILE")]
    pub(crate) pairs: Option<PathBuf>,
    /// Speed of a gang that is spread over nodes against one that is not, for tasks that nobody measured
    #[arg(long, value_name = "SPEED", default_value_t = 1.0)]
    pub(crate) spread_speed: f64,
    /// How fast tasks run on each kind of device: CSV task,gpu,speed (1 where nothing is said, 0 where they do not run) or profiling samples task,gpu,steps,seconds
    #[arg(long, value_name = "FILE")]
    pub(crate) speeds: Option<PathBuf>,
    /// Seconds that a preempted task loses
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) preempt_cost: f64,
    /// Seconds that it loses for each GiB that it holds on a GPU
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    pub(crate) preempt_cost_per_gib: f64,
    /// Whether a preempted task keeps what it did; a trace's column checkpoint_s wins [default: all; of preset coloc: none, so that it does not preempt]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(crate) checkpoint: Option<CheckpointFlag>,
    /// Error of the SM activity that is told of each task: sigma of its logarithm, such as 0.25
    #[arg(long, value_name = "SIGMA", default_value_t = 0.0)]
    pub(crate) sm_error: f64,
    /// Let the monitor tell what each client of MPS does on a GPU, which NVML does not
    #[arg(long)]
    pub(crate) tells_mps_clients: bool,
    /// Every task declares so many times the memory that it truly needs, such as 1.5; a trace's column declared_mib wins
    #[arg(long, value_name = "FACTOR", value_parser = positive)]
    pub(crate) declare: Option<f64>,
    /// What tasks declare and do not use is lent to others until they want it back
    #[arg(long)]
    pub(crate) reclaim: bool,
}

impl Default for PhysicsArgs {
    fn default() -> Self {
        PhysicsArgs {
            seed: 0,
            noise: false,
            interference: 1.0,
            pairs: None,
            spread_speed: 1.0,
            speeds: None,
            preempt_cost: 0.0,
            preempt_cost_per_gib: 0.0,
            checkpoint: None,
            sm_error: 0.0,
            tells_mps_clients: false,
            declare: None,
            reclaim: false,
        }
    }
}

impl PhysicsArgs {
    /// Applies the flags to a simulation of a trace.
    pub(crate) fn apply(&self, simulation: &mut Simulation, trace: &Trace) -> Result<(), CliError> {
        let names = trace.names();
        if !(0.0..=100.0).contains(&self.interference) {
            let given = self.interference;
            return Err(UsageError::value("--interference", "0 to 100", given).into());
        }
        let pairs = match &self.pairs {
            Some(file) => slowdowns::read(file, names)?,
            None => PairTable::default(),
        };
        let interference = Interference::default().scaled(self.interference);
        simulation.physics = SharedGpu { interference, pairs };
        if !(0.001..=1.0).contains(&self.spread_speed) {
            let given = self.spread_speed;
            return Err(UsageError::value("--spread-speed", "0.001 to 1", given).into());
        }
        simulation.spread_speed = self.spread_speed;
        simulation.speeds = published_speeds(trace);
        if let Some(file) = &self.speeds {
            let told = speeds::read(file, names)?;
            simulation.speeds = told.or(std::mem::take(&mut simulation.speeds));
        }
        let costs = [
            ("--preempt-cost", self.preempt_cost),
            ("--preempt-cost-per-gib", self.preempt_cost_per_gib),
        ];
        if let Some((flag, given)) = costs.iter().find(|(_, cost)| !(0.0..1e9).contains(cost)) {
            return Err(UsageError::value(*flag, "0 to 1e9 seconds", given).into());
        }
        simulation.preemption =
            PreemptionCost { fixed_s: self.preempt_cost, per_gib_s: self.preempt_cost_per_gib };
        if let Some(which) = self.checkpoint {
            simulation.checkpoints = which == CheckpointFlag::All;
        }
        if !(0.0..=2.0).contains(&self.sm_error) {
            return Err(UsageError::value("--sm-error", "0 to 2", self.sm_error).into());
        }
        simulation.sm_error = SmError { sigma: self.sm_error };
        simulation.tells_mps_clients = self.tells_mps_clients;
        if let Some(factor) = self.declare.filter(|factor| !(0.01..=100.0).contains(factor)) {
            return Err(UsageError::value("--declare", "0.01 to 100", factor).into());
        }
        simulation.declarations = Declarations { factor: self.declare, reclaim: self.reclaim };
        simulation.noise = self.noise.then(|| Noise::new(self.seed));
        Ok(())
    }
}
