//! NVML: the driver's own library, real or emulated.

mod events;
mod gpm;
mod lists;
mod mig;
mod query;

pub(crate) use events::{Heard, wait_for_xids};

use super::{Driver, DriverError};
use crate::device::{DeviceProcess, Identity, ProcessUtilization, Versions, Vitals};
use crate::mig::{Board, ComputeInstanceId, GpuInstanceId, MigDevice, Place};
use crate::sample::Reading;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use std::ffi::OsStr;

/// The name under which the driver installs its library; the unversioned one comes with developer packages only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Loads the library from where the system keeps it and initializes it.
pub fn connect() -> Result<Box<dyn Driver>, DriverError> {
    Ok(Box::new(NvmlDriver::from_library(OsStr::new(LIBRARY))?))
}

/// A connection to NVML.
#[derive(Debug)]
pub struct NvmlDriver {
    // Declared before the library, so that they are freed before it is shut down.
    gpm: gpm::Samples,
    handles: lists::Handles,
    last_seen: Vec<u64>,
    nvml: Nvml,
}

impl NvmlDriver {
    /// Loads a library by name or path and initializes it.
    pub fn from_library(library: &OsStr) -> Result<Self, DriverError> {
        let nvml = Nvml::builder().lib_path(library).init();
        let nvml = nvml.map_err(|error| translate("initializing NVML", error))?;
        Ok(NvmlDriver {
            gpm: gpm::Samples::default(),
            handles: lists::Handles::default(),
            last_seen: Vec::new(),
            nvml,
        })
    }

    fn device(&mut self, index: u32) -> Result<Device<'_>, DriverError> {
        self.handles.device(&self.nvml, index)
    }
}

impl Drop for NvmlDriver {
    fn drop(&mut self) {
        self.gpm.free(&self.nvml);
    }
}

/// What the wrapper's errors mean to us.
fn translate(what: &'static str, error: NvmlError) -> DriverError {
    match error {
        NvmlError::LibloadingError(error) => DriverError::NoLibrary { detail: error.to_string() },
        NvmlError::LibraryNotFound => {
            DriverError::NoLibrary { detail: format!("{LIBRARY} was not found") }
        }
        // A library that forgot its initialization was reloaded beneath us.
        NvmlError::DriverNotLoaded | NvmlError::Uninitialized => DriverError::NotLoaded,
        NvmlError::LibRmVersionMismatch => DriverError::VersionMismatch,
        NvmlError::GpuLost => DriverError::Lost,
        NvmlError::ResetRequired => DriverError::ResetRequired,
        NvmlError::NoPermission => DriverError::NoPermission { what },
        NvmlError::NotSupported
        | NvmlError::FunctionNotFound
        | NvmlError::FailedToLoadSymbol(_) => DriverError::NotSupported { what },
        NvmlError::InUse => DriverError::InUse { what },
        NvmlError::NotFound => DriverError::NotFound { what },
        other => DriverError::Other { what, detail: other.to_string() },
    }
}

impl Driver for NvmlDriver {
    fn versions(&mut self) -> Result<Versions, DriverError> {
        query::versions(&self.nvml)
    }
    fn count(&mut self) -> Result<u32, DriverError> {
        // A caller that counts is about to look at all of them.
        self.handles.forget();
        self.nvml.device_count().map_err(|error| translate("counting devices", error))
    }
    fn identity(&mut self, index: u32) -> Result<Identity, DriverError> {
        query::identity(&self.device(index)?, index)
    }
    fn vitals(&mut self, index: u32) -> Result<Vitals, DriverError> {
        query::vitals(&self.nvml, &self.handles.device(&self.nvml, index)?)
    }
    fn refresh(&mut self, index: u32, vitals: &mut Vitals) -> Result<(), DriverError> {
        query::refresh(&self.device(index)?, vitals)
    }
    fn processes(&mut self, index: u32) -> Result<Vec<DeviceProcess>, DriverError> {
        query::processes(&self.nvml, &self.handles.device(&self.nvml, index)?)
    }
    fn process_utilization(&mut self, index: u32) -> Result<Vec<ProcessUtilization>, DriverError> {
        let slot = index as usize;
        let since = self.last_seen.get(slot).copied().unwrap_or(0);
        let device = self.handles.device(&self.nvml, index)?;
        let (newest, utilization) = query::process_utilization(&self.nvml, &device, since)?;
        if self.last_seen.len() <= slot {
            self.last_seen.resize(slot + 1, 0);
        }
        self.last_seen[slot] = newest;
        Ok(utilization)
    }
    fn gpm(&mut self, index: u32) -> Result<Option<Reading>, DriverError> {
        let device = self.handles.device(&self.nvml, index)?;
        self.gpm.read(&self.nvml, &device, index, None)
    }

    fn gpm_of_instance(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
    ) -> Result<Option<Reading>, DriverError> {
        let device = self.handles.device(&self.nvml, index)?;
        self.gpm.read(&self.nvml, &device, index, Some(gi.0))
    }
    fn mig_board(&mut self, index: u32) -> Result<Board, DriverError> {
        mig::board(&self.nvml, &self.handles.device(&self.nvml, index)?)
    }
    fn set_mig(&mut self, index: u32, on: bool) -> Result<(), DriverError> {
        let outcome = mig::set_mode(&self.nvml, &self.handles.device(&self.nvml, index)?, on);
        // A device that was reset has a new handle.
        self.handles.forget();
        outcome
    }
    fn create_instance(
        &mut self,
        index: u32,
        profile: u32,
        place: Place,
    ) -> Result<GpuInstanceId, DriverError> {
        let device = self.handles.device(&self.nvml, index)?;
        mig::create_instance(&self.nvml, &device, profile, place)
    }
    fn destroy_instance(&mut self, index: u32, gi: GpuInstanceId) -> Result<(), DriverError> {
        mig::destroy_instance(&self.nvml, &self.handles.device(&self.nvml, index)?, gi)
    }
    fn create_compute(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
        slices: u8,
    ) -> Result<ComputeInstanceId, DriverError> {
        mig::create_compute(&self.nvml, &self.handles.device(&self.nvml, index)?, gi, slices)
    }
    fn destroy_compute(
        &mut self,
        index: u32,
        gi: GpuInstanceId,
        ci: ComputeInstanceId,
    ) -> Result<(), DriverError> {
        mig::destroy_compute(&self.nvml, &self.handles.device(&self.nvml, index)?, gi, ci)
    }
    fn mig_devices(&mut self, index: u32) -> Result<Vec<MigDevice>, DriverError> {
        mig::devices(&self.nvml, &self.handles.device(&self.nvml, index)?)
    }
}
