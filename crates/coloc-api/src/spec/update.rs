//! What is to be different about a task that was submitted.

use super::{Dependency, OnOom, TaskSpec};
use coloc_model::{Bytes, Millis};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is to be different about a task.
#[derive(Clone, PartialEq, Eq, Default, Debug, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TaskUpdate {
    /// Its name.
    pub name: Option<String>,
    /// When it is stopped; 0 is never.
    #[schemars(with = "Option<u64>")]
    pub time_limit: Option<Millis>,
    /// So much later than so far is when it is stopped, in milliseconds; below 0, so much earlier.
    pub time_limit_change_ms: Option<i64>,
    /// GPUs at once.
    pub gpus: Option<u32>,
    /// Kinds of GPU that it may run on; none is all.
    pub gpu_kinds: Option<Vec<String>>,
    /// Pools of GPUs that it may run in; none is the daemon's default.
    pub pools: Option<Vec<String>>,
    /// It wants its GPUs to itself.
    pub exclusive: Option<bool>,
    /// When it may begin, in milliseconds since 1970.
    pub begin_ms: Option<u64>,
    /// Tasks it waits for, instead of those so far.
    pub after: Option<Vec<Dependency>>,
    /// One of those is enough.
    pub after_any: Option<bool>,
    /// How often it is run again after a failure of its own.
    pub retries: Option<u32>,
    /// What to do after it ran out of GPU memory.
    pub on_oom: Option<OnOom>,
    /// What it needs on each GPU.
    #[schemars(with = "Option<u64>")]
    pub gpu_memory: Option<Bytes>,
    /// Its priority: among waiting tasks, higher goes first.
    pub priority: Option<i32>,
}

impl TaskUpdate {
    /// Whether it is about what a task has while it runs.
    pub fn needs_a_task_that_waits(&self) -> bool {
        self.gpu_memory.is_some()
            || self.gpus.is_some()
            || self.gpu_kinds.is_some()
            || self.pools.is_some()
            || self.exclusive.is_some()
            || self.begin_ms.is_some()
            || self.after.is_some()
            || self.after_any.is_some()
    }

    /// It says something of the time limit.
    pub fn limits_time(&self) -> bool {
        self.time_limit.is_some() || self.time_limit_change_ms.is_some()
    }

    /// The time limit from now on; `None` is none. A change of none changes nothing, and no change makes one shorter than a
    /// millisecond.
    fn new_time_limit(&self, spec: &TaskSpec) -> Option<Millis> {
        let limit = self.time_limit.or(spec.time_limit).filter(|&limit| limit > Millis::ZERO)?;
        let change = self.time_limit_change_ms.unwrap_or_default();
        Some(Millis(limit.0.saturating_add_signed(change).max(1)))
    }

    /// The submission as it should have been.
    pub fn over(&self, spec: &TaskSpec) -> TaskSpec {
        TaskSpec {
            name: self.name.clone().unwrap_or_else(|| spec.name.clone()),
            time_limit: self.new_time_limit(spec),
            gpus: self.gpus.unwrap_or(spec.gpus),
            gpu_kinds: self.gpu_kinds.clone().unwrap_or_else(|| spec.gpu_kinds.clone()),
            pools: self.pools.clone().unwrap_or_else(|| spec.pools.clone()),
            exclusive: self.exclusive.unwrap_or(spec.exclusive),
            begin_ms: self.begin_ms.or(spec.begin_ms),
            after: self.after.clone().unwrap_or_else(|| spec.after.clone()),
            // New ones are all waited for, unless the update says otherwise.
            after_any: self.after_any.unwrap_or(spec.after_any && self.after.is_none()),
            // A task that is to wait for no other is no singleton either.
            singleton: spec.singleton && self.after.is_none(),
            retries: self.retries.unwrap_or(spec.retries),
            on_oom: self.on_oom.unwrap_or(spec.on_oom),
            gpu_memory: self.gpu_memory.or(spec.gpu_memory),
            priority: self.priority.unwrap_or(spec.priority),
            ..spec.clone()
        }
    }
}
