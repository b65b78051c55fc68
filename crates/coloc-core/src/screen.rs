//! The screen stage: may this GPU take this task? Each rule is a function that says no with the amount
//! that was short; a pass stops at the first no, an explanation collects them all.

use crate::demand::Demand;
use crate::gate::{hot_score, tumbling_mean};
use crate::gpus::{Clients, GpuState, Reservation};
use crate::policy::{Gate, Policy};
use crate::pools::{kept_for_users, other_sharing, pool};
use coloc_model::{Basis, Bytes, Millis, Share, TaskId, Time, UserId};
use serde::Serialize;
use std::fmt;

/// Why a GPU cannot take a task now.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Refusal {
    /// Another task has waited too long; the GPU is kept free for it.
    Reserved {
        /// The task it is kept for.
        reserved_for: TaskId,
    },
    /// It is lost.
    Away,
    /// It takes nothing new: it is faulty, or an administrator wants it so.
    Drained,
    /// The task does not run on devices of its kind.
    Kind,
    /// It is in no pool of the task.
    OtherPool,
    /// It is kept for other users.
    KeptForOthers,
    /// A task is on it that shares it in another way: the way was changed while that task ran.
    OtherSharing {
        /// That task.
        holder: TaskId,
    },
    /// The task needs an empty GPU, and processes that are not tasks are on it.
    Foreign {
        /// What they hold.
        used: Bytes,
    },
    /// A task that must be alone is on it.
    HeldAlone {
        /// That task.
        holder: TaskId,
        /// Nothing is known of its memory: others may come once it has settled.
        until_settled: bool,
    },
    /// The task needs an empty GPU.
    Occupied {
        /// Tasks on it.
        tasks: usize,
    },
    /// A task was launched on it a moment ago.
    Settling {
        /// How much longer, in milliseconds.
        left: Millis,
    },
    /// As many tasks as the policy allows are on it.
    Crowded {
        /// The limit.
        limit: u32,
    },
    /// MPS takes no more clients on it: another one could not open a context.
    MpsClients {
        /// Clients now.
        clients: u32,
        /// The most.
        limit: u32,
    },
    /// Another user's tasks are on it.
    OtherUser {
        /// That user.
        user: UserId,
    },
    /// Not enough memory can be promised.
    Memory {
        /// What the task needs.
        need: Bytes,
        /// What is available.
        available: Bytes,
    },
    /// No MIG instance that large can be made.
    NoInstance {
        /// What the task needs.
        need: Bytes,
        /// The largest that could be made.
        largest: Bytes,
    },
    /// The GPU is too busy.
    Busy {
        /// Which measure.
        measure: Measure,
        /// Its value.
        value: f64,
        /// The most that is allowed.
        limit: f64,
    },
}

/// What a utilization gate looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Mean SM activity of the last full window.
    MeanSm,
    /// The risk score of SM activity, with occupancy or DRAM activity above its limit too.
    RiskSm,
    /// SM demand that is expected with the newcomer, or seen if that is more.
    ExpectedWithTask,
}

impl Refusal {
    /// How many kinds there are.
    pub const KINDS: usize = 17;

    /// A small number for counting.
    pub(crate) fn kind(&self) -> usize {
        match self {
            Refusal::Reserved { .. } => 0,
            Refusal::HeldAlone { .. } => 1,
            Refusal::Occupied { .. } => 2,
            Refusal::Settling { .. } => 3,
            Refusal::Crowded { .. } => 4,
            Refusal::OtherUser { .. } => 5,
            Refusal::Memory { .. } => 6,
            Refusal::NoInstance { .. } => 7,
            Refusal::Busy { .. } => 8,
            Refusal::Away => 9,
            Refusal::Foreign { .. } => 10,
            Refusal::MpsClients { .. } => 11,
            Refusal::Kind => 12,
            Refusal::Drained => 13,
            Refusal::OtherPool => 14,
            Refusal::KeptForOthers => 15,
            Refusal::OtherSharing { .. } => 16,
        }
    }

