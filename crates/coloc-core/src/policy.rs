//! Everything that can be chosen about scheduling. No choice is made here: without a preset nothing is
//! implicit.

use crate::service::Service;
use coloc_model::{Bytes, Fraction, Millis, Share};
use serde::{Deserialize, Serialize};

/// Which waiting task is considered next, and what happens when it does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Queue {
    /// In order of arrival; the head blocks the rest.
    Fifo,
    /// In order of arrival; tasks that do not fit are skipped.
    BestEffort,
    /// EASY backfilling: later tasks may pass if the head's promised start does not move.
    Backfill,
    /// The shortest task first; running tasks stay.
    Sjf,
    /// The least remaining time first, preemptive.
    Srtf,
    /// The least remaining time x GPUs first, preemptive.
    Srsf,
    /// 2D-LAS: the least attained service first, preemptive.
    Las2d,
    /// 2D-Gittins: the largest Gittins index of attained service first, preemptive.
    Gittins2d,
    /// The user who has had least for its weight first; tasks that do not fit are skipped.
    Fair,
    /// The least expected work first, by what was learned of such tasks; tasks that do not fit are skipped.
    LeastWork,
    /// AlloX: min-cost matching of one-device tasks to devices that differ in speed.
    Allox,
}

impl Queue {
    /// Running tasks have a rank too.
    pub const fn is_ranked(self) -> bool {
        match self {
            Queue::Fifo
            | Queue::BestEffort
            | Queue::Backfill
            | Queue::Fair
            | Queue::LeastWork
            | Queue::Allox => false,
            Queue::Sjf | Queue::Srtf | Queue::Srsf | Queue::Las2d | Queue::Gittins2d => true,
        }
    }
}

/// Which of the GPUs that may take a task gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Any free GPUs, on any nodes.
    Any,
    /// Free GPUs of one node.
    Exclusive,
    /// The next GPU in turn.
    RoundRobin,
    /// The first that fits.
    FirstFit,
    /// The one with the least memory left over.
    BestFit,
    /// MAGM: the one with the most available memory.
    Magm,
    /// LUG: the least utilized one.
    Lug,
    /// The one where incumbents and newcomer are predicted to slow down least.
    LeastInterference,
    /// As few nodes as possible, on whichever leaves the least room.
    Consolidate,
}

/// Which of a user's tasks goes first under [`Queue::Fair`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FairOrder {
    /// The oldest.
    Arrival,
    /// The shortest, as declared.
    Shortest,
}

/// Which gangs wait for as few nodes as possible, where the placement is [`Place::Consolidate`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pack {
    /// All.
    Always,
    /// None: they take what is free, on as few nodes as that allows.
    Never,
    /// Tiresias: gangs that fit on one node, and of the others gangs whose largest tensor is a larger part
    /// of the model than this (PACKLIMIT), or whose model is not known.
    Skew(f64),
}

/// What is known of a task's memory before it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// There is an estimate; this much is added to it.
    Estimated {
        /// Added to the estimate's bound.
        margin: Bytes,
    },
    /// Nothing is known ("only recovery"): a GPU must have this much free.
    Unknown {
        /// What must be free.
        min_free: Bytes,
    },
}

/// Where the scheduler reads how much memory a GPU has left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryBasis {
    /// What was promised to the tasks on it, seen or not.
    Ledger,
    /// What the device reports as free right now, less a reserve. Memory that a young task has yet to
    /// allocate is counted as free: CARMA's way.
    Reported {
        /// Held back.
        reserve: Bytes,
    },
}

/// When a busy GPU takes no more tasks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Never.
    Open,
    /// CARMA's first form: mean SM activity of the last full window above the limit. The windows do not
    /// overlap, so the value may be a window old.
    TumblingMean {
        /// The most mean SM activity.
        limit: Fraction,
        /// Length of a window.
        window: Millis,
    },
    /// CARMA's second form: risk scores of the last 30 seconds, SM at or above its limit and occupancy or
    /// DRAM at or above theirs.
    Risk {
        /// SM activity.
        sm: Fraction,
        /// SM occupancy.
        occupancy: Fraction,
        /// DRAM activity.
        dram: Fraction,
    },
    /// SM demand on the GPU would exceed `limit` with the newcomer, in devices: what is expected of its tasks, or what the
    /// device is seen to do if that is more.
    Expected {
        /// The most demand with the newcomer.
        limit: f64,
    },
}

/// The least time between two decisions.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Pace {
    /// After a launch on an idle GPU.
    pub idle: Millis,
    /// After a launch beside others.
    pub shared: Millis,
}

/// What is done about a task that ran out of memory.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnOom {
    /// Nothing: it ends.
    Fail,
    /// Run it again on idle GPUs.
    Exclusive,
    /// Remember what it wanted, add this share, and give it a GPU with that much room; alone only as the
    /// last resort.
    Grow {
        /// Added to what the task wanted when it died.
        margin: Fraction,
    },
}

/// The recovery queue's rules.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Recovery {
    /// What to do.
    pub on_oom: OnOom,
    /// How often one task may be brought back.
    pub retries: u32,
    /// While a recovered task waits, nothing else is started.
    pub stops_others: bool,
}

