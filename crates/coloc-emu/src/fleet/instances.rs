//! MIG: the partitions of a board.

use super::layout::{ComputeInstance, Gpu, GpuInstance, MAX_COMPUTE};
use super::{Place, State, uuid, uuid_text};
use crate::error::{DriverError, ErrorKind};
use crate::mig::{self, InstanceProfile};
use crate::process::need_root;
use coloc_model::Bytes;

/// A MIG device: a compute instance inside a GPU instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MigDevice {
    /// Id of the GPU instance, from 1.
    pub gi: u32,
    /// Id of the compute instance in it, from 0.
    pub ci: u32,
}

/// A GPU instance as others see it.
#[derive(Clone, Copy, Debug)]
pub struct InstanceView {
    /// Its id.
    pub id: u32,
    /// What it was made from.
    pub profile: InstanceProfile,
    /// First memory slice.
    pub start: u32,
    /// Memory slices.
    pub span: u32,
    /// Its memory.
    pub memory: Bytes,
}

const NO_MIG: ErrorKind = ErrorKind::NotSupported { what: "MIG on this board" };
const MIG_OFF: ErrorKind = ErrorKind::NotSupported { what: "MIG mode is off" };
const NO_INSTANCE: ErrorKind = ErrorKind::NotFound { what: "GPU instance" };
const NO_COMPUTE: ErrorKind = ErrorKind::NotFound { what: "compute instance" };

impl Gpu {
    /// A GPU instance by its id.
    pub(crate) fn instance(&self, id: u32) -> Result<&GpuInstance, DriverError> {
        let slot = id.checked_sub(1).and_then(|slot| self.instances.get(slot as usize));
        slot.filter(|instance| instance.used != 0).ok_or_else(|| NO_INSTANCE.into())
    }

    pub(crate) fn compute_instance(&self, mig: MigDevice) -> Result<&ComputeInstance, DriverError> {
        let slot = self.instance(mig.gi)?.compute.get(mig.ci as usize);
        slot.filter(|compute| compute.used != 0).ok_or_else(|| NO_COMPUTE.into())
    }

    fn taken(&self) -> (u16, u32, bool) {
        let live = self.instances.iter().filter(|instance| instance.used != 0);
        let media = |id: u32| mig::profiles(self.model()).iter().any(|p| p.id == id && p.media);
        live.fold((0, 0, false), |(mask, slices, with_media), instance| {
            (
                mask | mig::mask(instance.start as u8, instance.span as u8),
                slices + instance.slices,
                with_media || media(instance.profile),
            )
        })
    }

    /// Where an instance of this kind could start now. Later starts are the first choice: the low slices
    /// are the only ones that large instances can use.
    fn open_starts(&self, profile: &InstanceProfile) -> Vec<u8> {
        let (mask, slices, with_media) = self.taken();
        let most = self.model().mig().map_or(0, |table| u32::from(table.compute_slices));
        if slices + u32::from(profile.compute()) > most || (profile.media && with_media) {
            return Vec::new();
        }
        let open = |start: &u8| mask & mig::mask(*start, profile.span()) == 0;
        profile.starts().iter().rev().copied().filter(open).collect()
    }

    /// How many more instances of this kind could be made.
    pub fn remaining(&self, profile: &InstanceProfile) -> u32 {
        let mut probe = *self;
        let mut count = 0;
        while let Some(&start) = probe.open_starts(profile).first() {
            if probe.put_instance(profile, start).is_none() {
                break;
            }
            count += 1;
        }
        count
    }

    fn put_instance(&mut self, profile: &InstanceProfile, start: u8) -> Option<u32> {
        let slot = self.instances.iter().position(|instance| instance.used == 0)?;
        let free = ComputeInstance { used: 0, slices: 0, generation: 0 };
        self.instances[slot] = GpuInstance {
            used: 1,
            profile: profile.id,
            start: start.into(),
            span: profile.span().into(),
            slices: profile.compute().into(),
            reserved: 0,
            memory: profile.memory().0,
            compute: [free; MAX_COMPUTE],
        };
        Some(slot as u32 + 1)
    }

