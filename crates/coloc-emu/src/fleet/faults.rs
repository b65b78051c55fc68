//! Things that go wrong on request, so that programs that watch for them can be tested.

use super::State;
use super::layout::{Event, Gpu, MAX_EVENTS};
use super::processes::ENDED_BY_LOSS;
use crate::error::{DriverError, ErrorKind};

/// A fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The GPU falls off the bus, with all that ran on it.
    Lost {
        /// Which one.
        gpu: u32,
    },
    /// A GPU was reset: one that was lost is back, empty, and what waited for a reset is done.
    Restored {
        /// Which one.
        gpu: u32,
    },
    /// A critical error is reported, with what it does to the GPU and to the processes on it.
    Xid {
        /// Of which GPU.
        gpu: u32,
        /// Which error.
        code: u32,
    },
    /// A row of memory waits for a reset to be replaced by a spare one, or none is left to replace it.
    Remap {
        /// On which GPU.
        gpu: u32,
        /// No spare row is left.
        failed: bool,
    },
    /// Memory errors are counted.
    Ecc {
        /// On which GPU.
        gpu: u32,
        /// Errors that were corrected.
        corrected: u64,
        /// Errors that were not.
        uncorrected: u64,
    },
    /// A process hangs in a kernel that never ends.
    Hang {
        /// Which process.
        pid: i32,
    },
    /// A hung process goes on.
    Unhang {
        /// Which process.
        pid: i32,
    },
    /// Every NVML call takes this long.
    NvmlDelay {
        /// Milliseconds.
        millis: u32,
    },
    /// The kernel module is unloaded, with all that ran on its GPUs.
    Unloaded,
    /// It is loaded again.
    Loaded,
    /// The next calls of NVML time out.
    NvmlTimeouts {
        /// How many.
        calls: u32,
    },
}

/// Critical errors that the emulated driver knows more of than their number, by NVIDIA's table of XIDs.
mod xid {
    /// "Double bit ECC error".
    pub(super) const UNCORRECTED: u32 = 48;
    /// "Row remapping event", or "page retirement event" before Ampere.
    pub(super) const REMAPPED: u32 = 63;
    /// "Row remapping failure".
    pub(super) const NOT_REMAPPED: u32 = 64;
    /// "GPU has fallen off the bus".
    pub(super) const OFF_THE_BUS: u32 = 79;
    /// "Contained ECC error": the process that met it ends.
    pub(super) const CONTAINED: u32 = 94;
    /// "Uncontained ECC error": every process on the GPU ends.
    pub(super) const UNCONTAINED: u32 = 95;
}

impl State {
    /// Makes something go wrong.
    pub fn inject(&mut self, fault: Fault) -> Result<(), DriverError> {
        match fault {
            Fault::Lost { gpu } => self.xid(gpu, xid::OFF_THE_BUS)?,
            Fault::Restored { gpu } => self.gpu_mut(gpu)?.reset(),
            Fault::Xid { gpu, code } => self.xid(gpu, code)?,
            Fault::Ecc { gpu, corrected, uncorrected } => {
                self.gpu_mut(gpu)?.count_ecc(corrected, uncorrected);
            }
            Fault::Remap { gpu, failed } => {
                let row = self.gpu_mut(gpu)?;
                let code = match failed {
                    true => {
                        row.remap_failed = 1;
                        xid::NOT_REMAPPED
                    }
                    false => {
                        row.remap_pending = 1;
                        xid::REMAPPED
                    }
                };
                self.report_xid(gpu, code)?;
            }
            Fault::Hang { pid } => self.set_hung(pid, true)?,
            Fault::Unhang { pid } => self.set_hung(pid, false)?,
            Fault::Unloaded => {
                self.unloaded = 1;
                (0..self.gpu_count).for_each(|gpu| self.end_residents(gpu, None));
            }
            Fault::Loaded => self.unloaded = 0,
            Fault::NvmlDelay { millis } => self.nvml_delay_ms = millis,
            Fault::NvmlTimeouts { calls } => self.nvml_timeouts = calls,
        }
        self.recompute();
        Ok(())
    }

