//! Memory and utilization of a training task before it runs.

pub mod boost;
pub mod bounds;
pub mod catalogue;
pub mod dataset;
pub mod environment;
mod estimate;
pub mod faketensor;
mod features;
pub mod gpumemnet;
pub mod graph;
pub mod hf;
pub mod history;
pub mod horus;
pub mod ladder;
pub mod learned;
pub mod replay;
mod replay_estimator;
pub mod run;
pub mod summary;
#[cfg(feature = "train")]
pub mod train;
mod utilization;

pub use estimate::{Breakdown, Estimate, Estimator, Promise, Utilization};
pub use replay_estimator::{Family, ReplayEstimator};
