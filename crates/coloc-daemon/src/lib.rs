//! The live system: the scheduler between real processes, real or emulated GPUs and the people who
//! submit. This crate is the only owner of an async runtime.

pub mod journal;
pub mod outcome;
pub mod record;
pub mod run;
pub mod shim;
pub mod spec;
pub mod text;
