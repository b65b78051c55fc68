//! A task as the scheduler knows it: what was declared and what was estimated, never the truth.

use crate::mig::Instance;
use crate::{
    Bytes, Fraction, GpuId, Millis, ModelSet, PoolSet, Share, SignatureId, TaskId, UserId,
};
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

/// What is known of a task's memory before it runs, on each of its GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// The user said what it needs.
    Declared {
        /// That much.
        bytes: Bytes,
        /// What it does not use may be lent until it wants it.
        #[serde(default)]
        reclaim: bool,
    },
    /// An estimator said.
    Estimated {
        /// The most that the task is expected to hold.
        peak: Bytes,
        /// What the task stays below with high confidence.
        bound: Bytes,
    },
    /// Nothing is known.
    #[default]
    Unknown,
}

impl Memory {
    /// An estimate that claims to be exact.
    pub const fn exact(peak: Bytes) -> Self {
        Memory::Estimated { peak, bound: peak }
    }

    /// A declaration that is kept for the task's whole life.
    pub const fn declared(bytes: Bytes) -> Self {
        Memory::Declared { bytes, reclaim: false }
    }

    /// The most that the task is said or expected to hold.
    pub const fn peak(self) -> Option<Bytes> {
        match self {
            Memory::Declared { bytes, .. } => Some(bytes),
            Memory::Estimated { peak, .. } => Some(peak),
            Memory::Unknown => None,
        }
    }

    /// What the task is said or estimated to stay below.
    pub const fn bound(self) -> Option<Bytes> {
        match self {
            Memory::Declared { bytes, .. } => Some(bytes),
            Memory::Estimated { bound, .. } => Some(bound),
            Memory::Unknown => None,
        }
    }
}

impl From<Option<Estimate>> for Memory {
    fn from(estimate: Option<Estimate>) -> Self {
        match estimate {
            Some(Estimate { peak, bound, .. }) => Memory::Estimated { peak, bound },
            None => Memory::Unknown,
        }
    }
}

/// What a booking of memory rests on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The user's word.
    Declared,
    /// An estimate.
    Estimated,
    /// What tasks of the same kind were seen to hold.
    History,
    /// Nothing.
    #[default]
    Unknown,
}

impl Basis {
    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Basis::Declared => "declared",
            Basis::Estimated => "estimated",
            Basis::History => "history",
            Basis::Unknown => "unknown",
        }
    }
}

/// What a task asks of the machine beside GPUs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNeed {
    /// CPUs.
    pub cpus: u32,
    /// Memory.
    pub memory: Bytes,
}

impl HostNeed {
    /// Nothing was asked for.
    pub const NONE: HostNeed = HostNeed { cpus: 0, memory: Bytes::ZERO };

    /// Nothing was asked for.
    pub fn is_none(&self) -> bool {
        *self == HostNeed::NONE
    }
}

/// A unit of work that a user submitted.
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
    /// GPU models that it may run on; without it, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<ModelSet>,
    /// Pools whose GPUs it may run on; without it, all GPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pools: Option<PoolSet>,
    /// What is known of its memory on each GPU.
    #[serde(default)]
    pub memory: Memory,
    /// Expected SM activity when alone, if an estimator knows.
    #[serde(default)]
    pub sm: Option<Fraction>,
    /// It may run in memory that another task lends, and be sent back to the queue when that task wants it.
    #[serde(default)]
    pub borrows: bool,
    /// CPUs and memory of the machine.
    #[serde(default, skip_serializing_if = "HostNeed::is_none")]
    pub host: HostNeed,
    /// It saves its work this often, or whenever it is told to (zero), and goes on from there; without it, it starts anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Millis>,
    /// How long the user says it runs when alone.
    pub duration: Option<Millis>,
    /// Among waiting tasks, higher goes first; 0 is the default.
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
    /// One slot per GPU, all on one node unless the policy counts GPUs only. All copies of a placement
    /// share the same slots.
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
