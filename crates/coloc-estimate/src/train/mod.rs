//! Learns everything that ships: constants, margins, forests, nets. Only with the feature `train`.

mod convolution;
mod folds;
pub mod gpumemnet;
mod replay;
mod utilization;

pub use folds::fold_of;
pub use replay::{Learned, cross_validate, learn};

use crate::boost::FitError;

/// Training did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// Trees could not be fitted.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// A net could not be trained.
    #[error("cannot train a net: {0}")]
    Net(#[from] candle_core::Error),
    /// Too little to learn from.
    #[error("{what}: {found} usable rows are too few, at least {needed} are needed")]
    TooFewRows {
        /// What was to be learned.
        what: &'static str,
        /// Rows found.
        found: usize,
        /// Rows needed.
        needed: usize,
    },
}
