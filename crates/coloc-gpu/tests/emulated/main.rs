//! Everything against the emulated driver, through the same library calls that a real one takes.

mod faults;
mod mig;
mod monitor;
mod stage;
