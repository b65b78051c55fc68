//! A task as the scheduler knows it: what was declared and what was estimated, never the truth.

use crate::mig::Instance;
use crate::{Bytes, Fraction, GpuId, Millis, Share, SignatureId, TaskId, UserId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What an estimator says of a task before it runs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The most memory the task is expected to hold on each of its GPUs.
    pub peak: Bytes,
    /// Memory that the task stays below with high confidence; what the ledger books.
    pub bound: Bytes,
    /// Expected SM activity when alone, if the estimator knows.
    pub sm: Option<Fraction>,
}

impl Estimate {
    /// An estimate of memory alone that claims to be exact.
    pub const fn exact(peak: Bytes) -> Self {
        Estimate { peak, bound: peak, sm: None }
    }
}

/// A unit of work that somebody submitted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The task's id.
    pub id: TaskId,
    /// What it runs.
    pub signature: SignatureId,
    /// Whose it is.
    pub user: UserId,
    /// How many GPUs it needs, all at once.
    pub gpus: u32,
    /// The user asked to be alone on the GPUs.
    pub exclusive: bool,
    /// Expected need per GPU; `None` when nothing is known.
    pub estimate: Option<Estimate>,
    /// How long the user says it runs when alone.
    pub duration: Option<Millis>,
    /// Among tasks that wait, higher goes first; 0 is everybody's.
    #[serde(default)]
    pub priority: i32,
}

/// One GPU that a task was given, and the part of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Slot {
    /// The GPU.
    pub gpu: GpuId,
    /// The MIG instance on it, when the GPU is partitioned.
    pub instance: Option<Instance>,
}

/// Where a task runs and how it shares.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// One slot per GPU, all on one node unless the policy counts GPUs only. Everybody who keeps a
    /// placement keeps the same slots.
    pub slots: Arc<[Slot]>,
    /// The sharing mechanism.
    pub share: Share,
}

impl Placement {
    /// The GPUs in slot order.
    pub fn gpus(&self) -> impl Iterator<Item = GpuId> + '_ {
        self.slots.iter().map(|slot| slot.gpu)
    }
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The work is done.
    Completed,
    /// It failed by itself; running it again would fail again.
    Failed,
    /// The device had no room for an allocation.
    OutOfMemory {
        /// What the task would have held on one GPU had the last allocation succeeded.
        wanted: Bytes,
    },
}

/// Where a task stands. The names are those of the JSON contract.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// Waiting in the main queue.
    Pending,
    /// On its GPUs.
    Running,
    /// Ran out of memory and waits for another try.
    Recovering,
    /// Ended well.
    Completed,
    /// Ended by its own fault.
    Failed,
    /// Ended by a user's wish.
    Cancelled,
    /// Ran out of memory once too often.
    OutOfMemory,
}
