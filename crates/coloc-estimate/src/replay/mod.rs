//! A task's training, played against PyTorch's caching allocator: what `replay_estimator` adds a constant and a bound to.

pub mod allocator;
mod backward;
mod forward;
mod memory;
mod trainer;
mod workspace;

pub use memory::Usage;
pub use workspace::{ConvCall, CopyRule, NoWorkspace, Pass, WorkspaceProvider};

use crate::graph::Graph;
use crate::run::RunConfig;
use coloc_model::Bytes;

/// What a replay saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Replayed {
    /// The most memory that the allocator asked of the device.
    pub reserved: Bytes,
    /// The most memory that was in use at once.
    pub allocated: Bytes,
    /// Where it went at the moment of the second.
    pub usage: Usage,
    /// The device's limit was passed; the figures are what it would have needed.
    pub ran_out: bool,
}

/// Plays the training of `graph` under a rule of workspaces. Without convolutions every rule gives the same.
pub fn replay(graph: &Graph, run: &RunConfig, workspaces: &dyn WorkspaceProvider) -> Replayed {
    trainer::Trainer::new(graph, run, workspaces).train()
}
