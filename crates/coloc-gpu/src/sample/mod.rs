//! How busy a GPU is, by the best source that answers.

pub mod dcgm;
mod ladder;
mod window;

pub use ladder::{Ladder, LadderConfig};
pub use window::{Metric, Window};

use coloc_model::{Activity, Bytes, Fraction, GpuId, GpuSignal, TaskId, Time};
use serde::Serialize;

use crate::device::{DeviceProcess, Uuid, Vitals};
use crate::mig::{GpuInstanceId, Place as MigPlace};
use crate::process::{Attributed, Owner};

/// Where a reading came from, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `dcgmi dmon`: the profiling counters of DCGM.
    DcgmDmon,
    /// A dcgm-exporter that was scraped.
    DcgmExporter,
    /// NVML's performance monitors (Hopper and newer).
    Gpm,
    /// NVML's time shares by process.
    ProcessUtilization,
    /// NVML's utilization: the share of time in which any kernel ran.
    Utilization,
}

impl Source {
    /// Every source, best first.
    pub const ALL: [Source; 5] = [
        Source::DcgmDmon,
        Source::DcgmExporter,
        Source::Gpm,
        Source::ProcessUtilization,
        Source::Utilization,
    ];

    /// The name used in output.
    pub const fn name(self) -> &'static str {
        match self {
            Source::DcgmDmon => "dcgm_dmon",
            Source::DcgmExporter => "dcgm_exporter",
            Source::Gpm => "gpm",
            Source::ProcessUtilization => "process_utilization",
            Source::Utilization => "utilization",
        }
    }

    /// Whether it sees SM activity, and not merely that some kernel ran.
    pub const fn sees_sms(self) -> bool {
        matches!(self, Source::DcgmDmon | Source::DcgmExporter | Source::Gpm)
    }
}

/// What one source says of one GPU. `None` is what it does not know, which is not zero.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Reading {
    /// GRACT (DCGM 1001), or utilization: share of time in which the graphics or compute engine was busy.
    pub gpu: Option<Fraction>,
    /// SMACT (1002): share of SMs with a warp resident, over time.
    pub sm: Option<Fraction>,
    /// SMOCC (1003): resident warps against the most that fit.
    pub occupancy: Option<Fraction>,
    /// TENSO (1004): share of cycles in which the tensor pipe was busy.
    pub tensor: Option<Fraction>,
    /// DRAMA (1005): share of cycles in which the memory interface was busy.
    pub dram: Option<Fraction>,
}

impl Reading {
    /// Nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Reading::default()
    }

    /// The reading as schedulers take it. What is not known is replaced by what it cannot exceed, so that a
    /// coarse source makes a GPU look busier than it is, never idler: SMs are active only while a kernel runs,
    /// warps are resident only on active SMs, and where nothing is known a GPU in use may be fully so.
    pub fn activity(&self, vitals: &Vitals, in_use: bool) -> Activity {
        let unknown = if in_use { Fraction::ONE } else { Fraction::ZERO };
        let gpu = self.gpu.or(vitals.utilization).or(self.sm).unwrap_or(unknown);
        let sm = self.sm.unwrap_or(gpu);
        let occupancy = self.occupancy.unwrap_or(sm);
        let dram = self.dram.or(vitals.memory_utilization).unwrap_or(gpu);
        Activity { gpu, sm, occupancy, dram }
    }
}

/// One look at one GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sample {
    /// The GPU.
    pub gpu: Uuid,
    /// Its place in the fleet.
    pub id: GpuId,
    /// When.
    pub at: Time,
    /// Where the reading came from; `None` when no source answered.
    pub source: Option<Source>,
    /// How busy it was.
    pub reading: Reading,
    /// Everything else that the driver said.
    pub vitals: Vitals,
    /// The processes on it.
    pub processes: Vec<ProcessSample>,
    /// Its GPU instances, if it is partitioned.
    pub instances: Vec<InstanceSample>,
}

/// One GPU instance of a partitioned GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct InstanceSample {
    /// The driver's number for it.
    pub id: GpuInstanceId,
    /// NVIDIA's name for its size, such as `3g.20gb`.
    pub profile: String,
    /// Compute slices.
    pub compute: u8,
    /// Compute slices of the whole GPU.
    pub of_compute: u8,
    /// Where it lies.
    pub place: MigPlace,
    /// Where the reading came from; `None` when no source sees into instances.
    pub source: Option<Source>,
    /// How busy it was: shares of the instance, not of the GPU.
    pub reading: Reading,
}

/// One process on one GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProcessSample {
    /// What the driver says of it.
    pub process: DeviceProcess,
    /// Share of time in which kernels of it ran, where a source tells.
    pub sm: Option<Fraction>,
    /// What it belongs to.
    pub attributed: Attributed,
}

impl Sample {
    /// The sample as the scheduler takes it.
    pub fn signal(&self) -> GpuSignal {
        let used: Bytes = self.vitals.memory_used + self.vitals.memory_reserved;
        let in_use = !self.processes.is_empty();
        GpuSignal { activity: self.reading.activity(&self.vitals, in_use), used }
    }

    /// Memory that a task's processes hold here; `None` if it has none here.
    pub fn memory_of(&self, task: TaskId) -> Option<Bytes> {
        self.held_by(|owner| matches!(owner, Owner::Task { task: known, .. } if *known == task))
    }

    /// Memory that processes hold which coloc did not start; `None` if there are none.
    pub fn foreign_memory(&self) -> Option<Bytes> {
        self.held_by(|owner| *owner == Owner::Foreign)
    }

    fn held_by(&self, theirs: impl Fn(&Owner) -> bool) -> Option<Bytes> {
        let theirs = self.processes.iter().filter(|process| theirs(&process.attributed.owner));
        let held: Vec<Bytes> =
            theirs.map(|process| process.process.memory.unwrap_or(Bytes::ZERO)).collect();
        (!held.is_empty()).then(|| held.into_iter().sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::vitals;

    #[test]
    fn what_is_not_known_is_bounded_from_above() {
        let coarse = Reading { gpu: Some(Fraction::new(0.9)), ..Reading::default() };
        let activity = coarse.activity(&vitals(), true);
        assert_eq!((activity.sm, activity.occupancy), (Fraction::new(0.9), Fraction::new(0.9)));
        assert_eq!(activity.dram, Fraction::new(0.25), "NVML tells that much");
        let fine = Reading { sm: Some(Fraction::new(0.2)), ..coarse };
        assert_eq!(fine.activity(&vitals(), true).occupancy, Fraction::new(0.2));
    }

    #[test]
    fn a_gpu_that_nobody_can_see_into_counts_as_busy_when_it_is_in_use() {
        let blind = Vitals { utilization: None, memory_utilization: None, ..vitals() };
        assert_eq!(Reading::default().activity(&blind, true).sm, Fraction::ONE);
        assert_eq!(Reading::default().activity(&blind, false).sm, Fraction::ZERO);
    }
}
