//! The choose stage: in which order GPUs are preferred. A placement is a file with its formula; the
//! search that applies it is shared.

mod best_fit;
mod consolidate;
mod first_fit;
mod least_interference;
mod lug;
mod magm;
mod round_robin;
mod search;

pub(crate) use search::{Question, Search, hopeful};

use crate::demand::Demand;
use crate::gate::gate_load;
use crate::gpus::{Gpus, Summary};
use crate::policy::{Place, Policy};
use coloc_model::{GpuId, Time};
use smallvec::SmallVec;
use std::ops::Range;

/// The GPUs that were found for a task: few, as a rule.
pub(crate) type Gang = SmallVec<[GpuId; 8]>;

/// How good a GPU is; lower is better.
pub(crate) type Cost = u64;

/// Costs of non-negative reals compare like the reals themselves.
fn real_cost(value: f64) -> Cost {
    debug_assert!(value >= 0.0);
    value.to_bits()
}

/// A preference among GPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preference<'a> {
    pub(crate) place: Place,
    /// Where round-robin continues.
    pub(crate) cursor: u32,
    pub(crate) demand: &'a Demand,
}

impl Preference<'_> {
    /// Lower ids are better and nothing else matters.
    pub(crate) fn is_by_position(&self) -> bool {
        matches!(self.place, Place::Any | Place::Exclusive | Place::FirstFit)
    }

    /// The least cost that any of these GPUs, which are summed up below a node of the index, can have.
    pub(crate) fn bound(&self, below: &Summary, ids: Range<u32>, gpus: usize) -> Cost {
        match self.place {
            Place::Any | Place::Exclusive | Place::FirstFit | Place::Consolidate => {
                first_fit::cost(ids.start)
            }
            Place::RoundRobin => round_robin::cost(ids, self.cursor, gpus),
            Place::BestFit => best_fit::cost(below.min_available, self.demand.need),
            Place::Magm => magm::cost(below.max_available),
            Place::Lug => lug::cost(below.min_load),
            Place::LeastInterference => least_interference::bound(below.min_load, self.demand),
        }
    }

    /// A cost as a number that people can read, of which the lowest is the best: predicted harm, load, bytes that stay free
    /// (negative where most of them win), or the place in the order.
    pub(crate) fn score(&self, cost: Cost) -> f64 {
        match self.place {
            Place::LeastInterference | Place::Lug => f64::from_bits(cost),
            Place::Magm => -((Cost::MAX - cost) as f64),
            _ => cost as f64,
        }
    }

    /// The cost of one GPU.
    pub(crate) fn cost(&self, policy: &Policy, gpus: &Gpus, gpu: GpuId, now: Time) -> Cost {
        match self.place {
            Place::LeastInterference => least_interference::cost(gpus.get(gpu), self.demand),
            // CARMA ranks by the score that its gate reads, which ages with time.
            Place::Lug if policy.time_matters() => lug::cost(gate_load(policy, gpus, gpu, now)),
            _ => self.bound(&gpus.summary(gpu), gpu.0..gpu.0 + 1, gpus.len()),
        }
    }
}
