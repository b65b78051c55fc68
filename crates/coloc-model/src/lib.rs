//! The nouns of coloc. Everything here is plain data: no clock, no I/O, no policy.

mod fleet;
mod gpu;
mod ids;
mod lesson;
mod lines;
pub mod mig;
mod models;
mod pool;
mod share;
mod signal;
mod software;
mod speeds;
mod state;
mod task;
mod units;

pub use fleet::{Fleet, FleetError, FleetFile, Gpu, MOST_GPUS, Node};
pub use gpu::{BoardDescription, GpuModel, KNOWN_MODELS, UnknownModel};
pub use ids::{GpuId, GroupId, NodeId, SignatureId, TaskId, UserId};
pub use lesson::{InterferenceProfile, Lesson};
pub use lines::LineCounter;
pub use models::ModelSet;
pub use pool::{MOST_POOLS, PoolSet};
pub use share::Share;
pub use signal::{Activity, GpuSignal, WindowScores};
pub use software::{Framework, Loads, UnknownFramework};
pub use speeds::SpeedTable;
pub use state::TaskState;
pub use task::{Basis, Estimate, HostNeed, Memory, Outcome, Placement, Slot, Task};
pub use units::{Bytes, Fraction, Millis, ParseUnitError, Time};
