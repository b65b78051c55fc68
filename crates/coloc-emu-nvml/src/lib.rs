//! The emulated `libnvidia-ml.so.1`: NVML's names and structs over the fleet of `coloc-emu`.
//!
//! Every name of `symbols.txt` is exported, so no client meets a missing symbol. What an emulated device
//! cannot answer says "not supported", as many a real one does.
//!
//! `unsafe` appears here in `#[unsafe(no_mangle)]` only: the names must be NVIDIA's, and nothing else in a
//! process that loads this library may define them.
#![allow(unsafe_code, non_snake_case)]

mod answer;
mod compute_instances;
mod events;
mod fields;
mod gpm;
mod gpu_instances;
mod handle;
mod identity;
mod memory;
mod mig_devices;
mod processes;
mod sensors;
mod settings;
mod system;

/// Names without a function of their own.
mod unwritten {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}
