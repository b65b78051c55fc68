//! The live system: the scheduler between real processes, real or emulated GPUs and the people who
//! submit. This crate is the only owner of an async runtime.

pub mod agreements;
pub mod api;
pub mod bounds;
pub mod clock;
mod descriptors;
pub mod executor;
pub mod foresee;
pub mod hardware;
pub mod journal;
pub mod kinds;
pub mod log;
mod memory;
mod noted;
pub mod notify;
mod on_disk;
pub mod owner;
pub mod past;
pub mod record;
mod renumber;
mod reserve;
pub mod retention;
pub mod serve;
pub mod settings;
pub mod state_dir;
mod steady;
pub mod tls;
pub mod tokens;
pub mod usage;
pub mod users;
