//! Gradient-boosted trees: small forests that ship with the crate and need no framework to answer.

#[cfg(feature = "train")]
mod fit;
mod forest;

#[cfg(feature = "train")]
pub use fit::{FitError, Settings, fit};
pub use forest::{Forest, ForestError};
