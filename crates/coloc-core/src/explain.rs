//! Why is my task waiting? Answered on demand, for every GPU, with every rule that fails.

use crate::accounts::OverQuota;
use crate::scheduler::Scheduler;
use crate::screen::{Case, Refusal};
use coloc_model::{Basis, Bytes, GpuId, TaskId, TaskState, Time};
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
    /// GPUs that it needs, on one node unless the placement spans nodes.
    pub gpus: u32,
    /// Memory that it needs on each.
    pub need: Bytes,
    /// What that rests on.
    pub basis: Basis,
    /// Nothing is known of its kind yet, and this task is the first of it: once that one has settled, this one needs no
    /// more than it holds.
    pub awaits: Option<TaskId>,
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
    /// The first task of a waiting task's kind, of which nothing is known yet: once that one has settled, this one needs no
    /// more than it holds.
    pub fn awaits(&self, task: TaskId) -> Option<TaskId> {
        let scheduler = &self.state;
        let record = scheduler.tasks.get(task).filter(|record| record.run.is_none())?;
        let unknown = scheduler.demand_of(record).basis == Basis::Unknown;
        unknown.then(|| scheduler.settling.first_of(scheduler, record.task.signature))?
    }

    /// Why a waiting task may not start however many GPUs are free: its user or group holds as much as it may.
    pub fn over_quota(&self, task: TaskId) -> Option<OverQuota> {
        self.state.tasks.get(task).filter(|record| record.run.is_none())?;
        self.state.over_quota(task)
    }

    /// Explains a waiting task; `None` if it is running or gone.
    pub fn explain(&self, now: Time, task: TaskId) -> Option<Explanation> {
        let scheduler = &self.state;
        let record = scheduler.tasks.get(task).filter(|record| record.run.is_none())?;
        let demand = scheduler.demand(task);
        let (policy, gpus) = (&scheduler.policy, &scheduler.gpus);
        let mut idle = vec![0; gpus.node_ids().count()];
        for gpu in gpus.idle_ids() {
            idle[gpus.get(gpu).node.index()] += 1;
        }
        let verdicts = gpus
            .iter()
            .map(|(gpu, state)| {
                // Where there are enough idle GPUs, on the node or anywhere, some policies look no further.
                let idle = match policy.spans_nodes() {
                    true => gpus.idle(),
                    false => idle[state.node.index()],
                };
                let takes_idle = policy.idle_first && state.is_idle();
                let blindly = takes_idle && idle >= demand.gpus;
                let demand = if blindly { demand.on_idle() } else { demand };
                let refusals = Case { policy, state, now, demand: &demand }.refusals();
                GpuVerdict { gpu, refusals }
            })
            .collect();
        let recovering = scheduler.recovery.iter().position(|waiting| waiting == task);
        let ahead = recovering
            .unwrap_or_else(|| scheduler.recovery.iter().count() + scheduler.ahead(record));
        Some(Explanation {
            task,
            state: record.state(),
            ahead,
            gpus: demand.gpus,
            need: demand.need,
            basis: demand.basis,
            awaits: self.awaits(task),
            over_quota: scheduler.over_quota(task),
            stopped_by_recovery: policy.recovery.stops_others
                && scheduler.recovery.iter().next().is_some_and(|first| first != task),
            verdicts,
        })
    }
}
