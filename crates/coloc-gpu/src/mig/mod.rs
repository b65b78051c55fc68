//! Multi-Instance GPU: which instances a set of tasks needs, and making them so.
//!
//! A plan is a value. It is computed from a [`Board`] as the driver describes it, it never touches an instance
//! that is in use, and [`apply`] carries it out.

mod apply;
mod board;
mod plan;
mod search;

pub use apply::{Applied, ApplyError, Given, apply, disable, enable, remove};
pub use board::{
    Board, BoardProfile, ComputeInstance, ComputeInstanceId, ExistingInstance, GpuInstanceId,
    MigDevice, Place, ProfileKind,
};
pub use plan::{Assignment, Member, MigPlan, MigRefusal, Step, Want, plan};
