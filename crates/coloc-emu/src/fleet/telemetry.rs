//! What sensors and counters show.

use super::layout::{Gpu, Shares};
use super::{Place, State};
use crate::error::DriverError;
use coloc_model::Activity;

/// Air around the boards.
pub(crate) const AMBIENT_CELSIUS: u32 = 27;
/// How fast a board warms and cools.
pub(crate) const TEMPERATURE_TAU_S: f64 = 40.0;
/// Above ambient at the board's limit.
const HEAT_AT_LIMIT: f64 = 48.0;
/// SM clock of a device that no process uses.
const IDLE_SM_MHZ: u32 = 210;

/// One look at a device. All readers of one moment see the same.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Activity of SMs and memory.
    pub shares: Shares,
    /// Power draw in milliwatts.
    pub milliwatts: u32,
    /// Energy since the fleet began, in millijoules.
    pub millijoules: u64,
    /// Temperature of the GPU.
    pub celsius: u32,
    /// SM clock.
    pub sm_mhz: u32,
    /// Memory clock.
    pub memory_mhz: u32,
    /// Share of time with any kernel, in percent.
    pub gpu_percent: u32,
    /// Share of time in which memory was read or written, in percent.
    pub memory_percent: u32,
    /// Performance state: 0 at work, 8 at rest.
    pub performance_state: u32,
    /// The power limit holds the clocks down.
    pub power_capped: bool,
}

impl Gpu {
    pub(crate) fn settling_celsius(&self) -> f64 {
        let limit = self.model().limit_watts().max(1.0);
        f64::from(AMBIENT_CELSIUS) + HEAT_AT_LIMIT * self.watts / limit
    }

    /// Activity summed over time since the fleet began, in share seconds.
    pub fn share_seconds(&self) -> Shares {
        self.share_seconds
    }

    /// What the device's sensors show.
    pub fn reading(&self) -> Reading {
        let board = self.board();
        let at_work = self.watts > self.model().idle_watts() + 0.5;
        let power_capped = self.watts >= self.limit_watts - 0.5;
        let [low, high] = self.locked_mhz;
        let free = if at_work { board.sm_mhz } else { IDLE_SM_MHZ };
        let sm_mhz = if high > 0 { free.clamp(low.min(high), high) } else { free };
        Reading {
            shares: self.shares,
            milliwatts: (self.watts * 1000.0).round() as u32,
            millijoules: (self.energy_j * 1000.0) as u64,
            celsius: self.celsius.round() as u32,
            sm_mhz: sm_mhz.min(board.sm_mhz),
            memory_mhz: board.memory_mhz,
            gpu_percent: percent(self.shares.gpu),
            memory_percent: percent(self.shares.dram),
            performance_state: if at_work { 0 } else { 8 },
            power_capped,
        }
    }
}

/// A share as the whole percentage that drivers report.
pub fn percent(share: f64) -> u32 {
    (share * 100.0).round().clamp(0.0, 100.0) as u32
}

impl State {
    /// Activity of a MIG device, as shares of its own slices.
    pub fn mig_shares(&self, place: Place) -> Result<Shares, DriverError> {
        let gpu = self.live_gpu(place.gpu)?;
        let Some(mig) = place.mig else { return Ok(gpu.shares) };
        let (sm, bandwidth) = gpu.mig_fractions(mig)?;
        let mut seen = Shares::default();
        let mut idle = 1.0;
        for resident in self.residents(place) {
            let process = self.view(resident.process)?;
            seen.sm += resident.sm / sm;
            seen.dram += resident.dram / bandwidth;
            if resident.sm > 0.0 {
                let occupied = process.alone.occupancy / process.alone.sm;
                seen.occupancy += resident.sm / sm * occupied;
                idle *= 1.0 - process.alone.gpu;
            }
        }
        // A process that computes on an SM has a kernel running.
        seen.gpu = (1.0 - idle).max(seen.sm);
        Ok(Activity::from(seen).into())
    }
}
