//! What an estimator says, and the trait that all of them share.

use crate::graph::{Flag, FlagKind, Graph};
use crate::replay::Usage;
use crate::run::RunConfig;
use coloc_model::{Bytes, Fraction};
use serde::Serialize;
use std::fmt;

/// How busy a task keeps a GPU of its own.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Utilization {
    /// SMs with work, as a share of time.
    pub smact: Fraction,
    /// Warps resident, as a share of the most.
    pub smocc: Fraction,
    /// Memory interface in use, as a share of time: derived from the graph, never measured.
    pub dram: Fraction,
}

/// What a task is expected to need, before it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Estimate {
    /// Expected peak on each GPU, everything included.
    pub peak: Bytes,
    /// What it stays below, as far as `promise` goes.
    pub bound: Bytes,
    /// What the bound is worth.
    pub promise: Promise,
    /// A point within the class that is meant, for estimators that only know classes.
    pub class_mib: Option<f64>,
    /// Expected utilization, where it is known.
    pub utilization: Option<Utilization>,
    /// Which estimator answered.
    pub estimator: &'static str,
    /// Reasons for doubt.
    pub flags: Vec<Flag>,
    /// Where the memory goes, when the estimator knows.
    pub breakdown: Option<Breakdown>,
}

/// What a bound is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// Enough rows were held out to promise 99 of 100.
    NinetyNine,
    /// Too few rows were measured for that: the largest error among them.
    LargestError,
    /// Flags made it wider, by shares that are not calibrated.
    Widened,
    /// The largest of so many runs of the same command, and something more.
    Runs(usize),
    /// Nothing like it was ever compared with a measurement.
    Guess,
    /// It is the peak.
    Nothing,
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Promise::NinetyNine => f.write_str("99 of 100 such tasks stay below"),
            Promise::LargestError => f.write_str(
                "no measured net with attention lay further above; they are too few to promise more",
            ),
            Promise::Widened => f.write_str("wider because of the flags below, by rule of thumb"),
            Promise::Runs(1) => f.write_str("a tenth above the one run before: a rule of thumb"),
            Promise::Runs(runs) => write!(
                f,
                "a little above the largest of {runs} runs; the next is larger than all with a chance of 1 in {}",
                runs + 1
            ),
            Promise::Guess => f.write_str("a rule of thumb, never compared with a measurement"),
            Promise::Nothing => f.write_str("the same: this estimator promises nothing"),
        }
    }
}

/// Where a task's memory goes at its peak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Breakdown {
    /// The allocator's part.
    #[serde(flatten)]
    pub usage: Usage,
    /// Driver context and libraries.
    pub context: u64,
}

impl From<&Estimate> for coloc_model::Estimate {
    fn from(estimate: &Estimate) -> Self {
        coloc_model::Estimate {
            peak: estimate.peak,
            bound: estimate.bound,
            sm: estimate.utilization.map(|utilization| utilization.smact),
        }
    }
}

/// Something that can tell a task's need from its graph.
pub trait Estimator {
    /// What `graph` trained by `run` needs.
    fn estimate(&self, graph: &Graph, run: &RunConfig) -> Estimate;
}

/// How much wider a bound gets for each kind of doubt, as a share of the allocator's memory.
pub(crate) fn doubt(flags: &[Flag]) -> f64 {
    let mut kinds: Vec<FlagKind> = flags.iter().map(|flag| flag.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
        .into_iter()
        .map(|kind| match kind {
            FlagKind::UnknownOperation => 0.3,
            FlagKind::HiddenLayers | FlagKind::SummaryMismatch => 0.6,
            FlagKind::Unverified => 0.15,
            FlagKind::Assumption => 0.1,
            FlagKind::OutOfMemory => 0.0,
        })
        .sum()
}
