//! The live system: the scheduler between real processes, real or emulated GPUs and the people who
//! submit. This crate is the only owner of an async runtime.

pub mod agreements;
pub mod api;
pub mod cgroup;
pub mod client;
pub mod clock;
pub mod estimated;
pub mod fingerprint;
pub mod foresee;
pub mod hardware;
pub mod journal;
pub mod kinds;
pub mod launch;
pub mod notify;
pub mod outcome;
pub mod owner;
pub mod past;
pub mod record;
pub mod retention;
pub mod run;
pub mod script;
pub mod serve;
pub mod settings;
pub mod sharing;
pub mod shim;
pub mod signals;
pub mod spec;
pub mod text;
pub mod tls;
pub mod tokens;
pub mod usage;
pub mod users;
pub mod watch;
