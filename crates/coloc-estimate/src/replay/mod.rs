//! The default estimator: plays a task's training against PyTorch's caching allocator.

pub mod allocator;
mod backward;
mod forward;
mod free_list;
mod machine;
mod trainer;
mod workspace;

pub use machine::Usage;
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

/// Plays the training of `graph`: parameters, rehearsal, iterations, optimizer steps.
pub fn replay(graph: &Graph, run: &RunConfig, workspaces: &dyn WorkspaceProvider) -> Replayed {
    let mut trainer = trainer::Trainer::new(graph, run, workspaces);
    trainer.rehearse();
    trainer.train();
    let machine = trainer.into_machine();
    Replayed {
        reserved: Bytes(machine.peak_reserved()),
        allocated: Bytes(machine.peak_allocated()),
        usage: machine.at_peak(),
        ran_out: machine.ran_out,
    }
}
