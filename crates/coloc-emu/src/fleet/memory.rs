//! Device memory: which process holds how much, and that none gets what is not there.

use super::layout::{MAX_RESIDENTS, Process, Resident};
use super::{Place, ProcessSlot, State};
use crate::error::{DriverError, ErrorKind};
use crate::fleet::instances::MigDevice;
use coloc_model::Bytes;
use coloc_physics::Growth;

/// Memory of a device or a MIG device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryView {
    /// All of it.
    pub total: Bytes,
    /// Held by processes.
    pub used: Bytes,
}

impl MemoryView {
    /// What is left.
    pub fn free(self) -> Bytes {
        self.total.saturating_sub(self.used)
    }
}

/// A process on a device as others see it.
#[derive(Clone, Copy, Debug)]
pub struct ResidentView {
    /// The process.
    pub process: ProcessSlot,
    /// Its id.
    pub pid: i32,
    /// Where it is.
    pub place: Place,
    /// What it holds there.
    pub held: Bytes,
    /// A client of MPS.
    pub mps: bool,
    /// Share of time with a kernel of its own running.
    pub active: f64,
    /// SM activity that it causes, of the whole device.
    pub sm: f64,
    /// DRAM activity that it causes, of the whole device.
    pub dram: f64,
}

impl State {
    /// Memory of a whole GPU or of a MIG device.
    pub fn memory(&self, place: Place) -> Result<MemoryView, DriverError> {
        let gpu = self.live_gpu(place.gpu)?;
        let Some(mig) = place.mig else {
            return Ok(MemoryView { total: gpu.model().memory(), used: Bytes(gpu.held) });
        };
        let total = Bytes(gpu.instance(mig.gi)?.memory);
        let own = |resident: &Resident| resident.gpu == place.gpu && resident.instance == mig.gi;
        let used = self.resident_slots().filter(|(_, r)| own(r)).map(|(_, r)| Bytes(r.held)).sum();
        Ok(MemoryView { total, used })
    }

    /// What a process could still allocate: the device's or instance's rest, or that of its own limit.
    pub fn free_for(&self, slot: ProcessSlot, place: Place) -> Result<MemoryView, DriverError> {
        let mut view = self.memory(place)?;
        if let Some(at) = self.find_resident(slot, place)
            && self.residents[at].limit > 0
        {
            let Resident { limit, held, .. } = self.residents[at];
            let rest = Bytes(limit).saturating_sub(Bytes(held)).min(view.free());
            view.total = Bytes(limit).min(view.total);
            view.used = view.total.saturating_sub(rest);
        }
        Ok(view)
    }

    fn find_resident(&self, slot: ProcessSlot, place: Place) -> Option<usize> {
        let (instance, compute) = place.mig.map_or((0, 0), |mig| (mig.gi, mig.ci));
        self.resident_slots()
            .find(|(_, r)| {
                r.process == slot.0
                    && r.gpu == place.gpu
                    && r.instance == instance
                    && r.compute == compute
            })
            .map(|(at, _)| at)
    }

    /// Opens a context. The first one of a process on a device costs memory.
    pub fn open_context(&mut self, slot: ProcessSlot, place: Place) -> Result<(), DriverError> {
        self.check_process(slot)?;
        let gpu = self.live_gpu(place.gpu)?;
        match place.mig {
            None if gpu.mig_enabled() => {
                return Err(
                    ErrorKind::NotSupported { what: "a context on a partitioned GPU" }.into()
                );
            }
            Some(mig) => gpu.compute_instance(mig).map(|_| ())?,
            None => {}
        }
        if let Some(at) = self.find_resident(slot, place) {
            self.residents[at].contexts += 1;
            return Ok(());
        }
        self.check_compute_mode(slot, place)?;
        self.check_mps_room(slot, place)?;
        let at = (0..MAX_RESIDENTS)
            .find(|&at| self.residents[at].used == 0)
            .ok_or(ErrorKind::TableFull { what: "processes on devices" })?;
        let (instance, compute) = place.mig.map_or((0, 0), |mig| (mig.gi, mig.ci));
        self.residents[at] = Resident {
            used: 1,
            process: slot.0,
            gpu: place.gpu,
            instance,
            compute,
            contexts: 1,
            held: 0,
            limit: self.pinned_limit(slot, place.gpu),
            rate: 0.0,
        };
        self.resident_high = self.resident_high.max(at as u32 + 1);
        if let Err(refused) = self.book(at, place, Growth::CONTEXT) {
            self.residents[at].used = 0;
            self.shrink();
            return Err(refused);
        }
        self.recompute();
        Ok(())
    }

