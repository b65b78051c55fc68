//! The driver behind a narrow trait: NVML in production, a scripted one in tests.
//!
//! Calls block and may hang. Nothing outside this module makes them directly: see [`Guarded`].

mod error;
mod guarded;
pub mod nvml;
#[cfg(test)]
pub(crate) mod scripted;
mod xids;

pub use error::DriverError;
pub use guarded::{Connect, Guarded};
pub use xids::{XidEvent, Xids};

use crate::device::{DeviceProcess, Identity, ProcessUtilization, Versions, Vitals};
use crate::mig::{Board, ComputeInstanceId, GpuInstanceId, MigDevice, Place};
use crate::sample::Reading;

/// What coloc asks of a driver. Devices are named by the index that the driver gives them now; an index may
/// name another device after a reconnect, a UUID never does.
pub trait Driver {
    /// Versions of the driver and of the CUDA that it offers.
    fn versions(&mut self) -> Result<Versions, DriverError>;
    /// How many devices there are.
    fn count(&mut self) -> Result<u32, DriverError>;
    /// What never changes about a device.
    fn identity(&mut self, index: u32) -> Result<Identity, DriverError>;
    /// What changes from moment to moment.
    fn vitals(&mut self, index: u32) -> Result<Vitals, DriverError>;
    /// Reads again what of the vitals changes fast: memory, utilization, power and energy.
    fn refresh(&mut self, index: u32, vitals: &mut Vitals) -> Result<(), DriverError>;
    /// The processes that have a context on a device.
    fn processes(&mut self, index: u32) -> Result<Vec<DeviceProcess>, DriverError>;
    /// How much time each process had kernels running, since the last call. Empty when nothing ran.
    fn process_utilization(&mut self, index: u32) -> Result<Vec<ProcessUtilization>, DriverError>;
    /// Activity since the last call by the performance monitors of Hopper and newer. `None` on the first call,
    /// and when calls follow each other too closely.
    fn gpm(&mut self, index: u32) -> Result<Option<Reading>, DriverError>;

    /// The same of one GPU instance.
    fn gpm_of_instance(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
    ) -> Result<Option<Reading>, DriverError>;

    /// The profiles, placements and instances of a device in MIG mode.
    fn mig_board(&mut self, index: u32) -> Result<Board, DriverError>;
    /// Turns MIG mode on or off. Needs an idle device.
    fn set_mig(&mut self, index: u32, on: bool) -> Result<(), DriverError>;
    /// Creates a GPU instance at a place.
    fn create_instance(
        &mut self,
        index: u32,
        profile: u32,
        place: Place,
    ) -> Result<GpuInstanceId, DriverError>;
    /// Destroys a GPU instance, which must have no compute instances.
    fn destroy_instance(&mut self, index: u32, gi: GpuInstanceId) -> Result<(), DriverError>;
    /// Creates a compute instance with this many slices in a GPU instance.
    fn create_compute(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
        slices: u8,
    ) -> Result<ComputeInstanceId, DriverError>;
    /// Destroys a compute instance.
    fn destroy_compute(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
        ci: ComputeInstanceId,
    ) -> Result<(), DriverError>;
    /// The devices that processes can be given, one a compute instance.
    fn mig_devices(&mut self, index: u32) -> Result<Vec<MigDevice>, DriverError>;
}
