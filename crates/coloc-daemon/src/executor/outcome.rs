//! How a task ended: the verdict, and what is to be believed of an out-of-memory error.

mod believable;
mod failed_allocation;

pub use believable::{believable, wanted};
pub use failed_allocation::FailedAllocation;

use coloc_model::Bytes;
use serde::{Deserialize, Serialize};

/// What became of an attempt.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// It did its work.
    Completed,
    /// Its GPU had no room.
    GpuOutOfMemory {
        /// What it said of that. It may have said anything: see [`believable`].
        said: FailedAllocation,
        /// The words that tell.
        evidence: String,
    },
    /// The machine, or its limit, had no room: the kernel killed it, or it could not allocate. What the kernel says of
    /// it, where it was in a control group.
    HostOutOfMemory(Option<HostMemory>),
    /// The shim stopped it at its time limit.
    TimedOut,
    /// The shim stopped it because the daemon asked.
    Stopped,
    /// It could not be started, for this reason.
    Unstarted(String),
    /// Its MPS server has let it down, in these words.
    MpsTrouble(String),
    /// It failed by itself.
    Failed,
}

/// What the kernel says of a task's host memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct HostMemory {
    /// Processes that the kernel killed for want of memory.
    pub kills: u64,
    /// The most that was in use, where the kernel tells.
    pub peak: Option<Bytes>,
    /// The limit, if there was one.
    pub limit: Option<Bytes>,
}
