//! Why is my task waiting? Answered on demand, for every GPU, with every rule that fails.

use crate::accounts::OverQuota;
use crate::scheduler::Scheduler;
use crate::screen::{Case, Refusal};
use coloc_model::{Bytes, GpuId, TaskId, TaskState, Time};
use serde::Serialize;

/// What one GPU says to a task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GpuVerdict {
    /// The GPU.
    pub gpu: GpuId,
    /// Every rule that fails; empty if the GPU would take the task.
    pub refusals: Vec<Refusal>,
}

/// Why a task is where it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// The task.
    pub task: TaskId,
    /// Where it stands.
    pub state: TaskState,
    /// Tasks that are considered before it.
    pub ahead: usize,
    /// GPUs that it needs on one node.
    pub gpus: u32,
    /// Memory that it needs on each.
    pub need: Bytes,
    /// Its user or group holds as much as it may; free GPUs do not help.
    pub over_quota: Option<OverQuota>,
    /// Another task waits to be brought back and stops all others.
    pub stopped_by_recovery: bool,
    /// What each GPU says.
    pub verdicts: Vec<GpuVerdict>,
}

impl Explanation {
    /// GPUs that would take the task.
    pub fn willing(&self) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.refusals.is_empty()).count()
    }
}

impl Scheduler {
    /// Explains a waiting task; `None` if it is running or gone.
    pub fn explain(&self, now: Time, task: TaskId) -> Option<Explanation> {
        let world = &self.world;
        let record = world.tasks.get(task).filter(|record| record.run.is_none())?;
        let demand = world.demand(task);
        let (policy, gpus) = (&world.policy, &world.gpus);
        let verdicts = gpus
            .iter()
            .map(|(gpu, state)| {
                // Where the node has enough idle GPUs, some policies look no further.
                let idle = || gpus.of_node(state.node).filter(|&gpu| gpus.get(gpu).is_idle());
                let takes_idle = policy.idle_first && state.is_idle();
                let blindly = takes_idle && idle().count() >= demand.gpus as usize;
                let demand = if blindly { demand.on_idle() } else { demand };
                let refusals = Case { policy, state, now, demand: &demand }.refusals();
                GpuVerdict { gpu, refusals }
            })
            .collect();
        let recovering = world.recovery.iter().position(|waiting| waiting == task);
        let ahead =
            recovering.unwrap_or_else(|| world.recovery.iter().count() + world.ahead(record));
        Some(Explanation {
            task,
            state: record.state(),
            ahead,
            gpus: demand.gpus,
            need: demand.need,
            over_quota: world.over_quota(task),
            stopped_by_recovery: policy.recovery.stops_others
                && world.recovery.iter().next().is_some_and(|first| first != task),
            verdicts,
        })
    }
}