    /// Memory that was missing, if that was it.
    pub fn short_of(&self) -> Option<Bytes> {
        match *self {
            Refusal::Memory { need, available } => Some(need.saturating_sub(available)),
            Refusal::NoInstance { need, largest } => Some(need.saturating_sub(largest)),
            _ => None,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Refusal::Reserved { reserved_for } => {
                write!(f, "kept free for task {reserved_for}, which has waited too long")
            }
            Refusal::Away => write!(f, "is lost"),
            Refusal::Drained => write!(f, "is drained"),
            Refusal::Kind => write!(f, "the task does not run on its kind"),
            Refusal::OtherPool => write!(f, "is not in the task's pool"),
            Refusal::KeptForOthers => write!(f, "is reserved for other users"),
            Refusal::OtherSharing { holder } => {
                write!(
                    f,
                    "task {holder} shares it in another way than new tasks would, until it ends"
                )
            }
            Refusal::Foreign { used } => {
                write!(f, "must be empty, processes that are not tasks hold {used}")
            }
            Refusal::HeldAlone { holder, until_settled: false } => {
                write!(f, "task {holder} has it alone")
            }
            Refusal::HeldAlone { holder, until_settled: true } => {
                write!(f, "task {holder} has it alone until its memory has settled")
            }
            Refusal::Occupied { tasks: 1 } => write!(f, "must be empty, 1 task is on it"),
            Refusal::Occupied { tasks } => write!(f, "must be empty, {tasks} tasks are on it"),
            Refusal::Settling { left } => write!(f, "settling after a launch for {left} more"),
            Refusal::Crowded { limit } => write!(f, "has {limit} tasks, the most allowed"),
            Refusal::MpsClients { clients, limit } => {
                write!(f, "has {clients} clients of MPS, and takes {limit}")
            }
            Refusal::OtherUser { user } => write!(f, "in use by user {user}"),
            Refusal::Memory { need, available } => {
                let short = need.saturating_sub(available);
                write!(f, "needs {need}, {available} available: {short} short")
            }
            Refusal::NoInstance { need, largest } => {
                write!(f, "needs a MIG instance with {need}, the largest possible has {largest}")
            }
            Refusal::Busy { measure, value, limit } => {
                let what = match measure {
                    Measure::MeanSm => "mean SM activity",
                    Measure::RiskSm => "SM risk score",
                    Measure::ExpectedWithTask => "expected SM demand with this task",
                };
                write!(f, "{what} {value:.2} with a limit of {limit:.2}")
            }
        }
    }
}

/// One GPU, as it is or as it is imagined, in front of one task.
pub(crate) struct Case<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) state: &'a GpuState,
    pub(crate) now: Time,
    pub(crate) demand: &'a Demand,
}

type Rule = fn(&Case<'_>, &GpuState) -> Option<Refusal>;

/// How many of the first rules ask whether the GPU can be used at all.
const SERVICE_RULES: usize = 2;

/// Cheap rules first.
const RULES: [Rule; 15] = [
    presence,
    service,
    kind,
    pool,
    kept_for_users,
    other_sharing,
    reservation,
    lone_holder,
    emptiness,
    settling,
    crowd,
    mps_clients,
    same_user,
    memory,
    utilization,
];

impl Case<'_> {
    /// The first rule that says no.
    pub(crate) fn refusal(&self) -> Option<Refusal> {
        RULES.iter().find_map(|rule| rule(self, self.state))
    }

    /// Every rule that says no. Of a GPU that cannot be used, nothing else is said.
    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let rules = if self.state.is_out() { &RULES[..SERVICE_RULES] } else { &RULES[..] };
        rules.iter().filter_map(|rule| rule(self, self.state)).collect()
    }
}

fn presence(_: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    gpu.lost.then_some(Refusal::Away)
}

fn service(_: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    gpu.drained.then_some(Refusal::Drained)
}

fn kind(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let models = case.demand.models?;
    (!models.contains(gpu.model)).then_some(Refusal::Kind)
}

