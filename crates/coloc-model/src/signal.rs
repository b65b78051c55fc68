//! What a monitor sees of a GPU.

use crate::{Bytes, Fraction};
use serde::{Deserialize, Serialize};

/// The four activity metrics that tell how busy a GPU really is.
///
/// `gpu` is what `nvidia-smi` calls utilization: the share of time in which any kernel ran. A kernel
/// on one SM of 108 makes it 100 %, which is why decisions are taken on the other three.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Activity {
    /// Share of time with at least one kernel on the device.
    pub gpu: Fraction,
    /// SM activity (DCGM 1002): share of SMs with a warp resident, over time.
    pub sm: Fraction,
    /// SM occupancy (DCGM 1003): resident warps against the most that fit.
    pub occupancy: Fraction,
    /// DRAM activity (DCGM 1005): share of cycles in which the memory interface was busy.
    pub dram: Fraction,
}

/// One GPU's state as a monitor reports it; it holds until the next report.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct GpuSignal {
    /// How busy the device is.
    pub activity: Activity,
    /// Memory in use on the device by all processes, contexts included.
    pub used: Bytes,
}

/// What a window of samples of one metric says.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct WindowScores {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The 95th percentile, interpolated between the two nearest samples.
    pub p95: f64,
    /// The exponential moving average with alpha = 2/(samples + 1), begun at the oldest sample.
    pub ema: f64,
}

impl WindowScores {
    /// CARMA's risk score: 0.20 mean + 0.20 median + 0.30 p95 + 0.10 p50 + 0.20 EMA. Median and p50 are
    /// one thing, so it weighs 0.30 in effect.
    pub fn risk(&self) -> Fraction {
        let WindowScores { mean, median, p95, ema } = *self;
        Fraction::saturating(0.2 * mean + 0.3 * median + 0.3 * p95 + 0.2 * ema)
    }
}
