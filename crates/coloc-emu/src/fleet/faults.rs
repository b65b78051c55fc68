//! Things that go wrong on request, so that those who watch for them can be tested.

use super::State;
use super::layout::{Event, MAX_EVENTS};
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
    /// A lost GPU is back, empty.
    Restored {
        /// Which one.
        gpu: u32,
    },
    /// A critical error is reported.
    Xid {
        /// Of which GPU.
        gpu: u32,
        /// Which error.
        code: u32,
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

/// "GPU has fallen off the bus".
const XID_OFF_THE_BUS: u32 = 79;

impl State {
    /// Makes something go wrong.
    pub fn inject(&mut self, fault: Fault) -> Result<(), DriverError> {
        match fault {
            Fault::Lost { gpu } => {
                self.gpu_mut(gpu)?.lost = 1;
                self.report_xid(gpu, XID_OFF_THE_BUS)?;
                self.end_residents(gpu);
            }
            Fault::Restored { gpu } => self.gpu_mut(gpu)?.lost = 0,
            Fault::Xid { gpu, code } => self.report_xid(gpu, code)?,
            Fault::Ecc { gpu, corrected, uncorrected } => {
                let gpu = self.gpu_mut(gpu)?;
                gpu.ecc_corrected = gpu.ecc_corrected.saturating_add(corrected);
                gpu.ecc_uncorrected = gpu.ecc_uncorrected.saturating_add(uncorrected);
            }
            Fault::Hang { pid } => self.set_hung(pid, true)?,
            Fault::Unhang { pid } => self.set_hung(pid, false)?,
            Fault::Unloaded => {
                self.unloaded = 1;
                (0..self.gpu_count).for_each(|gpu| self.end_residents(gpu));
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

    fn report_xid(&mut self, gpu: u32, xid: u32) -> Result<(), DriverError> {
        self.gpu_mut(gpu)?.last_xid = xid;
        self.events[(self.event_count % MAX_EVENTS as u64) as usize] = Event { gpu, xid };
        self.event_count += 1;
        Ok(())
    }

    /// Every process on the device gets errors from now on, and its memory is gone.
    fn end_residents(&mut self, gpu: u32) {
        let slots: Vec<(usize, u32)> = self
            .resident_slots()
            .filter(|(_, resident)| resident.gpu == gpu)
            .map(|(at, resident)| (at, resident.process))
            .collect();
        for (at, process) in slots {
            self.residents[at].used = 0;
            if let Some(process) = self.processes.get_mut(process as usize) {
                process.ended = ENDED_BY_LOSS;
            }
        }
        if let Ok(gpu) = self.gpu_mut(gpu) {
            gpu.held = 0;
        }
        self.shrink();
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
