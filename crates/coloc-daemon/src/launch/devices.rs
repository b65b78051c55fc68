//! Which devices a task is shown, and what has to be made so that they are there.

use super::{LaunchError, Launcher};
use crate::record::Record;
use crate::sharing::{PartitionError, place_of};
use coloc_gpu::device::Uuid;
use coloc_gpu::mig::Place;
use coloc_model::mig::Instance;
use coloc_model::{GpuId, Share, Time};

impl Launcher {
    /// The devices that a task will see: its GPUs, or the instance that is made for it now.
    pub(super) fn devices(
        &mut self,
        record: &Record,
        others: &[(GpuId, Instance)],
    ) -> Result<Vec<Uuid>, LaunchError> {
        let Some(placement) = &record.placement else { return Ok(Vec::new()) };
        let partitions = &mut self.sharing.partitions;
        let named = placement
            .slots
            .iter()
            .filter_map(|slot| Some((slot, self.uuids.get(slot.gpu.index())?.clone())));
        if placement.share == Share::Mig && placement.slots.len() > 1 {
            return Err(PartitionError::Several { gpus: placement.slots.len() }.into());
        }
        let mut devices = Vec::new();
        for (slot, uuid) in named {
            match slot.instance {
                _ if placement.share != Share::Mig => {
                    partitions.make_whole(&uuid)?;
                    devices.push(uuid);
                }
                None => return Err(PartitionError::NoSlices { gpu: uuid }.into()),
                Some(instance) => {
                    let here = others.iter().filter(|(gpu, _)| *gpu == slot.gpu);
                    let kept: Vec<Place> = here.map(|&(_, instance)| place_of(instance)).collect();
                    devices.push(partitions.give(record.id, &uuid, instance, &kept)?);
                }
            }
        }
        Ok(devices)
    }

    /// The driver says that a GPU cannot be used.
    pub fn is_gone(&self, gpu: GpuId) -> bool {
        let Some(uuid) = self.uuids.get(gpu.index()) else { return false };
        self.sharing.partitions.is_gone(uuid, gpu)
    }

    /// Destroys MIG instances that no task has wanted for a while.
    pub fn sweep_instances(&mut self, now: Time, wanted: &[(GpuId, Instance)]) {
        let place = |&(gpu, instance): &(GpuId, Instance)| {
            Some((self.uuids.get(gpu.index())?.clone(), place_of(instance)))
        };
        let kept: Vec<(Uuid, Place)> = wanted.iter().filter_map(place).collect();
        self.sharing.partitions.sweep(now, &kept);
    }
}