    pub(crate) fn sane_instances(&self) -> Result<(), &'static str> {
        let mut seen = 0u16;
        for instance in self.instances.iter().filter(|instance| instance.used != 0) {
            let mask = mig::mask(instance.start as u8, instance.span as u8);
            if seen & mask != 0 {
                return Err("two GPU instances share a memory slice");
            }
            seen |= mask;
            let used = instance.compute.iter().filter(|ci| ci.used != 0).map(|ci| ci.slices);
            if used.sum::<u32>() > instance.slices {
                return Err("compute instances exceed their GPU instance");
            }
        }
        Ok(())
    }

    /// The MIG devices of this GPU, in order.
    pub fn mig_devices(&self) -> Vec<MigDevice> {
        let mut devices = Vec::new();
        for (slot, instance) in self.instances.iter().enumerate().filter(|(_, i)| i.used != 0) {
            for (ci, _) in instance.compute.iter().enumerate().filter(|(_, ci)| ci.used != 0) {
                devices.push(MigDevice { gi: slot as u32 + 1, ci: ci as u32 });
            }
        }
        devices
    }

    /// `MIG-` and a UUID that never returns.
    pub fn mig_uuid(&self, device: MigDevice) -> Result<String, DriverError> {
        let generation = self.compute_instance(device)?.generation;
        let parts: [&[u8]; 3] = [b"mig", &self.uuid, &generation.to_le_bytes()];
        Ok(format!("MIG-{}", uuid_text(&uuid(&parts))))
    }

    /// Compute slices of a MIG device.
    pub fn compute_slices(&self, device: MigDevice) -> Result<u32, DriverError> {
        Ok(self.compute_instance(device)?.slices)
    }

    /// Shares of the board's SMs and of its memory bandwidth that a MIG device has.
    pub fn mig_fractions(&self, device: MigDevice) -> Result<(f64, f64), DriverError> {
        let table = self.model().mig().ok_or(NO_MIG)?;
        let sms = self.compute_slices(device)? * table.sms_per_slice;
        let span = self.instance(device.gi)?.span;
        let board = f64::from(self.model().sms());
        Ok((f64::from(sms) / board, f64::from(span) / f64::from(table.memory_slices)))
    }

    /// One GPU instance.
    pub fn instance_view(&self, id: u32) -> Result<InstanceView, DriverError> {
        let instance = self.instance(id)?;
        let profile = self.profile(instance.profile)?;
        let GpuInstance { start, span, memory, .. } = *instance;
        Ok(InstanceView { id, profile, start, span, memory: Bytes(memory) })
    }

    /// The ids of all GPU instances.
    pub fn instance_ids(&self) -> Vec<u32> {
        let live = self.instances.iter().enumerate().filter(|(_, instance)| instance.used != 0);
        live.map(|(slot, _)| slot as u32 + 1).collect()
    }

    /// The ids of the compute instances of a GPU instance.
    pub fn compute_ids(&self, gi: u32) -> Result<Vec<u32>, DriverError> {
        let live = self.instance(gi)?.compute.iter().enumerate().filter(|(_, ci)| ci.used != 0);
        Ok(live.map(|(slot, _)| slot as u32).collect())
    }

    /// How many compute instances of so many slices still fit into a GPU instance.
    pub fn compute_remaining(&self, gi: u32, slices: u32) -> Result<u32, DriverError> {
        let instance = self.instance(gi)?;
        let used: u32 = instance.compute.iter().filter(|ci| ci.used != 0).map(|ci| ci.slices).sum();
        Ok(instance.slices.saturating_sub(used).checked_div(slices).unwrap_or(0))
    }

    /// The profile of this id on this board.
    pub fn profile(&self, id: u32) -> Result<InstanceProfile, DriverError> {
        let profiles = mig::profiles(self.model());
        if profiles.is_empty() {
            return Err(NO_MIG.into());
        }
        let found = profiles.into_iter().find(|profile| profile.id == id);
        found.ok_or_else(|| ErrorKind::Invalid { what: "GPU instance profile" }.into())
    }

    /// The MIG name, such as `MIG 1g.5gb` or `MIG 1c.3g.20gb`.
    pub fn mig_name(&self, device: MigDevice) -> Result<String, DriverError> {
        let profile = self.instance_view(device.gi)?.profile;
        Ok(profile.device_name(self.compute_slices(device)?))
    }
}

