//! The GPUs of this machine over time: which there are, which were lost, which came.

use crate::device::{Identity, Uuid};
use crate::driver::{Driver, DriverError};
use coloc_model::{Fleet, FleetError, GpuId, GpuModel, Time};
use serde::Serialize;

/// Whether a GPU can be used.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It can.
    Present,
    /// It cannot since then.
    Lost {
        /// Since when.
        since: Time,
        /// Why, and what to do.
        why: String,
    },
}

/// A GPU that was seen at least once.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Device {
    /// What never changes about it. Its index is the last one it had.
    pub identity: Identity,
    /// Whether it can be used.
    pub state: DeviceState,
}

/// Something changed.
#[derive(Clone, PartialEq, Debug)]
pub enum InventoryEvent {
    /// A GPU came for the first time.
    Appeared {
        /// Its place in the fleet.
        gpu: GpuId,
        /// Its name.
        uuid: Uuid,
    },
    /// A GPU cannot be used any more.
    Lost {
        /// Its place in the fleet.
        gpu: GpuId,
        /// Its name.
        uuid: Uuid,
        /// Why.
        why: String,
    },
    /// A GPU that was lost is back.
    Returned {
        /// Its place in the fleet.
        gpu: GpuId,
        /// Its name.
        uuid: Uuid,
    },
}

/// What the driver says of one index.
pub type Found = (u32, Result<Identity, DriverError>);

/// Asks a driver for everything that it has.
pub fn survey(driver: &mut dyn Driver) -> Result<Vec<Found>, DriverError> {
    let count = driver.count()?;
    Ok((0..count).map(|index| (index, driver.identity(index))).collect())
}

/// Every GPU that was ever seen, in the order in which they appeared. A GPU keeps its place in the fleet for good: lost
/// ones stay, new ones come at the end.
#[derive(Clone, Default, Debug)]
pub struct Inventory {
    devices: Vec<Device>,
}

impl Inventory {
    /// The devices, by [`GpuId`].
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// The devices that can be used now.
    pub fn present(&self) -> impl Iterator<Item = (GpuId, &Identity)> {
        self.devices
            .iter()
            .enumerate()
            .filter(|(_, device)| device.state == DeviceState::Present)
            .map(|(at, device)| (GpuId::from(at), &device.identity))
    }

    /// The place of a GPU in the fleet.
    pub fn find(&self, uuid: &Uuid) -> Option<GpuId> {
        self.devices.iter().position(|device| device.identity.uuid == *uuid).map(GpuId::from)
    }

    /// The fleet that schedulers see. There is none without a GPU.
    pub fn fleet(&self) -> Result<Fleet, FleetError> {
        let models: Vec<GpuModel> =
            self.devices.iter().map(|device| device.identity.model()).collect();
        Fleet::server(&models)
    }

    /// Takes a survey, or the error that stands in its place, and tells what changed.
    pub fn observe(
        &mut self,
        now: Time,
        survey: Result<Vec<Found>, DriverError>,
    ) -> Vec<InventoryEvent> {
        let found = match survey {
            Ok(found) => found,
            // A driver that is slow to answer says nothing of its devices.
            Err(DriverError::TimedOut { .. } | DriverError::Hung) => return Vec::new(),
            Err(error) => {
                let all = (0..self.devices.len()).collect::<Vec<_>>();
                return all.into_iter().filter_map(|at| self.lose(now, at, &error)).collect();
            }
        };
        let mut events = Vec::new();
        let mut seen = vec![false; self.devices.len()];
        for (index, answer) in found {
            match answer {
                Ok(identity) => {
                    events.extend(self.see(identity, &mut seen));
                }
                // A lost device does not tell its name any more: it is the one that had this index.
                Err(error) => {
                    let unseen =
                        |at: &usize| !seen[*at] && self.devices[*at].identity.index == index;
                    if let Some(at) = (0..self.devices.len()).find(unseen) {
                        seen[at] = true;
                        events.extend(self.lose(now, at, &error));
                    }
                }
            }
        }
        let gone = DriverError::NotFound { what: "the device is no longer listed" };
        for at in (0..seen.len()).filter(|&at| !seen[at]) {
            events.extend(self.lose(now, at, &gone));
        }
        events
    }

