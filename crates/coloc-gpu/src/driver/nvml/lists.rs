//! Lists of processes in one call each. The wrapper asks for the length first, which doubles the calls, and fails
//! when a process comes between the two.
//!
//! `unsafe` because these are calls into a C library: a buffer is passed with the length that it has, and handles
//! are those that the same library gave out and keeps valid until it is shut down.
#![allow(unsafe_code)]

use super::{DriverError, translate};
use nvml_wrapper::error::{NvmlError, nvml_sym};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings as sys;
use std::mem::zeroed;

/// More than MPS takes clients.
const USUAL: usize = 64;
/// A list that grows with every try is given up on.
const TRIES: usize = 4;

/// Device handles by index: looking one up is a call.
#[derive(Debug, Default)]
pub(super) struct Handles {
    known: Vec<Option<sys::nvmlDevice_t>>,
}

impl Handles {
    pub(super) fn device<'nvml>(
        &mut self,
        nvml: &'nvml Nvml,
        index: u32,
    ) -> Result<Device<'nvml>, DriverError> {
        if let Some(Some(handle)) = self.known.get(index as usize) {
            // SAFETY: the handle is of this library, which is not shut down while it is borrowed.
            return Ok(unsafe { Device::new(*handle, nvml) });
        }
        let device = nvml.device_by_index(index);
        let device = device.map_err(|error| translate("finding the device", error))?;
        if self.known.len() <= index as usize {
            self.known.resize(index as usize + 1, None);
        }
        // SAFETY: it is only ever used with this library.
        self.known[index as usize] = Some(unsafe { device.handle() });
        Ok(device)
    }

    /// Looks all of them up anew: after a loss an index may name another device.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

/// Fills a buffer by a call that says how much there is.
fn fill<T: Copy>(
    what: &'static str,
    mut call: impl FnMut(*mut u32, *mut T) -> sys::nvmlReturn_t,
    blank: T,
) -> Result<Vec<T>, DriverError> {
    let mut list = vec![blank; USUAL];
    for _ in 0..TRIES {
        let mut count = list.len() as u32;
        match call(&mut count, list.as_mut_ptr()) {
            sys::nvmlReturn_enum_NVML_SUCCESS => {
                list.truncate(count as usize);
                return Ok(list);
            }
            sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE => {
                list.resize((count as usize).clamp(list.len(), 1 << 16) + USUAL, blank);
            }
            code => return Err(translate(what, NvmlError::from(code))),
        }
    }
    Err(DriverError::Other { what, detail: "the list grows faster than it can be read".to_owned() })
}

/// Which list.
#[derive(Clone, Copy, Debug)]
pub(super) enum List {
    Compute,
    Mps,
    Graphics,
}

pub(super) fn processes(
    nvml: &Nvml,
    device: &Device<'_>,
    list: List,
) -> Result<Vec<sys::nvmlProcessInfo_t>, DriverError> {
    const WHAT: &str = "listing processes";
    let library = nvml.lib();
    let call = match list {
        List::Compute => library.nvmlDeviceGetComputeRunningProcesses_v3.as_ref(),
        List::Mps => library.nvmlDeviceGetMPSComputeRunningProcesses_v3.as_ref(),
        List::Graphics => library.nvmlDeviceGetGraphicsRunningProcesses_v3.as_ref(),
    };
    let call = nvml_sym(call).map_err(|error| translate(WHAT, error))?;
    // SAFETY: see the module; all-zero is a valid value of these plain structures.
    unsafe {
        let handle = device.handle();
        fill(WHAT, |count, buffer| call(handle, count, buffer), zeroed())
    }
}

/// Rows of a device's memory that wait for a reset to be replaced, and rows that could not be: whether there are any. The
/// wrapper does not know this function.
pub(super) fn remapped_rows(nvml: &Nvml, device: &Device<'_>) -> Result<(bool, bool), NvmlError> {
    let call = nvml_sym(nvml.lib().nvmlDeviceGetRemappedRows.as_ref())?;
    let [mut corrected, mut uncorrected, mut pending, mut failed] = [0; 4];
    // SAFETY: see the module; the targets are variables of ours.
    let code = unsafe {
        call(device.handle(), &mut corrected, &mut uncorrected, &mut pending, &mut failed)
    };
    match code {
        sys::nvmlReturn_enum_NVML_SUCCESS => Ok((pending != 0, failed != 0)),
        code => Err(NvmlError::from(code)),
    }
}

/// A number that is the same for every handle of a device: events name it by its handle, and one that is lost has no
/// other name any more.
pub(super) fn handle_number(device: &Device<'_>) -> usize {
    // SAFETY: the handle is compared, never used.
    unsafe { device.handle() }.addr()
}

/// Samples of time shares that are newer than a moment in the driver's clock.
pub(super) fn utilization(
    nvml: &Nvml,
    device: &Device<'_>,
    since: u64,
) -> Result<Vec<sys::nvmlProcessUtilizationSample_t>, DriverError> {
    const WHAT: &str = "reading utilization by process";
    let call = nvml_sym(nvml.lib().nvmlDeviceGetProcessUtilization.as_ref());
    let call = call.map_err(|error| translate(WHAT, error))?;
    // SAFETY: as above.
    let filled = unsafe {
        let handle = device.handle();
        fill(WHAT, |count, buffer| call(handle, buffer, count, since), zeroed())
    };
    match filled {
        // Nothing ran: the driver calls it an error.
        Err(DriverError::NotFound { .. }) => Ok(Vec::new()),
        other => other,
    }
}
