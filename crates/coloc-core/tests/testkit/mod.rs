//! A scenario in five lines: tasks are built with [`task`], a [`World`] plays executor and monitor
//! around the real scheduler, and checks its invariants after every event.
#![allow(dead_code)] // Each test binary uses its part.

mod task;
mod world;

pub(crate) use task::{TaskBuilder, task};
pub(crate) use world::{Restart, World};

use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_model::{Bytes, Fraction, Millis, Share, Time};

/// Whole gibibytes.
pub(crate) const fn gib(gib: u64) -> Bytes {
    Bytes::from_mib(gib * 1024)
}

/// Whole mebibytes.
pub(crate) const fn mib(mib: u64) -> Bytes {
    Bytes::from_mib(mib)
}

pub(crate) const fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

pub(crate) fn at(seconds: u64) -> Time {
    Time::START + secs(seconds)
}

pub(crate) const fn share(value: f64) -> Fraction {
    Fraction::new(value)
}

/// Tasks share GPUs under MPS, by the ledger, and nothing else is implicit.
pub(crate) const fn mps(queue: Queue, place: Place) -> Policy {
    Policy::plain(queue, place, Share::Mps)
}

/// Whole GPUs only.
pub(crate) const fn exclusive(queue: Queue) -> Policy {
    Policy::plain(queue, Place::Exclusive, Share::Exclusive)
}
