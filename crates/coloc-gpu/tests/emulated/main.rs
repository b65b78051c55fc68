//! Everything against the emulated driver, through the same library calls that a real one takes.

mod faults;
mod mig;
mod monitor;
#[path = "../support/multisets.rs"]
mod multisets;
mod stage;
