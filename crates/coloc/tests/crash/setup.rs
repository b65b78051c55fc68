//! The configurations that share the kills, and what the environment can choose among them.

use std::collections::BTreeSet;

/// Seconds of the scheduler's that pass in one of the world's.
pub(super) const SCALE: u64 = 40;

/// How a daemon is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    policy: &'static [&'static str],
    fleet: &'static str,
    /// Tasks have control groups where the machine has some.
    pub(super) groups: bool,
    /// The queue takes GPUs away from running tasks.
    pub(super) preempts: bool,
    pub(super) share: Share,
}

/// How tasks share a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    Exclusive,
    Streams,
    Mps,
    Mig,
}

const EXCLUSIVE: &[&str] = &["--share", "exclusive", "--queue", "best-effort"];
const SRTF: &[&str] = &["--share", "exclusive", "--queue", "srtf"];
const STREAMS: &[&str] = &["--share", "streams", "--queue", "best-effort", "--place", "magm"];
const LAS: &[&str] = &[
    "--share",
    "streams",
    "--queue",
    "las2d",
    "--place",
    "magm",
    "--quantum",
    "4",
    "--thresholds",
    "12",
    "--max-tasks",
    "2",
];
const MPS: &[&str] = &["--share", "mps", "--queue", "best-effort", "--place", "magm"];
const MPS_SRTF: &[&str] =
    &["--share", "mps", "--queue", "srtf", "--place", "magm", "--max-tasks", "2"];
const MIG: &[&str] = &["--share", "mig", "--queue", "best-effort"];

/// Every way of sharing, with control groups and without; preemptive queues among them.
pub(super) const SETUPS: [Setup; 8] = [
    Setup::new("exclusive-groups", EXCLUSIVE, true, Share::Exclusive),
    Setup::new("srtf", SRTF, false, Share::Exclusive).preemptive(),
    Setup::new("streams", STREAMS, false, Share::Streams),
    Setup::new("las2d-groups", LAS, true, Share::Streams).preemptive(),
    Setup::new("mps-groups", MPS, true, Share::Mps),
    Setup::new("mps-srtf", MPS_SRTF, false, Share::Mps).preemptive(),
    Setup::new("mig-groups", MIG, true, Share::Mig),
    Setup::new("mig", MIG, false, Share::Mig),
];

impl Setup {
    const fn new(
        name: &'static str,
        policy: &'static [&'static str],
        groups: bool,
        share: Share,
    ) -> Self {
        Setup { name, policy, fleet: "6xA100-40GB", groups, preempts: false, share }
    }

    /// With few GPUs, so that tasks are in each other's way.
    const fn preemptive(self) -> Self {
        Setup { preempts: true, fleet: "2xA100-40GB", ..self }
    }

    /// What the daemon is started with.
    pub(super) fn arguments(&self) -> Vec<String> {
        let scale = SCALE.to_string();
        let common = ["--emulate", self.fleet, "--time-scale", &scale];
        // A look every 100 ms; a kill 0.3 s after the polite request.
        let common = common.iter().chain(&["--period", "4", "--grace", "0.3"]);
        common.chain(self.policy).map(|&word| word.to_owned()).collect()
    }
}

/// What is done to a daemon beside plain submissions; each can be left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Array,
    Dependency,
    Key,
    Cancel,
    Hold,
    Requeue,
    Update,
    Drain,
    Retry,
    Limit,
    Memory,
}

impl Kind {
    const ALL: [(Kind, &'static str); 11] = [
        (Kind::Array, "array"),
        (Kind::Dependency, "dependency"),
        (Kind::Key, "key"),
        (Kind::Cancel, "cancel"),
        (Kind::Hold, "hold"),
        (Kind::Requeue, "requeue"),
        (Kind::Update, "update"),
        (Kind::Drain, "drain"),
        (Kind::Retry, "retry"),
        (Kind::Limit, "limit"),
        (Kind::Memory, "memory"),
    ];
}

/// How long and how hard.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) kills: usize,
    pub(super) setups: Vec<Setup>,
    pub(super) kinds: BTreeSet<Kind>,
}

/// Kills in every test run.
const KILLS: usize = 60;

impl Plan {
    /// What the environment says, with a word for what it says wrong.
    pub(super) fn from_environment() -> Self {
        let said = |name: &str| std::env::var(name).ok().filter(|said| !said.is_empty());
        let number = |name: &str| {
            said(name).map(|text| {
                let hex = text.strip_prefix("0x").map(|digits| u64::from_str_radix(digits, 16));
                hex.unwrap_or_else(|| text.parse()).unwrap_or_else(|_| panic!("{name}={text}"))
            })
        };
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let fresh = || clock.map_or(1, |clock| clock.as_nanos() as u64);
        let setups =
            said("COLOC_CRASH_SETUPS").map_or_else(|| SETUPS.to_vec(), |names| setups(&names));
        let kinds = said("COLOC_CRASH_KINDS").map_or_else(
            || Kind::ALL.iter().map(|(kind, _)| *kind).collect(),
            |names| kinds(&names),
        );
        Plan {
            seed: number("COLOC_CRASH_SEED").unwrap_or_else(fresh),
            kills: number("COLOC_CRASH_KILLS").map_or(KILLS, |kills| kills as usize),
            setups,
            kinds,
        }
    }
}

fn setups(names: &str) -> Vec<Setup> {
    let named = |name: &str| {
        let setup = SETUPS.iter().find(|setup| setup.name == name);
        *setup.unwrap_or_else(|| panic!("COLOC_CRASH_SETUPS: there is no setup {name:?}"))
    };
    names.split(',').map(named).collect()
}

/// `cancel,hold`, or everything but some: `-requeue,-drain`.
fn kinds(names: &str) -> BTreeSet<Kind> {
    let named = |name: &str| {
        let kind = Kind::ALL.iter().find(|(_, known)| *known == name);
        kind.unwrap_or_else(|| panic!("COLOC_CRASH_KINDS: there is no kind {name:?}")).0
    };
    let (without, with): (Vec<&str>, Vec<&str>) =
        names.split(',').filter(|name| *name != "none").partition(|name| name.starts_with('-'));
    let mut kinds: BTreeSet<Kind> = match (with.is_empty(), without.is_empty()) {
        (true, false) => Kind::ALL.iter().map(|(kind, _)| *kind).collect(),
        _ => with.into_iter().map(named).collect(),
    };
    for name in without {
        kinds.remove(&named(&name[1..]));
    }
    kinds
}
