//! Programs around the emulated driver, all part of the one binary.

pub mod run;
mod signals;
pub mod train;
