//! What a task trains with.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// A framework whose allocator coloc knows something about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PyTorch.
    PyTorch,
    /// JAX.
    Jax,
    /// TensorFlow.
    TensorFlow,
}

/// A framework of which nothing is known here.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is none of pytorch, jax and tensorflow")]
pub struct UnknownFramework(String);

impl FromStr for Framework {
    type Err = UnknownFramework;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name.to_ascii_lowercase().as_str() {
            "pytorch" | "torch" => Ok(Framework::PyTorch),
            "jax" => Ok(Framework::Jax),
            "tensorflow" | "tf" => Ok(Framework::TensorFlow),
            _ => Err(UnknownFramework(name.chars().take(40).collect())),
        }
    }
}

/// The libraries that a task loads, and with them the parts of the constant that count.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loads {
    /// Matrix products only.
    Plain,
    /// Convolutions.
    Convolutions,
    /// Convolutions and batch normalisation.
    BatchNorm,
}

impl Loads {
    /// All of them, each with one part more than the one before.
    pub const ALL: [Loads; 3] = [Loads::Plain, Loads::Convolutions, Loads::BatchNorm];

    /// What the last part of the constant stands for.
    pub const fn part(self) -> &'static str {
        match self {
            Loads::Plain => "the context",
            Loads::Convolutions => "cuDNN",
            Loads::BatchNorm => "batch normalisation",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frameworks_are_known_by_name() {
        assert_eq!("PyTorch".parse(), Ok(Framework::PyTorch));
        assert_eq!("tf".parse(), Ok(Framework::TensorFlow));
        let error = "caffe".parse::<Framework>().expect_err("unknown").to_string();
        assert_eq!(error, "\"caffe\" is none of pytorch, jax and tensorflow");
    }
}
