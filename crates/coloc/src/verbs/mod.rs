//! One file a verb.

pub(crate) mod collocate;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emu;
pub(crate) mod estimate;
pub(crate) mod gpus;
pub(crate) mod simulate;
pub(crate) mod trace;