    fn see(&mut self, identity: Identity, seen: &mut Vec<bool>) -> Option<InventoryEvent> {
        let uuid = identity.uuid.clone();
        let Some(gpu) = self.find(&uuid) else {
            let gpu = GpuId::from(self.devices.len());
            self.devices.push(Device { identity, state: DeviceState::Present });
            seen.push(true);
            return Some(InventoryEvent::Appeared { gpu, uuid });
        };
        seen[gpu.index()] = true;
        let device = &mut self.devices[gpu.index()];
        device.identity = identity;
        let before = std::mem::replace(&mut device.state, DeviceState::Present);
        (before != DeviceState::Present).then_some(InventoryEvent::Returned { gpu, uuid })
    }

    fn lose(&mut self, now: Time, at: usize, error: &DriverError) -> Option<InventoryEvent> {
        // Only these say that the device is out of service; others that a question was not answered.
        let out = error.is_device_loss()
            || error.wants_reconnect()
            || matches!(error, DriverError::NotFound { .. });
        let device = &mut self.devices[at];
        if !out || device.state != DeviceState::Present {
            return None;
        }
        let why = error.to_string();
        device.state = DeviceState::Lost { since: now, why: why.clone() };
        Some(InventoryEvent::Lost { gpu: GpuId::from(at), uuid: device.identity.uuid.clone(), why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::{Scripted, gpu};

    fn look(inventory: &mut Inventory, scripted: &Scripted, at: u64) -> Vec<InventoryEvent> {
        let found = scripted.connect()().and_then(|mut driver| survey(driver.as_mut()));
        inventory.observe(Time(at), found)
    }

    #[test]
    fn a_lost_gpu_keeps_its_place_and_returns_to_it() {
        let scripted = Scripted::with_gpus(2);
        let mut inventory = Inventory::default();
        assert_eq!(look(&mut inventory, &scripted, 0).len(), 2);
        assert_eq!(look(&mut inventory, &scripted, 1), []);
        scripted.script().gpus[0].failure = Some(DriverError::Lost);
        let events = look(&mut inventory, &scripted, 2);
        assert!(
            matches!(&events[..], [InventoryEvent::Lost { gpu: GpuId(0), why, .. }] if why.contains("XID"))
        );
        assert_eq!(look(&mut inventory, &scripted, 3), [], "it is said once");
        assert_eq!(inventory.present().map(|(gpu, _)| gpu).collect::<Vec<_>>(), [GpuId(1)]);
        assert_eq!(inventory.fleet().expect("two GPUs").len(), 2, "its place stays");
        scripted.script().gpus[0].failure = None;
        let events = look(&mut inventory, &scripted, 4);
        assert!(matches!(events[..], [InventoryEvent::Returned { gpu: GpuId(0), .. }]));
    }

    #[test]
    fn gpus_that_are_plugged_in_come_at_the_end_though_their_index_may_not() {
        let scripted = Scripted::with_gpus(1);
        let mut inventory = Inventory::default();
        look(&mut inventory, &scripted, 0);
        scripted.script().gpus.insert(0, gpu(9));
        let events = look(&mut inventory, &scripted, 1);
        assert!(matches!(events[..], [InventoryEvent::Appeared { gpu: GpuId(1), .. }]));
        assert_eq!(inventory.devices()[0].identity.index, 1, "the old one was renumbered");
        scripted.script().gpus.remove(1);
        let events = look(&mut inventory, &scripted, 2);
        assert!(matches!(events[..], [InventoryEvent::Lost { gpu: GpuId(0), .. }]), "{events:?}");
    }

    #[test]
    fn a_driver_that_goes_takes_all_gpus_and_brings_them_back() {
        let scripted = Scripted::with_gpus(2);
        let mut inventory = Inventory::default();
        look(&mut inventory, &scripted, 0);
        scripted.unload();
        assert_eq!(look(&mut inventory, &scripted, 1).len(), 2);
        assert_eq!(inventory.present().count(), 0);
        scripted.load();
        assert_eq!(look(&mut inventory, &scripted, 2).len(), 2);
        assert_eq!(inventory.present().count(), 2);
    }

    #[test]
    fn a_slow_driver_loses_nothing() {
        let scripted = Scripted::with_gpus(1);
        let mut inventory = Inventory::default();
        look(&mut inventory, &scripted, 0);
        assert_eq!(inventory.observe(Time(1), Err(DriverError::Hung)), []);
        scripted.script().gpus[0].failure =
            Some(DriverError::NoPermission { what: "reading the device's identity" });
        assert_eq!(look(&mut inventory, &scripted, 2), []);
        assert_eq!(inventory.present().count(), 1);
    }
}
