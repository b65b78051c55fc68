//! What the monitor sees, and what follows from it for running tasks and GPUs.

pub(in crate::owner) mod departures;
pub(in crate::owner) mod drained_gpus;
pub(in crate::owner) mod energy;
pub(in crate::owner) mod foreign;
pub(in crate::owner) mod idle;
pub(in crate::owner) mod lost_gpus;
pub(in crate::owner) mod memory_watchdog;
pub(in crate::owner) mod progress;
mod reserved_gpus;
pub(in crate::owner) mod sightings;
mod tally;
pub(in crate::owner) mod usage;
