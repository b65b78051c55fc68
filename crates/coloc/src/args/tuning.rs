//! What a policy has beside its queue, placement and way to share: the same for one policy or for several.

use super::policy::{OnOomFlag, pack, positive, share};
use clap::{Args, ValueEnum};
use coloc_core::policy::Pack;
use coloc_model::Bytes;

/// On or off.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(crate) enum Switch {
    /// It applies
    On,
    /// It does not
    Off,
}

/// Limits, margins and knobs.
#[derive(Args, Clone, Default, Debug)]
pub(crate) struct TuningArgs {
    /// With --place consolidate, which gangs wait for as few nodes as possible: always, never, or those whose largest tensor is more than this part of the model, such as 0.3 [default: always]
    #[arg(long, value_name = "WHEN", value_parser = pack)]
    pub(crate) pack: Option<Pack>,
    /// Added to each estimate, such as 2G
    #[arg(long, value_name = "MEMORY")]
    pub(crate) margin: Option<Bytes>,
    /// With --estimator none: what must be free on a GPU [default: 5G]
    #[arg(long, value_name = "MEMORY")]
    pub(crate) min_free: Option<Bytes>,
    /// Whether what is promised to a task stays promised until it was seen to train at a plateau of memory [default: off; of preset coloc: on]
    #[arg(long, value_enum, value_name = "WHETHER")]
    pub(crate) contract: Option<Switch>,
    /// With the contract: tasks of which nothing is known share GPUs from the start, as in CARMA
    #[arg(long)]
    pub(crate) share_blind: bool,
    /// With the contract and --share mig: memory of the instance for a task of which nothing is known [default: the largest]
    #[arg(long, value_name = "MEMORY")]
    pub(crate) unknown_instance: Option<Bytes>,
    /// Seconds for which a GPU takes no further task after a launch
    #[arg(long, value_name = "SECONDS")]
    pub(crate) settle: Option<u64>,
    /// Most tasks on one GPU
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    pub(crate) max_tasks: Option<u32>,
    /// Most expected SM demand on one GPU, 1 being a full device [default: no limit; of preset coloc: 1.5]
    #[arg(long, value_parser = positive, value_name = "DEMAND")]
    pub(crate) sm_limit: Option<f64>,
    /// Minutes for which a task may be passed over before GPUs are kept free for it [default: for ever; of preset coloc: until later tasks that do 20 times its work were started]
    #[arg(long, alias = "patience", value_name = "MINUTES")]
    pub(crate) starvation_limit: Option<u64>,
    /// One user's tasks only on a GPU at a time, as an MPS server requires
    #[arg(long)]
    pub(crate) same_user: bool,
    /// What to do about a task that ran out of memory [default: grow]
    #[arg(long, value_enum)]
    pub(crate) on_oom: Option<OnOomFlag>,
    /// How often a task that ran out of memory is brought back [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) retries: Option<u32>,
    /// Learn from the runs that end how fast allox's tasks are on each kind of device, instead of being told
    #[arg(long)]
    pub(crate) learn_speeds: bool,
    /// Share of users, least served first, whose tasks allox matches [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) alpha: Option<f64>,
}
