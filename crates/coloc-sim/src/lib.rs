//! The simulator: the real scheduler on modelled GPUs, under a virtual clock.
//!
//! A [`Trace`] says what was submitted and how it truly behaves; [`Simulation::run`] plays it against a
//! scheduler that is told only what an [`Estimator`] says. The same inputs give the same bytes.

mod bound;
pub mod collocation;
mod engine;
mod estimator;
mod event_loop;
pub mod forecast;
mod metrics;
mod names;
mod power;
mod timeline;
pub mod trace;

pub use bound::makespan_bound;
pub use coloc_physics::{Phases, Profile};
pub use engine::{
    Declarations, Observer, PreemptionCost, Silent, Simulation, SimulationError, SmError,
};
pub use estimator::{Estimator, NoEstimate, Surroundings};
pub use metrics::{MemoryFigures, Summary, TaskResult};
pub use names::Names;
pub use power::modelled_watts;
pub use timeline::{Attempt, AttemptEnd, GpuSeries, Timeline};
pub use trace::{Trace, TraceTask};