/// The memory contract: what is promised to a task stays promised until there is evidence that it is not needed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Contract {
    /// Tasks of which nothing is known share GPUs from the start: CARMA's way.
    #[serde(default)]
    pub share_blind: bool,
    /// MIG: memory of the instance for a task of which nothing is known; without it, the largest instance.
    #[serde(default)]
    pub unknown_instance: Option<Bytes>,
}

/// When tasks that can save their work make room for shorter ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Preemption {
    /// The least time between two looks at what runs.
    pub every: Millis,
    /// Before so many runs have ended, too little is known of how long tasks take.
    pub after_ends: u64,
    /// A running task counts as this part of its rank, so that tasks do not take turns.
    pub stays: f64,
}

/// A complete scheduling policy.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Policy {
    /// Order of the main queue.
    pub queue: Queue,
    /// Choice among GPUs.
    pub place: Place,
    /// Which gangs wait for few nodes.
    pub pack: Pack,
    /// How tasks share a GPU.
    pub share: Share,
    /// What is known of memory.
    pub knowledge: Knowledge,
    /// How available memory is read.
    pub memory: MemoryBasis,
    /// When a GPU counts as full.
    pub gate: Gate,
    /// A GPU takes no further task for this long after a launch.
    pub settle: Option<Millis>,
    /// The most tasks on one GPU.
    pub max_tasks: Option<u32>,
    /// Only one user's tasks on a GPU at a time, as an MPS server requires.
    pub same_user: bool,
    /// Enough idle GPUs are taken before anything else is considered, without looking at memory.
    pub idle_first: bool,
    /// How fast decisions may follow each other.
    pub pace: Pace,
    /// Out-of-memory recovery.
    pub recovery: Recovery,
    /// How long a task may be passed over before GPUs are kept free for it. Under `overtaking` this is for tasks that ran
    /// out of memory alone.
    #[serde(alias = "patience")]
    pub starvation_limit: Option<Millis>,
    /// Least work first: a task that has waited so long counts as half its work.
    #[serde(default)]
    pub ageing: Option<Millis>,
    /// Once later tasks were started that do this many times the work of the oldest one, GPUs are reserved for that.
    #[serde(default)]
    pub overtaking: Option<f64>,
    /// Least work first: tasks that can save their work are preempted for shorter ones.
    #[serde(default)]
    pub preemption: Option<Preemption>,
    /// Watch tasks settle: give back memory that was booked and never used, and learn how busy each kind
    /// of task keeps a GPU.
    pub learn: bool,
    /// How attained service becomes priority.
    pub service: Service,
    /// Fair: how fast past usage is forgotten.
    pub half_life: Millis,
    /// Fair: which of a user's tasks goes first.
    pub fair_order: FairOrder,
    /// AlloX: speeds are learned from the runs that end, not told.
    pub learn_speeds: bool,
    /// AlloX: the share of users, least served first, whose tasks are matched.
    pub alpha: f64,
    /// The memory contract; without it a booking is an estimate, corrected after a minute where the policy learns.
    #[serde(default)]
    pub contract: Option<Contract>,
}

/// A week: Slurm's default.
const HALF_LIFE: Millis = Millis::from_secs(7 * 86_400);

impl Policy {
    /// The policy that `--queue --place --share` spell out, with nothing implicit.
    pub const fn plain(queue: Queue, place: Place, share: Share) -> Self {
        Policy {
            queue,
            place,
            pack: Pack::Always,
            share,
            knowledge: Knowledge::Estimated { margin: Bytes::ZERO },
            memory: MemoryBasis::Ledger,
            gate: Gate::Open,
            settle: None,
            max_tasks: None,
            same_user: false,
            idle_first: false,
            pace: Pace { idle: Millis::ZERO, shared: Millis::ZERO },
            recovery: Recovery {
                on_oom: OnOom::Grow { margin: Fraction::new(0.1) },
                retries: 3,
                stops_others: false,
            },
            starvation_limit: None,
            ageing: None,
            overtaking: None,
            preemption: None,
            learn: false,
            service: Service::PLAIN,
            half_life: HALF_LIFE,
            fair_order: FairOrder::Arrival,
            learn_speeds: false,
            alpha: 1.0,
            contract: None,
        }
    }

    /// A gang may be given GPUs of several nodes.
    pub fn spans_nodes(&self) -> bool {
        matches!(self.place, Place::Any | Place::Consolidate)
    }

    /// Occupied GPUs are never considered.
    pub fn needs_idle(&self) -> bool {
        self.share == Share::Exclusive || matches!(self.place, Place::Exclusive | Place::Any)
    }

    /// Whole GPUs on as few nodes as possible.
    pub(crate) fn packs_whole_gpus(&self) -> bool {
        self.place == Place::Consolidate && self.needs_idle()
    }

    /// How fast usage is forgotten, where it is asked for.
    pub(crate) fn half_life(&self) -> Option<Millis> {
        (self.queue == Queue::Fair).then_some(self.half_life)
    }

    /// GPUs may be kept free for a task that starves.
    pub(crate) fn reserves(&self) -> bool {
        self.starvation_limit.is_some() || self.overtaking.is_some() || self.contract.is_some()
    }

    /// A GPU may become eligible by the mere passing of time.
    pub fn time_matters(&self) -> bool {
        self.settle.is_some() || matches!(self.gate, Gate::TumblingMean { .. } | Gate::Risk { .. })
    }
}
