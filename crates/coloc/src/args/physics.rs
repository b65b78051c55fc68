//! How the modelled devices behave.

use super::table;
use crate::error::CliError;
use clap::Args;
use coloc_model::{Share, SignatureId};
use coloc_physics::{Interference, Noise, PairTable, SharedGpu, SlowdownPair};
use coloc_sim::trace::published_speeds;
use coloc_sim::{Names, PreemptionCost, Simulation, Trace};
use std::path::{Path, PathBuf};

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
        }
    }
}

impl PhysicsArgs {
    /// Applies the flags to a simulation of a trace.
    pub(crate) fn apply(&self, simulation: &mut Simulation, trace: &Trace) -> Result<(), CliError> {
        let names = trace.names();
        if !(0.0..=100.0).contains(&self.interference) {
            let message = format!("--interference takes 0 to 100, not {}", self.interference);
            return Err(CliError::Usage(message));
        }
        let pairs = match &self.pairs {
            Some(file) => read_pairs(file, names)?,
            None => PairTable::default(),
        };
        let interference = Interference::default().scaled(self.interference);
        simulation.physics = SharedGpu { interference, pairs };
        if !(0.001..=1.0).contains(&self.spread_speed) {
            let message = format!("--spread-speed takes 0.001 to 1, not {}", self.spread_speed);
            return Err(CliError::Usage(message));
        }
        simulation.spread_speed = self.spread_speed;
        simulation.speeds = published_speeds(trace);
        if let Some(file) = &self.speeds {
            let told = super::speeds::read(file, names)?;
            simulation.speeds = told.or(std::mem::take(&mut simulation.speeds));
        }
        let costs = [self.preempt_cost, self.preempt_cost_per_gib];
        if let Some(wrong) = costs.iter().find(|cost| !(0.0..1e9).contains(*cost)) {
            let message = format!("{wrong}: costs lie between 0 and 1e9 seconds");
            return Err(CliError::Usage(message));
        }
        simulation.preemption =
            PreemptionCost { fixed_s: self.preempt_cost, per_gib_s: self.preempt_cost_per_gib };
        simulation.noise = self.noise.then(|| Noise::new(self.seed));
        Ok(())
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct PairRow {
    task: String,
    beside: String,
    speed: f64,
    #[serde(default)]
    share: Option<Share>,
}

/// Reads measured pairs. Pairs of tasks that the trace does not have are passed over.
fn read_pairs(file: &Path, names: &Names) -> Result<PairTable, CliError> {
    let mut pairs = PairTable::default();
    for (line, row) in table::read::<PairRow>(file)? {
        if !(row.speed > 0.0 && row.speed <= 2.0) {
            let problem = format!("column speed: {} is not above 0 and at most 2", row.speed);
            return Err(table::fault(file, line, problem));
        }
        let signature = |name: &str| names.find(name).map(SignatureId);
        let (Some(task), Some(beside)) = (signature(&row.task), signature(&row.beside)) else {
            continue;
        };
        let shares: &[Share] = match &row.share {
            Some(share) => std::slice::from_ref(share),
            None => &[Share::Streams, Share::Mps],
        };
        for &share in shares {
            pairs.insert(SlowdownPair { share, task, beside, slowdown: 1.0 / row.speed });
        }
    }
    Ok(pairs)
}
