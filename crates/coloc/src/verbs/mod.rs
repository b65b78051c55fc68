//! One file a verb.

pub(crate) mod change;
pub(crate) mod collocate;
pub(crate) mod compare;
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod emu;
pub(crate) mod estimate;
pub(crate) mod gpus;
pub(crate) mod history;
pub(crate) mod logs;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod shim;
pub(crate) mod show;
pub(crate) mod simulate;
pub(crate) mod submit;
pub(crate) mod trace;
pub(crate) mod update;
pub(crate) mod wait;
pub(crate) mod why;