fn reservation(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let Reservation { reserved_for, until } = gpu.reserved?;
    // Where it is not known when the GPU will be free, no task is known to be gone by then.
    let in_time = |span| until != Time::NEVER && case.now + span <= until;
    let is_gone_by_then = case.demand.run_time.is_some_and(in_time);
    (reserved_for != case.demand.task && !is_gone_by_then)
        .then_some(Refusal::Reserved { reserved_for })
}

fn lone_holder(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let holder = gpu.residents.iter().find(|booking| booking.alone)?;
    let until_settled =
        case.policy.contract.is_some() && holder.basis == Basis::Unknown && !holder.settled;
    Some(Refusal::HeldAlone { holder: holder.task, until_settled })
}

fn emptiness(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let tasks = gpu.residents.len();
    match case.demand.idle_only && !gpu.is_idle() {
        true if tasks > 0 => Some(Refusal::Occupied { tasks }),
        true if !gpu.is_out() => Some(Refusal::Foreign { used: gpu.foreign }),
        _ => None,
    }
}

fn settling(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let left = gpu.busy_until.since(case.now);
    (left > Millis::ZERO).then_some(Refusal::Settling { left })
}

fn crowd(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let limit = case.policy.max_tasks?;
    (gpu.residents.len() >= limit as usize).then_some(Refusal::Crowded { limit })
}

fn mps_clients(_: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    if gpu.share != Share::Mps {
        return None;
    }
    let Clients { beside, limit } = gpu.clients;
    let clients = (gpu.residents.len() as u32).saturating_add(beside);
    (clients >= limit).then_some(Refusal::MpsClients { clients, limit })
}

fn same_user(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    if !case.policy.same_user {
        return None;
    }
    let other = gpu.residents.iter().find(|booking| booking.user != case.demand.user)?;
    Some(Refusal::OtherUser { user: other.user })
}

fn memory(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    let Demand { need, floor, idle_only, blind, .. } = *case.demand;
    let (need, available) = match (blind, idle_only) {
        (true, _) => (floor, gpu.usable()),
        // A task that has a GPU to itself can use all of it, whatever is held back from others.
        (false, true) => (need, gpu.usable()),
        (false, false) if case.demand.borrows => (need, gpu.available(case.policy)),
        (false, false) => (need, gpu.available_for_good(case.policy)),
    };
    let partitioned = gpu.is_partitioned();
    if partitioned && gpu.available(case.policy) == Bytes::ZERO {
        // However little a task needs, it needs an instance.
        return Some(Refusal::NoInstance { need, largest: Bytes::ZERO });
    }
    if need <= available {
        return None;
    }
    if partitioned {
        // A task that needs the whole board gets the largest instance of an empty one.
        let whole_board = gpu.slices().is_empty() && need <= gpu.capacity;
        return (!whole_board).then_some(Refusal::NoInstance { need, largest: available });
    }
    Some(Refusal::Memory { need, available })
}

fn utilization(case: &Case<'_>, gpu: &GpuState) -> Option<Refusal> {
    if case.demand.blind || case.demand.idle_only {
        return None;
    }
    let busy = |measure, value: f64, limit: f64| Some(Refusal::Busy { measure, value, limit });
    match case.policy.gate {
        Gate::Open => None,
        Gate::TumblingMean { limit, window } => {
            let mean = tumbling_mean(gpu.window.as_ref()?, window, case.now);
            if mean > limit.get() { busy(Measure::MeanSm, mean, limit.get()) } else { None }
        }
        Gate::Risk { sm: limit, .. } => {
            let score = hot_score(&case.policy.gate, gpu.window.as_ref()?, case.now)?;
            busy(Measure::RiskSm, score.get(), limit.get())
        }
        Gate::Expected { .. } if gpu.is_idle() => None,
        Gate::Expected { limit } => {
            let expected = gpu.demand() + case.demand.load;
            if expected > limit { busy(Measure::ExpectedWithTask, expected, limit) } else { None }
        }
    }
}
