//! Setting up what tasks that share a GPU need: control daemons of MPS, one for each user and set of GPUs, and
//! MIG instances.

mod mps;
mod notes;
mod partitions;

pub use mps::{Admitted, Mps, Newcomer, SharingError};
pub use partitions::{PartitionError, Partitions, place_of};

use coloc_gpu::driver::Guarded;
use std::path::PathBuf;

/// What has been set up.
#[derive(Debug)]
pub struct Sharing {
    /// Control daemons of MPS.
    pub mps: Mps,
    /// MIG instances.
    pub partitions: Partitions,
}

impl Sharing {
    /// Folders go below `state`; instances are made by a connection of their own, so that they need not wait for
    /// the monitor.
    pub fn new(state: PathBuf, driver: Guarded) -> Self {
        let partitions = Partitions::new(&state, driver);
        Sharing { mps: Mps::new(state), partitions }
    }

    /// Leaves the machine as it was found. Only for when no task runs.
    pub fn tear_down(&mut self) {
        self.partitions.tear_down();
        self.mps.tear_down();
    }
}
