//! An experiment with real processes: copies of a command on one GPU, one way of sharing after the other.
//!
//! It runs as a task of the daemon that has a GPU to itself, so it competes with no other task: whatever it starts is
//! on that GPU alone, and ends with the task.

mod copies;
mod gauge;
mod partition;
mod progress;
mod run;

pub(crate) use progress::Pattern;
pub(crate) use run::run;

use coloc_api::text::RawText;
use coloc_model::{Fraction, Share};
use serde::{Deserialize, Serialize};

/// What is to be tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    /// The command, of which there are copies.
    pub(crate) command: Vec<RawText>,
    /// Something else that runs beside them.
    pub(crate) with: Option<Vec<RawText>>,
    /// How many copies at once.
    pub(crate) copies: Vec<u32>,
    /// How they share.
    pub(crate) shares: Vec<Share>,
    /// What tells progress in their output.
    pub(crate) progress: Option<String>,
    /// Seconds that pass before anything counts.
    pub(crate) warmup_s: f64,
    /// Seconds that count.
    pub(crate) seconds: f64,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The GPU.
    pub(crate) gpu: String,
    /// Its figures are made up by the emulated driver.
    pub(crate) emulated: bool,
    /// The command alone.
    pub(crate) alone: Alone,
    /// What ran beside it, alone.
    pub(crate) with_alone: Option<Alone>,
    /// One a way of sharing and number of copies.
    pub(crate) trials: Vec<Trial>,
}

/// A command that had the GPU to itself.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Alone {
    /// Iterations a second, or runs a second where no progress was seen.
    pub(crate) rate: f64,
    /// What the rate counts are iterations.
    pub(crate) by_progress: bool,
    /// What the GPU did.
    pub(crate) gauge: Reading,
}

/// What a GPU did over some time.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(crate) struct Reading {
    /// Mean SM activity; `None` where no source sees it.
    pub(crate) smact: Option<Fraction>,
    /// The most memory in use, in MiB.
    pub(crate) memory_mib: f64,
    /// Mean power.
    pub(crate) power_w: Option<f64>,
    /// Energy.
    pub(crate) energy_j: Option<f64>,
    /// Over so many seconds.
    pub(crate) seconds: f64,
}

/// Copies of a command side by side.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Trial {
    /// How they shared.
    pub(crate) share: Share,
    /// How many copies.
    pub(crate) copies: u32,
    /// The partition, in words; empty where there is none.
    pub(crate) layout: String,
    /// What came of it, or why nothing did.
    pub(crate) outcome: Result<Together, String>,
}

/// What came of running side by side.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Together {
    /// Work done a second, over what one at a time does.
    pub(crate) throughput: f64,
    /// Of each copy, and last of what ran beside them: speed alone over speed together.
    pub(crate) slowdowns: Vec<f64>,
    /// Energy for the same work, over one at a time.
    pub(crate) energy_ratio: Option<f64>,
    /// What the GPU did.
    pub(crate) gauge: Reading,
}

impl Together {
    /// Mean over the copies, and what ran beside them.
    pub(crate) fn slowdown_mean(&self) -> f64 {
        self.slowdowns.iter().sum::<f64>() / self.slowdowns.len().max(1) as f64
    }
}
