//! The nouns of coloc. Everything here is plain data: no clock, no I/O, no policy.

mod fleet;
mod gpu;
mod ids;
mod lines;
pub mod mig;
mod share;
mod signal;
mod speeds;
mod task;
mod units;

pub use fleet::{Fleet, FleetError, FleetFile, Gpu, Node};
pub use gpu::{BoardDescription, GpuModel, KNOWN_MODELS, UnknownModel};
pub use ids::{GpuId, GroupId, NodeId, SignatureId, TaskId, UserId};
pub use lines::LineCounter;
pub use share::Share;
pub use signal::{Activity, GpuSignal, WindowScores};
pub use speeds::SpeedTable;
pub use task::{Estimate, Outcome, Placement, Slot, Task, TaskState};
pub use units::{Bytes, Fraction, Millis, ParseUnitError, Time};
