//! How tasks share one GPU.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The mechanism by which tasks on one GPU share it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    /// One task at a time.
    Exclusive,
    /// Plain processes: the driver time-slices their contexts.
    Streams,
    /// NVIDIA's Multi-Process Service: kernels of several processes run side by side.
    Mps,
    /// Multi-Instance GPU: hardware partitions with memory of their own.
    Mig,
}

impl Share {
    /// Every mode, in the order people list them.
    pub const ALL: [Share; 4] = [Share::Exclusive, Share::Streams, Share::Mps, Share::Mig];

    /// The name used in flags, files and output.
    pub const fn name(self) -> &'static str {
        match self {
            Share::Exclusive => "exclusive",
            Share::Streams => "streams",
            Share::Mps => "mps",
            Share::Mig => "mig",
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
