//! Programs around the emulated driver, all part of the one binary.

pub mod dcgm;
mod mps;
mod nvidia_smi;
pub mod run;
mod signals;
mod tool;
pub mod train;

pub use tool::by_name;