    /// Closes a context. The last one gives back all that the process holds on the device.
    pub fn close_context(&mut self, slot: ProcessSlot, place: Place) -> Result<(), DriverError> {
        let at = self.find_resident(slot, place).ok_or(ErrorKind::NotFound { what: "context" })?;
        if self.residents[at].contexts > 1 {
            self.residents[at].contexts -= 1;
            return Ok(());
        }
        let held = self.residents[at].held;
        self.residents[at].used = 0;
        let gpu = self.gpu_mut(place.gpu)?;
        gpu.held = gpu.held.saturating_sub(held);
        self.shrink();
        self.recompute();
        Ok(())
    }

    /// Gives a process memory, or says how much is left.
    pub fn allocate(
        &mut self,
        slot: ProcessSlot,
        place: Place,
        wanted: Bytes,
    ) -> Result<(), DriverError> {
        self.check_process(slot)?;
        self.live_gpu(place.gpu)?;
        let at = self.find_resident(slot, place).ok_or(ErrorKind::NotFound { what: "context" })?;
        self.book(at, place, wanted)
    }

    /// Takes memory back.
    pub fn release(
        &mut self,
        slot: ProcessSlot,
        place: Place,
        amount: Bytes,
    ) -> Result<(), DriverError> {
        let at = self.find_resident(slot, place).ok_or(ErrorKind::NotFound { what: "context" })?;
        let amount = amount.min(Bytes(self.residents[at].held));
        self.residents[at].held -= amount.0;
        let gpu = self.gpu_mut(place.gpu)?;
        gpu.held = gpu.held.saturating_sub(amount.0);
        Ok(())
    }

    /// Books memory under the lock: two processes can never both get the last of it.
    fn book(&mut self, at: usize, place: Place, wanted: Bytes) -> Result<(), DriverError> {
        let slot = ProcessSlot(self.residents[at].process);
        if self.free_for(slot, place)?.free() < wanted {
            // No process is refused for the sake of the dead.
            self.bury_all_dead();
        }
        let free = self.free_for(slot, place)?.free();
        if free < wanted {
            return Err(ErrorKind::OutOfMemory { wanted, free }.into());
        }
        // The resident's row first: after a death in between, the sum is made anew from the rows.
        self.residents[at].held += wanted.0;
        self.gpu_mut(place.gpu)?.held += wanted.0;
        Ok(())
    }

    fn check_process(&self, slot: ProcessSlot) -> Result<(), DriverError> {
        match self.view(slot)?.ended {
            Some(why) => Err(ErrorKind::ContextDestroyed { why }.into()),
            None => Ok(()),
        }
    }

    /// Compute modes: 2 lets no process in, 3 one process only.
    fn check_compute_mode(&self, slot: ProcessSlot, place: Place) -> Result<(), DriverError> {
        // The clients of an MPS server are one process to the device.
        let server = |process: u32| self.processes.get(process as usize).map_or(0, |p| p.mps);
        let own = server(slot.0);
        let occupied = self.resident_slots().any(|(_, resident)| {
            resident.gpu == place.gpu && (own == 0 || server(resident.process) != own)
        });
        match self.live_gpu(place.gpu)?.compute_mode {
            2 => Err(ErrorKind::InUse { by: "compute mode Prohibited" }.into()),
            3 if occupied => Err(ErrorKind::InUse { by: "compute mode Exclusive Process" }.into()),
            _ => Ok(()),
        }
    }

    /// The processes on a GPU, or on one MIG device.
    pub fn residents(&self, place: Place) -> Vec<ResidentView> {
        let here = |resident: &Resident| {
            resident.gpu == place.gpu
                && place
                    .mig
                    .is_none_or(|mig| resident.instance == mig.gi && resident.compute == mig.ci)
        };
        self.resident_slots()
            .filter(|(_, resident)| here(resident))
            .filter_map(|(_, resident)| self.resident_view(resident))
            .collect()
    }

    fn resident_view(&self, resident: &Resident) -> Option<ResidentView> {
        let slot = ProcessSlot(resident.process);
        let process = self.process(slot).ok()?;
        let busy = process.busy_until_ns > self.settled_ns && process.ended == 0;
        let rate = if busy { resident.rate } else { 0.0 };
        let mig = (resident.instance > 0)
            .then_some(MigDevice { gi: resident.instance, ci: resident.compute });
        Some(ResidentView {
            process: slot,
            pid: process.pid,
            place: Place { gpu: resident.gpu, mig },
            held: Bytes(resident.held),
            mps: process.mps != 0,
            active: if busy { active(process, rate) } else { 0.0 },
            sm: process.alone.sm * rate,
            dram: process.alone.dram * rate,
        })
    }
}

/// Time slicing gives a process its share of the time. Side by side with others, or on a part of the device,
/// its kernels take longer, and only the time between them stays what it was.
fn active(process: &Process, rate: f64) -> f64 {
    let alone = process.alone.gpu;
    match (process.hung != 0, process.mps != 0) {
        (true, _) => 1.0,
        (false, true) => (1.0 - (1.0 - alone) * rate).clamp(0.0, 1.0),
        (false, false) => alone * rate,
    }
}
