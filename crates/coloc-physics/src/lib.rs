//! What a GPU does to the tasks on it: speed, memory, power. The truth of simulator and emulator.
//!
//! The scheduler never sees this crate. It learns what it can from estimates and from a monitor, so
//! that a policy is not tested against its own assumptions.

pub mod catalogue;
pub mod gavel;
mod growth;
mod interference;
mod noise;
mod pairs;
mod phases;
mod power;
mod profile;
pub mod published;
mod skew;

pub use growth::Growth;
pub use interference::{Interference, Part, Resident, SharedGpu};
pub use noise::Noise;
pub use pairs::{PairTable, SlowdownPair};
pub use phases::{Evaluate, LateGrowth, Load, MemoryCurve, Phases};
pub use power::{Power, PowerModel};
pub use profile::Profile;
pub use skew::skew;
