//! The live system: the scheduler between real processes, real or emulated GPUs and the people who
//! submit. This crate is the only owner of an async runtime.

pub mod accounting;
pub mod administration;
pub mod api;
pub mod bounds;
pub mod clock;
mod descriptors;
pub mod executor;
pub mod forecast;
pub mod hardware;
mod heap;
mod intent_file;
pub mod journal;
pub mod kinds;
pub mod log;
pub mod metrics;
pub mod news;
pub mod notices;
pub mod notify;
mod on_disk;
pub mod owner;
pub mod past;
pub mod quotas;
pub mod record;
mod renumber;
pub mod report;
mod reserve;
pub mod retention;
mod retention_clock;
pub mod serve;
pub mod settings;
pub mod state_dir;
pub mod tls;
pub mod tokens;
pub mod usage;
pub mod users;
