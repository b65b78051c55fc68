//! Real and emulated GPUs: what is there, how busy it is, which processes use it, and how it is shared.
//!
//! | to | see |
//! |---|---|
//! | ask the driver without ever being blocked by it | [`driver::Guarded`] |
//! | know which GPUs there are, and notice when that changes | [`inventory`] |
//! | know when one is faulty | [`health`], [`driver::Xids`] |
//! | watch them | [`monitor::Monitor`], [`sample`] |
//! | tell which task a process belongs to | [`process`] |
//! | share one | [`mps`], [`mig`], [`streams`] |
//! | hold a task to its memory | [`enforce`] |
//! | see what a machine can do | [`doctor`] |
//!
//! Whatever changes the world is a plan first, a plain value that can be looked at, and then carried out by a
//! thin executor. Nothing here is async: a daemon calls it from a thread of its own.

pub mod device;
pub mod doctor;
pub mod driver;
pub mod enforce;
pub mod health;
pub mod inventory;
pub mod mig;
pub mod monitor;
pub mod mps;
pub mod process;
mod program;
pub mod sample;
pub mod snapshot;
pub mod streams;
