//! Policy flags: a preset sets defaults, explicit flags win, and without either nothing is implicit.

use super::accounts::AccountArgs;
use super::service::ServiceArgs;
use super::tuning::{Switch, TuningArgs};
use clap::{Args, ValueEnum};
use coloc_core::policy::{
    Contract, FairOrder, Gate, Knowledge, OnOom, Pack, Place, Policy, Queue, Recovery,
};
use coloc_core::preset::{MemoryKnowledge, Preset};
use coloc_model::{Bytes, Millis, Share};
use coloc_sim::Estimator;

flag_values!(
    /// Order of the queue.
    QueueFlag => Queue {
        /// In order of arrival; the head blocks the rest
        Fifo => Queue::Fifo,
        /// Tasks that do not fit are skipped
        BestEffort => Queue::BestEffort,
        /// EASY: later tasks pass if the head's promised start does not move
        Backfill => Queue::Backfill,
        /// Shortest task first, by its declared run time
        Sjf => Queue::Sjf,
        /// Shortest remaining time first, preemptive
        Srtf => Queue::Srtf,
        /// Shortest remaining time x GPUs first, preemptive
        Srsf => Queue::Srsf,
        /// Tiresias: least attained GPU time first, preemptive
        Las2d => Queue::Las2d,
        /// Tiresias: largest Gittins index of attained GPU time first, preemptive
        Gittins2d => Queue::Gittins2d,
        /// The user who has had the least GPU time for its weight first
        Fair => Queue::Fair,
        /// Least expected work first, by what was learned of such tasks; users who hold less go first
        LeastWork => Queue::LeastWork,
        /// AlloX: one-device tasks matched to devices of different speed
        Allox => Queue::Allox,
    }
);

flag_values!(
    /// Choice among GPUs.
    PlaceFlag => Place {
        /// Any free GPUs, on any nodes
        Any => Place::Any,
        /// Free GPUs of one node
        Exclusive => Place::Exclusive,
        /// The next in turn
        RoundRobin => Place::RoundRobin,
        /// The first that fits
        FirstFit => Place::FirstFit,
        /// Least memory left over
        BestFit => Place::BestFit,
        /// Most available GPU memory
        Magm => Place::Magm,
        /// Least utilized GPU
        Lug => Place::Lug,
        /// Lowest predicted slowdown of incumbents and newcomer together
        LeastInterference => Place::LeastInterference,
        /// As few nodes as possible, where the least room is left
        Consolidate => Place::Consolidate,
    }
);

flag_values!(
    /// Which of a user's tasks goes first under fair.
    FairOrderFlag => FairOrder {
        /// The oldest
        Arrival => FairOrder::Arrival,
        /// The shortest, by its declared run time
        Shortest => FairOrder::Shortest,
    }
);

flag_values!(
    /// How tasks share a GPU.
    ShareFlag => Share {
        /// One task per GPU, whatever the placement says
        Exclusive => Share::Exclusive,
        /// Plain processes, time-sliced by the driver
        Streams => Share::Streams,
        /// NVIDIA Multi-Process Service
        Mps => Share::Mps,
        /// Multi-Instance GPU partitions
        Mig => Share::Mig,
    }
);

flag_values!(
    /// What the scheduler is told of memory.
    EstimatorFlag => Estimator {
        /// The measured memory of each task
        Oracle => Estimator::Oracle,
        /// Nothing: only recovery
        None => Estimator::None,
        /// What was estimated of each task when it was submitted, as its trace says
        Recorded => Estimator::Recorded,
        /// Our own estimate, from the graphs of catalogued tasks
        Replay => Estimator::Replay,
        /// Published numbers of Horus
        Horus => Estimator::Horus,
        /// Published numbers of FakeTensor
        #[value(name = "faketensor")]
        FakeTensor => Estimator::FakeTensor,
        /// Published numbers of GPUMemNet
        #[value(name = "gpumemnet")]
        GpuMemNet => Estimator::GpuMemNet,
    }
);

flag_values!(
    /// A named policy.
    PresetFlag => Preset {
        /// CARMA as first published
        #[value(name = "carma-v1")]
        CarmaV1 => Preset::CarmaV1,
        /// CARMA's second version
        #[value(name = "carma-v2")]
        CarmaV2 => Preset::CarmaV2,
        /// Tiresias by its paper
        Tiresias => Preset::Tiresias,
        /// Tiresias by its published simulator, to the letter
        TiresiasSim => Preset::TiresiasSim,
        /// AlloX on a mixed fleet
        Allox => Preset::Allox,
        /// Ours
        Coloc => Preset::Coloc,
    }
);

/// What to do about a task that ran out of memory.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum OnOomFlag {
    /// Try again where what it wanted fits; alone as the last resort
    Grow,
    /// Try again on idle GPUs
    Exclusive,
    /// Let it end
    Fail,
}

