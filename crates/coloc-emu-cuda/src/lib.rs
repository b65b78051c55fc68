//! The emulated `libcuda.so.1`: devices, contexts and memory of the fleet of `coloc-emu`, streams, events
//! and launches that only count.
//!
//! Device memory is host memory that is backed when it is touched, so copies and fills work. Kernels compute
//! nothing. No export table is answered: those are NVIDIA's own business.
//!
//! `unsafe` appears here in `#[unsafe(no_mangle)]` and in the declarations of the table of entry points, since
//! the names must be NVIDIA's and nothing else in a process that loads this library may define them, and in
//! `unified`, which maps the memory.
#![allow(unsafe_code, non_snake_case)]

mod answer;
mod context;
mod copy;
mod device;
mod entry;
mod library;
mod memory;
mod module;
mod stream;
mod unified;

/// Names without a function of their own.
mod unwritten {
    include!(concat!(env!("OUT_DIR"), "/stubs.rs"));
}

/// Every name and its function.
mod table {
    #![allow(clashing_extern_declarations)] // Addresses only; nothing is called by these declarations.
    include!(concat!(env!("OUT_DIR"), "/table.rs"));
}
