//! The emulated driver's libraries, as the linker put them into a release binary (see `build.rs`).
//!
//! `unsafe` because only the linker knows where they begin and end.
#![allow(unsafe_code)]

#[cfg(embedded_driver)]
include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Tells the emulator what it may unpack.
#[cfg(embedded_driver)]
pub(crate) fn offer() {
    // SAFETY: both symbols of a pair are of one object that the linker laid out, the end not before the start, and it
    // lives and stays as it is as long as the program.
    let slice = |start: *const u8, end: *const u8| unsafe {
        std::slice::from_raw_parts(start, end.offset_from_unsigned(start))
    };
    coloc_emu::install::embed([
        slice(&raw const START_0, &raw const END_0),
        slice(&raw const START_1, &raw const END_1),
    ]);
}

/// A debug build finds them in its tree.
#[cfg(not(embedded_driver))]
pub(crate) fn offer() {}