/// Everything about the policy.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// A named policy; the flags below override it [default: none, nothing is implicit; of the daemon: coloc]
    #[arg(long, value_enum)]
    pub(crate) preset: Option<PresetFlag>,
    /// Order of the queue [default: fifo; of preset coloc: least-work]
    #[arg(long, value_enum, hide_possible_values = false)]
    pub(crate) queue: Option<QueueFlag>,
    /// Choice among the GPUs that may take a task [default: exclusive; of preset coloc: least-interference]
    #[arg(long, value_enum)]
    pub(crate) place: Option<PlaceFlag>,
    /// How tasks share a GPU [default: exclusive; of preset coloc: mps]
    #[arg(long, value_enum)]
    pub(crate) share: Option<ShareFlag>,
    /// What the scheduler is told of memory [default: oracle; gpumemnet with carma-v1 and carma-v2]
    #[arg(long, value_enum)]
    pub(crate) estimator: Option<EstimatorFlag>,
    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
    #[command(flatten)]
    pub(crate) service: ServiceArgs,
    #[command(flatten)]
    pub(crate) accounts: AccountArgs,
}

pub(super) fn pack(text: &str) -> Result<Pack, String> {
    match text {
        "always" => Ok(Pack::Always),
        "never" => Ok(Pack::Never),
        limit => match limit.parse() {
            Ok(limit) if (0.0..=1.0).contains(&limit) => Ok(Pack::Skew(limit)),
            _ => Err("expected always, never or a part from 0 to 1, such as 0.3".to_owned()),
        },
    }
}

/// Without knowledge of memory a GPU must have this much free: CARMA's figure.
const DEFAULT_MIN_FREE: Bytes = Bytes::from_mib(5120);

impl PolicyArgs {
    /// The estimator that was asked for or that the preset implies.
    pub(crate) fn estimator(&self) -> Estimator {
        match (self.estimator, self.preset) {
            (Some(estimator), _) => estimator.into(),
            (None, Some(PresetFlag::CarmaV1 | PresetFlag::CarmaV2)) => Estimator::GpuMemNet,
            (None, _) => Estimator::Oracle,
        }
    }

    /// The policy that the flags spell out.
    pub(crate) fn policy(&self) -> Policy {
        let tuning = &self.tuning;
        let known = self.estimator().knowledge();
        let mut policy = match (self.preset, self.place) {
            (Some(preset), Some(place)) => Preset::from(preset).with_place(known, place.into()),
            (Some(preset), None) => Preset::from(preset).policy(known),
            (None, place) => {
                Policy { place: place.map_or(Place::Exclusive, Place::from), ..plain(known) }
            }
        };
        if let Some(queue) = self.queue {
            policy.queue = queue.into();
        }
        policy.pack = tuning.pack.unwrap_or(policy.pack);
        if let Some(share) = self.share {
            policy.share = share.into();
        }
        match &mut policy.knowledge {
            Knowledge::Estimated { margin } => *margin = tuning.margin.unwrap_or(*margin),
            Knowledge::Unknown { min_free } => *min_free = tuning.min_free.unwrap_or(*min_free),
        }
        policy.contract = tuning.contract(policy.contract);
        if let Some(seconds) = tuning.settle {
            policy.settle = Some(Millis::from_secs(seconds));
        }
        if let Some(limit) = tuning.sm_limit {
            policy.gate = Gate::Expected { limit };
        }
        if let Some(minutes) = tuning.starvation_limit {
            policy.starvation_limit = Some(Millis::from_secs(60 * minutes));
            policy.overtaking = None;
        }
        policy.max_tasks = tuning.max_tasks.or(policy.max_tasks);
        policy.same_user |= tuning.same_user;
        policy.learn_speeds |= tuning.learn_speeds;
        if let Some(order) = self.accounts.fair_order {
            policy.fair_order = order.into();
        }
        policy.recovery = tuning.recovery(policy.recovery);
        policy.alpha = tuning.alpha.unwrap_or(policy.alpha);
        policy.service = self.service.over(policy.service);
        policy.half_life = self.accounts.half_life.unwrap_or(policy.half_life);
        policy
    }
}

impl TuningArgs {
    fn contract(&self, base: Option<Contract>) -> Option<Contract> {
        let contract = match self.contract {
            Some(Switch::On) => Some(base.unwrap_or_default()),
            Some(Switch::Off) => None,
            None => base,
        }?;
        Some(Contract {
            share_blind: contract.share_blind || self.share_blind,
            unknown_instance: self.unknown_instance.or(contract.unknown_instance),
        })
    }

    fn recovery(&self, base: Recovery) -> Recovery {
        let plain = plain(MemoryKnowledge::Oracle).recovery;
        let on_oom = match self.on_oom {
            None => base.on_oom,
            Some(OnOomFlag::Grow) => plain.on_oom,
            Some(OnOomFlag::Exclusive) => OnOom::Exclusive,
            Some(OnOomFlag::Fail) => OnOom::Fail,
        };
        Recovery { on_oom, retries: self.retries.unwrap_or(base.retries), ..base }
    }
}

fn plain(known: MemoryKnowledge) -> Policy {
    let knowledge = match known {
        MemoryKnowledge::None => Knowledge::Unknown { min_free: DEFAULT_MIN_FREE },
        _ => Knowledge::Estimated { margin: Bytes::ZERO },
    };
    Policy { knowledge, ..Policy::plain(Queue::Fifo, Place::Exclusive, Share::Exclusive) }
}

/// Reads a share: more than nothing, and at most all.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|&share| share > 0.0 && share <= 1.0);
    share.ok_or_else(|| "a share is more than 0 and at most 1".to_owned())
}

/// Reads a number above zero.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|&number: &f64| number > 0.0 && number.is_finite());
    number.ok_or_else(|| "a number above 0 is needed".to_owned())
}
