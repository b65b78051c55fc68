//! Holding a task to the memory that it was promised.
//!
//! There are several ways, from hardware to none at all. Which of them hold is declared for every task, read back from
//! the part that is to enforce it, and said aloud when it is none.

mod dmem;
mod framework;
mod watchdog;

pub use dmem::{Dmem, DmemError, Region};
pub use framework::{Cap, cap};
pub use watchdog::{Verdict, Watchdog};

use crate::mps::ClientLimits;
use coloc_model::{Bytes, Framework, Share, TaskId};
use serde::Serialize;
use std::fmt;

/// A way to hold a task to its promise, strongest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// A MIG instance has no more memory than it has.
    MigInstance,
    /// The kernel's device memory controller: `dmem.max` of the task's cgroup.
    Dmem,
    /// The MPS server refuses a client's allocation beyond its pinned memory limit.
    MpsPinnedLimit,
    /// The client itself asks MPS for that limit, by its environment. A task that takes the variable away has more.
    MpsEnvironment,
    /// The framework's own allocator stops. It honours this; nothing makes it.
    FrameworkCap,
    /// coloc ends a task that it sees above its promise. Others may have run out of memory by then.
    Watchdog,
    /// Nothing.
    None,
}

impl Rung {
    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Rung::MigInstance => "mig_instance",
            Rung::Dmem => "dmem",
            Rung::MpsPinnedLimit => "mps_pinned_limit",
            Rung::MpsEnvironment => "mps_environment",
            Rung::FrameworkCap => "framework_cap",
            Rung::Watchdog => "watchdog",
            Rung::None => "none",
        }
    }

    /// Whether an allocation beyond the limit fails, whatever the task does.
    pub const fn is_hard(self) -> bool {
        matches!(self, Rung::MigInstance | Rung::Dmem | Rung::MpsPinnedLimit)
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a task was promised, and how it runs.
#[derive(Clone, PartialEq, Debug)]
pub struct Promise {
    /// The task.
    pub task: TaskId,
    /// Memory on each of its GPUs; `None` if it was promised none in particular.
    pub memory: Option<Bytes>,
    /// Its processes that use a GPU.
    pub processes: u32,
    /// How it shares.
    pub share: Share,
    /// Memory of its MIG instance.
    pub instance: Option<Bytes>,
    /// The framework that it says it uses.
    pub framework: Option<Framework>,
    /// Memory of the whole device.
    pub device: Bytes,
}

/// What this machine can enforce.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Facilities {
    /// The kernel and the driver account device memory by cgroup.
    pub dmem: bool,
    /// MPS can be used.
    pub mps: bool,
    /// What the task's MPS server refuses to give any client, as it was read back.
    #[serde(skip)]
    pub mps_server: Option<Bytes>,
    /// A monitor watches by process.
    pub watchdog: bool,
}

/// One rung that applies to a task.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Hold {
    /// The rung.
    pub rung: Rung,
    /// The memory that it allows, for the whole task on one GPU.
    pub limit: Bytes,
    /// What to know about it.
    pub note: String,
}

/// Everything that holds a task, strongest first.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Enforcement {
    /// The rungs; empty means that nothing does.
    pub holds: Vec<Hold>,
}

impl Enforcement {
    /// The strongest rung.
    pub fn strongest(&self) -> Rung {
        self.holds.first().map_or(Rung::None, |hold| hold.rung)
    }

    /// In words, for a user who asks about a task.
    pub fn says(&self) -> String {
        match self.holds.first() {
            Some(Hold { rung, limit, note }) if note.is_empty() => format!("{rung}: {limit}"),
            Some(Hold { rung, limit, note }) => format!("{rung}: {limit}, {note}"),
            None => "none: nothing keeps this task from taking more memory than it was promised"
                .to_owned(),
        }
    }
}

/// Which rungs hold a task on a machine.
pub fn declare(promise: &Promise, facilities: &Facilities) -> Enforcement {
    let mut holds = Vec::new();
    let hold = |rung, limit, note: String| Hold { rung, limit, note };
    if let Some(instance) = promise.instance {
        holds.push(hold(Rung::MigInstance, instance, String::new()));
    }
    let Some(memory) = promise.memory else { return Enforcement { holds } };
    // The controller does not see into MIG instances.
    if facilities.dmem && promise.instance.is_none() {
        holds.push(hold(Rung::Dmem, memory, String::new()));
    }
    if facilities.mps && promise.share == Share::Mps {
        holds.push(hold_by_mps(memory, promise.processes, facilities.mps_server));
    }
    if let Some(framework) = promise.framework
        && let Cap::Environment { note, .. } =
            cap(framework, memory, promise.device, promise.processes)
    {
        holds.push(hold(Rung::FrameworkCap, memory, note.to_owned()));
    }
    if facilities.watchdog {
        let note = "it is ended after it was seen above its promise";
        holds.push(hold(Rung::Watchdog, memory, note.to_owned()));
    }
    Enforcement { holds }
}

