//! Why is my task waiting? Answered on demand, for every GPU, with every rule that fails.

use crate::accounts::OverQuota;
use crate::demand::Demand;
use crate::gate::next_look;
use crate::gpus::GpuState;
use crate::host::HostRefusal;
use crate::scheduler::{Scheduler, SchedulerState};
use crate::screen::{Case, Refusal};
use coloc_model::{Basis, Bytes, GpuId, TaskId, TaskState, Time, UserId};
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
    /// The machine's CPUs or memory do not suffice; free GPUs do not help.
    pub host: Option<HostRefusal>,
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

/// What holds a waiting task up.
#[derive(Clone, PartialEq, Debug)]
pub enum Hindrance {
    /// Its user or group holds as much as it may.
    Quota,
    /// The machine's CPUs or memory do not suffice.
    Host(HostRefusal),
    /// GPUs would take it, and other tasks are asked first.
    Order,
    /// Some GPUs would take it, and it wants more at once.
    Gpus,
    /// The rule of the GPU that comes nearest to taking it.
    Refused(Refusal),
}

/// The refusal of the GPU that comes nearest to taking a task: one that can be used, with the fewest rules against it and the least
/// memory short.
fn nearest(verdicts: Vec<GpuVerdict>) -> Option<Refusal> {
    let never =
        |refusal: &Refusal| matches!(refusal, Refusal::Away | Refusal::Drained | Refusal::Kind);
    let distance = |verdict: &GpuVerdict| {
        let short = verdict.refusals.iter().filter_map(Refusal::short_of).sum::<Bytes>();
        (verdict.refusals.iter().any(never), verdict.refusals.len(), short)
    };
    let nearest = verdicts.into_iter().min_by_key(distance)?;
    nearest.refusals.into_iter().next()
}

impl Refusal {
    /// The rule's name: the word by which programs know it.
    pub fn rule(&self) -> &'static str {
        match self {
            Refusal::Reserved { .. } => "reserved",
            Refusal::HeldAlone { .. } => "held_alone",
            Refusal::Occupied { .. } => "occupied",
            Refusal::Settling { .. } => "settling",
            Refusal::Crowded { .. } => "crowded",
            Refusal::OtherUser { .. } => "other_user",
            Refusal::Memory { .. } => "memory",
            Refusal::NoInstance { .. } => "no_instance",
            Refusal::Busy { .. } => "busy",
            Refusal::Away => "away",
            Refusal::Foreign { .. } => "foreign",
            Refusal::MpsClients { .. } => "mps_clients",
            Refusal::Kind => "kind",
            Refusal::Drained => "drained",
            Refusal::OtherPool => "other_pool",
            Refusal::KeptForOthers => "kept_for_others",
            Refusal::OtherSharing { .. } => "other_sharing",
        }
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

    /// What holds a waiting task up, in short and without a look at the tasks before it; `None` if it runs or is gone.
    pub fn hindrance(&self, now: Time, task: TaskId) -> Option<Hindrance> {
        let scheduler = &self.state;
        let record = scheduler.tasks.get(task).filter(|record| record.run.is_none())?;
        if scheduler.over_quota(task).is_some() {
            return Some(Hindrance::Quota);
        }
        if let Some(refusal) = scheduler.host_refusal(task) {
            return Some(Hindrance::Host(refusal));
        }
        let first = scheduler.recovery.iter().next();
        if scheduler.policy.recovery.stops_others && first.is_some_and(|first| first != task) {
            return Some(Hindrance::Order);
        }
        let verdicts = scheduler.verdicts(now, &scheduler.demand(record.task.id));
        let willing = verdicts.iter().filter(|verdict| verdict.refusals.is_empty()).count();
        match willing {
            willing if willing >= record.task.gpus as usize => Some(Hindrance::Order),
            1.. => Some(Hindrance::Gpus),
            0 => nearest(verdicts).map(Hindrance::Refused).or(Some(Hindrance::Order)),
        }
    }

    /// The rule by which a GPU would refuse any task now, and when that is over without anything happening on it; `None` if the GPU
    /// takes what fits.
    pub fn closed(&self, now: Time, gpu: GpuId) -> Option<(Refusal, Option<Time>)> {
        let (policy, state) = (&self.state.policy, self.state.gpus.get(gpu));
        let user = state.residents().first().map_or(UserId(0), |booking| booking.user);
        let demand = Demand::least(user, policy.needs_idle());
        let reservation = |refusal: &Refusal| {
            matches!(refusal, Refusal::Reserved { .. } | Refusal::KeptForOthers)
        };
        let refusals = Case { policy, state, now, demand: &demand }.refusals();
        let refusal = refusals.into_iter().find(|refusal| !reservation(refusal))?;
        let passes = matches!(refusal, Refusal::Settling { .. } | Refusal::Busy { .. });
        let until = if passes { next_look(policy, state, now) } else { None };
        Some((refusal, until))
    }

    /// Explains a waiting task; `None` if it is running or gone.
    pub fn explain(&self, now: Time, task: TaskId) -> Option<Explanation> {
        let scheduler = &self.state;
        let record = scheduler.tasks.get(task).filter(|record| record.run.is_none())?;
        let (demand, policy) = (scheduler.demand(task), &scheduler.policy);
        let verdicts = scheduler.verdicts(now, &demand);
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
            host: scheduler.host_refusal(task),
            stopped_by_recovery: policy.recovery.stops_others
                && scheduler.recovery.iter().next().is_some_and(|first| first != task),
            verdicts,
        })
    }
}

impl SchedulerState {
    /// What each GPU says to a demand.
    pub(crate) fn verdicts(&self, now: Time, demand: &Demand) -> Vec<GpuVerdict> {
        let (policy, gpus) = (&self.policy, &self.gpus);
        let mut idle = vec![0; gpus.node_ids().count()];
        for gpu in gpus.idle_ids() {
            idle[gpus.get(gpu).node.index()] += 1;
        }
        let verdict = |(gpu, state): (GpuId, &GpuState)| {
            // Where there are enough idle GPUs, on the node or anywhere, some policies look no further.
            let idle = match policy.spans_nodes() {
                true => gpus.idle(),
                false => idle[state.node.index()],
            };
            let takes_idle = policy.idle_first && state.is_idle();
            let blindly = takes_idle && idle >= demand.gpus;
            let demand = if blindly { demand.on_idle() } else { *demand };
            let refusals = Case { policy, state, now, demand: &demand }.refusals();
            GpuVerdict { gpu, refusals }
        };
        gpus.iter().map(verdict).collect()
    }
}
