//! Named policies. A preset sets defaults; whatever is asked for explicitly wins.

use crate::policy::{
    Contract, Gate, Knowledge, MemoryBasis, OnOom, Pace, Pack, Place, Policy, Preemption, Queue,
    Recovery,
};
use crate::service::{GpuTime, RuleSet, Service, Thresholds};
use coloc_model::{Bytes, Fraction, Millis, Share};
use serde::{Deserialize, Serialize};

/// PACKLIMIT: of the published skews, any value between 0.14 and 0.6 tells the same models apart.
const PACKLIMIT: f64 = 0.3;

/// A named policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// CARMA as first published (August 2025), weaknesses included.
    CarmaV1,
    /// CARMA's second version (November 2025), weaknesses included.
    CarmaV2,
    /// Tiresias by its paper.
    Tiresias,
    /// Tiresias by its published simulator, to the letter.
    TiresiasSim,
    /// AlloX: one-device tasks on a mixed fleet, for the best mean completion time.
    Allox,
    /// Ours.
    Coloc,
}

/// How much the scheduler is told of a task's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryKnowledge {
    /// Measured before.
    Oracle,
    /// Estimated.
    Estimate,
    /// Nothing.
    None,
}

impl Preset {
    /// The preset's policy, which depends on what is known of memory.
    pub fn policy(self, known: MemoryKnowledge) -> Policy {
        match self {
            Preset::CarmaV1 => carma_v1(known),
            Preset::CarmaV2 => carma_v2(known),
            Preset::Tiresias => {
                let service = Service {
                    thresholds: Thresholds::one(GpuTime::from_secs(3600)),
                    promote: Some(8.0),
                    ..Service::PLAIN
                };
                Policy { pack: Pack::Skew(PACKLIMIT), ..tiresias(service, Place::Consolidate) }
            }
            Preset::TiresiasSim => {
                let service = Service {
                    thresholds: Thresholds::two(GpuTime::from_secs(3250), GpuTime::from_secs(7200)),
                    rule_set: RuleSet::Simulator,
                    ..Service::PLAIN
                };
                tiresias(service, Place::Any)
            }
            Preset::Allox => Policy::plain(Queue::Allox, Place::Exclusive, Share::Exclusive),
            Preset::Coloc => coloc(known),
        }
    }

    /// The preset with another placement. CARMA's screens are not the same for all of them.
    pub fn with_place(self, known: MemoryKnowledge, place: Place) -> Policy {
        let policy = Policy { place, ..self.policy(known) };
        match (self, place, known) {
            // Its round-robin (OR-RR) looks at neither memory nor utilization.
            (Preset::CarmaV1 | Preset::CarmaV2, Place::RoundRobin, _) => Policy {
                knowledge: Knowledge::Unknown { min_free: Bytes::ZERO },
                gate: Gate::Open,
                ..policy
            },
            // Its first best-fit was content with a smaller margin.
            (Preset::CarmaV1, Place::BestFit, MemoryKnowledge::Oracle) => Policy {
                knowledge: Knowledge::Estimated { margin: Bytes::from_mib(500) },
                ..policy
            },
            _ => policy,
        }
    }
}

const fn secs(secs: u64) -> Millis {
    Millis::from_secs(secs)
}

/// What both versions of CARMA share: FIFO with only the head considered, idle GPUs first without a
/// look at memory, free memory as the device reports it, and recovery on idle GPUs for ever while all
/// else stands still.
fn carma(gate: Gate, reserve: Bytes, settle: Option<Millis>, pace: Pace) -> Policy {
    Policy {
        memory: MemoryBasis::Reported { reserve },
        gate,
        settle,
        idle_first: true,
        pace,
        recovery: Recovery { on_oom: OnOom::Exclusive, retries: u32::MAX, stops_others: true },
        ..Policy::plain(Queue::Fifo, Place::Magm, Share::Mps)
    }
}

/// Mean SM activity over a tumbling window of 90 s, fixed sleeps around decisions. The gate was not
/// applied where estimates were used, and estimates got no margin.
fn carma_v1(known: MemoryKnowledge) -> Policy {
    let gate = Gate::TumblingMean { limit: Fraction::new(0.8), window: secs(90) };
    let pace = Pace { idle: secs(30), shared: secs(60) };
    let policy = carma(gate, Bytes::ZERO, None, pace);
    let mib = Bytes::from_mib;
    match known {
        MemoryKnowledge::Oracle => {
            Policy { knowledge: Knowledge::Estimated { margin: mib(2000) }, ..policy }
        }
        MemoryKnowledge::Estimate => Policy {
            knowledge: Knowledge::Estimated { margin: Bytes::ZERO },
            gate: Gate::Open,
            ..policy
        },
        MemoryKnowledge::None => {
            Policy { knowledge: Knowledge::Unknown { min_free: mib(2000) }, ..policy }
        }
    }
}

/// Risk scores over 30 samples, 512 MiB held back, 2 GiB of margin, 30 s of grace after a launch, one
/// decision a second.
fn carma_v2(known: MemoryKnowledge) -> Policy {
    let gate = Gate::Risk {
        sm: Fraction::new(0.8),
        occupancy: Fraction::new(0.45),
        dram: Fraction::new(0.4),
    };
    let pace = Pace { idle: secs(1), shared: secs(1) };
    let knowledge = match known {
        MemoryKnowledge::Oracle | MemoryKnowledge::Estimate => {
            Knowledge::Estimated { margin: Bytes::from_mib(2048) }
        }
        MemoryKnowledge::None => Knowledge::Unknown { min_free: Bytes::from_mib(5120) },
    };
    Policy { knowledge, ..carma(gate, Bytes::from_mib(512), Some(secs(30)), pace) }
}

/// 2D-LAS over whole GPUs of any node. The paper needs two queues in practice, with a limit of 3600 GPU
/// seconds and a knob of 8; its simulator has three queues and no promotion.
fn tiresias(service: Service, place: Place) -> Policy {
    Policy { service, ..Policy::plain(Queue::Las2d, place, Share::Exclusive) }
}

/// The least expected work goes first, by what was learned, and after users who hold less; tasks that do not fit are
/// skipped, with room kept for one that was overtaken too often; tasks that can save make room for much shorter ones; the
/// ledger stands in for a settle time; demand on SMs is learned of each task, not awaited; and a task that ran out of
/// memory comes back with what it wanted.
fn coloc(known: MemoryKnowledge) -> Policy {
    let knowledge = match known {
        MemoryKnowledge::Oracle | MemoryKnowledge::Estimate => {
            Knowledge::Estimated { margin: Bytes::ZERO }
        }
        MemoryKnowledge::None => Knowledge::Unknown { min_free: Bytes::from_mib(8192) },
    };
    Policy {
        knowledge,
        contract: Some(Contract::default()),
        gate: Gate::Expected { limit: 1.5 },
        starvation_limit: Some(secs(2 * 3600)),
        ageing: Some(secs(24 * 3600)),
        overtaking: Some(20.0),
        preemption: Some(Preemption { every: secs(300), after_ends: 40, stays: 0.5 }),
        learn: true,
        ..Policy::plain(Queue::LeastWork, Place::LeastInterference, Share::Mps)
    }
}