/// How MPS holds a task to `memory`, if its server refuses any client more than `server`. All of a user's tasks on a GPU
/// have one server, whose limit is that of the largest of them; the smaller ones are held by their own environment.
pub fn hold_by_mps(memory: Bytes, processes: u32, server: Option<Bytes>) -> Hold {
    let limits = ClientLimits { threads: None, memory: Some(memory), processes };
    let each = limits.memory_of_each().unwrap_or(memory);
    let whom = match processes {
        2.. => format!("{each} for each of its {processes} processes"),
        _ => "for each of its processes".to_owned(),
    };
    let kept = server.is_some_and(|server| server.0 <= each.0.next_multiple_of(1 << 20));
    let variable = "as long as it keeps CUDA_MPS_PINNED_DEVICE_MEM_LIMIT";
    let (rung, note) = match server {
        Some(_) if kept => (Rung::MpsPinnedLimit, whom),
        Some(server) => {
            (Rung::MpsEnvironment, format!("{whom} {variable}; its server refuses above {server}"))
        }
        None => (Rung::MpsEnvironment, format!("{whom} {variable}; its server has no limit")),
    };
    Hold { rung, limit: memory, note }
}

/// What was set, against what the enforcing part says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ReadBack {
    /// The rung.
    pub rung: Rung,
    /// The limit that was set.
    pub set: Bytes,
    /// The limit that is in force; `None` for no limit.
    pub read: Option<Bytes>,
}

impl ReadBack {
    /// The rung holds: the limit in force is the one that was set, within what it is rounded to.
    pub fn holds(&self) -> bool {
        // dmem counts pages, MPS mebibytes.
        self.read.is_some_and(|read| read.0.abs_diff(self.set.0) <= 1 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(share: Share) -> Promise {
        Promise {
            task: TaskId(1),
            memory: Some(Bytes::from_mib(8192)),
            processes: 1,
            share,
            instance: None,
            framework: None,
            device: Bytes::from_mib(40_960),
        }
    }

    const ALL: Facilities = Facilities {
        dmem: true,
        mps: true,
        mps_server: Some(Bytes::from_mib(8192)),
        watchdog: true,
    };

    #[test]
    fn the_strongest_rung_comes_first() {
        let all = declare(&promise(Share::Mps), &ALL);
        let rungs: Vec<Rung> = all.holds.iter().map(|hold| hold.rung).collect();
        assert_eq!(rungs, [Rung::Dmem, Rung::MpsPinnedLimit, Rung::Watchdog]);
        assert!(rungs.is_sorted());
        let instance = Promise { instance: Some(Bytes::from_mib(9856)), ..promise(Share::Mig) };
        assert_eq!(declare(&instance, &ALL).strongest(), Rung::MigInstance);
        let jax = Promise { framework: Some(Framework::Jax), ..promise(Share::Streams) };
        assert_eq!(declare(&jax, &Facilities::default()).strongest(), Rung::FrameworkCap);
    }

    #[test]
    fn no_enforcement_is_said_aloud() {
        let bare = declare(&promise(Share::Streams), &Facilities::default());
        assert_eq!(bare.strongest(), Rung::None);
        insta::assert_snapshot!(bare.says(), @"none: nothing keeps this task from taking more memory than it was promised");
        // An MPS limit does not hold who is no client.
        let streams =
            declare(&promise(Share::Streams), &Facilities { mps: true, ..Facilities::default() });
        assert_eq!(streams.strongest(), Rung::None);
    }

    #[test]
    fn a_limit_by_process_is_divided_and_says_so() {
        let four = Promise { processes: 4, ..promise(Share::Mps) };
        let server = Some(Bytes::from_mib(2048));
        let mps = Facilities { mps: true, mps_server: server, ..Facilities::default() };
        insta::assert_snapshot!(declare(&four, &mps).says(), @"mps_pinned_limit: 8.0 GiB, 2.0 GiB for each of its 4 processes");
    }

    #[test]
    fn what_only_the_environment_holds_is_said_to_be_held_by_that() {
        let of = |mps_server| {
            let mps = Facilities { mps: true, mps_server, ..Facilities::default() };
            declare(&promise(Share::Mps), &mps)
        };
        let server = of(Some(Bytes::from_mib(8192)));
        assert!(server.strongest() == Rung::MpsPinnedLimit && server.strongest().is_hard());
        insta::assert_snapshot!(server.says(), @"mps_pinned_limit: 8.0 GiB, for each of its processes");
        let neighbour = of(Some(Bytes::from_mib(20_480)));
        assert!(neighbour.strongest() == Rung::MpsEnvironment && !neighbour.strongest().is_hard());
        insta::assert_snapshot!(neighbour.says(), @"mps_environment: 8.0 GiB, for each of its processes as long as it keeps CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; its server refuses above 20.0 GiB");
        insta::assert_snapshot!(of(None).says(), @"mps_environment: 8.0 GiB, for each of its processes as long as it keeps CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; its server has no limit");
    }

    #[test]
    fn what_does_not_read_back_does_not_hold() {
        let set = Bytes::from_mib(8192);
        let read_back = |read| ReadBack { rung: Rung::Dmem, set, read }.holds();
        assert!(read_back(Some(set)) && read_back(Some(Bytes(set.0 - 4096))));
        assert!(!read_back(None) && !read_back(Some(Bytes::from_mib(40_960))));
    }
}