impl State {
    /// Turns MIG on or off. The device must be idle, and have no instances left.
    pub fn set_mig_mode(&mut self, index: u32, on: bool) -> Result<(), DriverError> {
        need_root("changing the MIG mode")?;
        let gpu = self.live_gpu(index)?;
        if gpu.model().mig().is_none() {
            return Err(NO_MIG.into());
        }
        if gpu.mig_enabled() == on {
            return Ok(());
        }
        if self.resident_slots().any(|(_, resident)| resident.gpu == index) {
            return Err(ErrorKind::InUse { by: "processes on the GPU" }.into());
        }
        if !self.live_gpu(index)?.instance_ids().is_empty() {
            return Err(ErrorKind::InUse { by: "GPU instances" }.into());
        }
        let gpu = self.gpu_mut(index)?;
        gpu.mig_enabled = on.into();
        self.recompute();
        Ok(())
    }

    /// Makes a GPU instance, at a given slice or wherever it fits. Returns its id.
    pub fn create_instance(
        &mut self,
        index: u32,
        profile: u32,
        start: Option<u32>,
    ) -> Result<u32, DriverError> {
        need_root("changing MIG instances")?;
        let gpu = self.live_gpu(index)?;
        let profile = gpu.profile(profile)?;
        if !gpu.mig_enabled() {
            return Err(MIG_OFF.into());
        }
        let no_room = ErrorKind::InsufficientResources { what: "no room for the GPU instance" };
        let open = gpu.open_starts(&profile);
        let start = match start {
            Some(start) => {
                let legal = profile.starts().iter().copied().find(|&s| u32::from(s) == start);
                let legal = legal.ok_or(ErrorKind::Invalid { what: "placement" })?;
                open.contains(&legal).then_some(legal)
            }
            None => open.first().copied(),
        };
        let start = start.ok_or(no_room.clone())?;
        let id = self.gpu_mut(index)?.put_instance(&profile, start).ok_or(no_room)?;
        self.recompute();
        Ok(id)
    }

    /// Removes a GPU instance that has no compute instances left.
    pub fn destroy_instance(&mut self, index: u32, gi: u32) -> Result<(), DriverError> {
        need_root("changing MIG instances")?;
        let gpu = self.live_gpu(index)?;
        if !gpu.compute_ids(gi)?.is_empty() {
            return Err(ErrorKind::InUse { by: "compute instances" }.into());
        }
        self.gpu_mut(index)?.instances[gi as usize - 1].used = 0;
        self.recompute();
        Ok(())
    }

    /// Makes a compute instance of so many slices. Returns its id in the GPU instance.
    pub fn create_compute(&mut self, index: u32, gi: u32, slices: u32) -> Result<u32, DriverError> {
        need_root("changing MIG instances")?;
        let gpu = self.live_gpu(index)?;
        if slices == 0 || slices > gpu.instance(gi)?.slices {
            return Err(ErrorKind::Invalid { what: "compute instance profile" }.into());
        }
        let no_room = ErrorKind::InsufficientResources { what: "no compute slices left" };
        if gpu.compute_remaining(gi, slices)? == 0 {
            return Err(no_room.into());
        }
        let gpu = self.gpu_mut(index)?;
        gpu.instances_made = gpu.instances_made.wrapping_add(1);
        let generation = gpu.instances_made;
        let compute = &mut gpu.instances[gi as usize - 1].compute;
        let slot = compute.iter().position(|ci| ci.used == 0).ok_or(no_room)?;
        compute[slot] = ComputeInstance { used: 1, slices, generation };
        self.recompute();
        Ok(slot as u32)
    }

    /// Removes a compute instance that no process uses.
    pub fn destroy_compute(&mut self, index: u32, mig: MigDevice) -> Result<(), DriverError> {
        need_root("changing MIG instances")?;
        self.live_gpu(index)?.compute_instance(mig)?;
        if !self.residents(Place { gpu: index, mig: Some(mig) }).is_empty() {
            return Err(ErrorKind::InUse { by: "processes on the instance" }.into());
        }
        let instance = &mut self.gpu_mut(index)?.instances[mig.gi as usize - 1];
        instance.compute[mig.ci as usize].used = 0;
        self.recompute();
        Ok(())
    }
}