    fn set_hung(&mut self, pid: i32, hung: bool) -> Result<(), DriverError> {
        let slot = self.find_pid(pid).ok_or(ErrorKind::NotFound { what: "process on a GPU" })?;
        self.process_mut(slot)?.hung = hung.into();
        Ok(())
    }

    /// A critical error with what it does to the GPU and to the processes on it. Others are only reported.
    fn xid(&mut self, gpu: u32, code: u32) -> Result<(), DriverError> {
        let device = self.gpu_mut(gpu)?;
        match code {
            xid::OFF_THE_BUS => device.lost = 1,
            xid::UNCORRECTED | xid::CONTAINED | xid::UNCONTAINED => device.count_ecc(0, 1),
            _ => {}
        }
        self.report_xid(gpu, code)?;
        match code {
            xid::OFF_THE_BUS | xid::UNCORRECTED | xid::UNCONTAINED => self.end_residents(gpu, None),
            // The emulator does not know who met it: the one that came first did.
            xid::CONTAINED => {
                let first = self.resident_slots().find(|(_, resident)| resident.gpu == gpu);
                let process = first.map(|(_, resident)| resident.process);
                process.into_iter().for_each(|process| self.end_residents(gpu, Some(process)));
            }
            _ => {}
        }
        Ok(())
    }

    fn report_xid(&mut self, gpu: u32, xid: u32) -> Result<(), DriverError> {
        self.gpu_mut(gpu)?.last_xid = xid;
        self.events[(self.event_count % MAX_EVENTS as u64) as usize] = Event { gpu, xid };
        self.event_count += 1;
        Ok(())
    }

    /// Every process on the device, or one of them, gets errors from now on, and its memory is gone.
    fn end_residents(&mut self, gpu: u32, only: Option<u32>) {
        let slots: Vec<(usize, u32)> = self
            .resident_slots()
            .filter(|(_, resident)| resident.gpu == gpu)
            .filter(|(_, resident)| only.is_none_or(|process| resident.process == process))
            .map(|(at, resident)| (at, resident.process))
            .collect();
        for (at, process) in slots {
            self.residents[at].used = 0;
            if let Some(process) = self.processes.get_mut(process as usize) {
                process.ended = ENDED_BY_LOSS;
            }
        }
        self.shrink();
        let held = self.resident_slots().filter(|(_, resident)| resident.gpu == gpu);
        let held = held.map(|(_, resident)| resident.held).sum();
        if let Ok(gpu) = self.gpu_mut(gpu) {
            gpu.held = held;
        }
    }

    /// How slow NVML is at the moment, and whether this call times out.
    pub fn nvml_trouble(&mut self) -> (u32, bool) {
        let timeout = self.nvml_timeouts > 0;
        self.nvml_timeouts = self.nvml_timeouts.saturating_sub(1);
        (self.nvml_delay_ms, timeout)
    }

    /// Whether the kernel module is there.
    pub fn is_loaded(&self) -> bool {
        self.unloaded == 0
    }

    /// How many critical events there have been.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Critical events from number `from` on that are still kept: number, GPU and code.
    pub fn events_since(&self, from: u64) -> impl Iterator<Item = (u64, u32, u32)> + '_ {
        let kept = self.event_count.saturating_sub(MAX_EVENTS as u64);
        (from.max(kept)..self.event_count).map(|number| {
            let Event { gpu, xid } = self.events[(number % MAX_EVENTS as u64) as usize];
            (number, gpu, xid)
        })
    }
}

impl Gpu {
    fn count_ecc(&mut self, corrected: u64, uncorrected: u64) {
        self.ecc_corrected = self.ecc_corrected.saturating_add(corrected);
        self.ecc_uncorrected = self.ecc_uncorrected.saturating_add(uncorrected);
    }

    /// Volatile counters begin anew, and a row that waited for it is replaced. A row that could not be stays so.
    fn reset(&mut self) {
        self.lost = 0;
        (self.ecc_corrected, self.ecc_uncorrected) = (0, 0);
        self.remapped_rows += std::mem::take(&mut self.remap_pending).min(1);
    }
}
