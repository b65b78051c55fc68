//! Which devices a task is shown, and what has to be made so that they are there.

use super::sharing::{PartitionError, place_of};
use super::{LocalExecutor, NotStarted};
use crate::record::Record;
use coloc_gpu::device::Uuid;
use coloc_gpu::mig::Place;
use coloc_model::mig::Instance;
use coloc_model::{GpuId, Share, Time};

impl LocalExecutor {
    /// The devices that a task will see: its GPUs, or the instance that is made for it now.
    pub(super) fn devices(
        &mut self,
        record: &Record,
        neighbours: &[&Record],
    ) -> Result<Vec<Uuid>, NotStarted> {
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
                    let others = neighbours.iter().flat_map(|record| instances(record));
                    let here = others.filter(|(gpu, _)| *gpu == slot.gpu);
                    let kept: Vec<Place> = here.map(|(_, instance)| place_of(instance)).collect();
                    devices.push(partitions.give(record.id, &uuid, instance, &kept)?);
                }
            }
        }
        Ok(devices)
    }

    /// Destroys MIG instances that no task has wanted for a while.
    pub(super) fn sweep_instances(
        &mut self,
        now: Time,
        attempts: &mut dyn Iterator<Item = &Record>,
    ) {
        if self.sharing.partitions.is_empty() {
            return;
        }
        let place = |(gpu, instance): (GpuId, Instance)| {
            Some((self.uuids.get(gpu.index())?.clone(), place_of(instance)))
        };
        let kept: Vec<(Uuid, Place)> = attempts.flat_map(instances).filter_map(place).collect();
        self.sharing.partitions.sweep(now, &kept);
    }
}

/// Where the MIG instances of an attempt lie.
fn instances(record: &Record) -> impl Iterator<Item = (GpuId, Instance)> {
    let slots = record.placement.iter().flat_map(|placement| placement.slots.iter());
    slots.filter_map(|slot| Some((slot.gpu, slot.instance?)))
}
