//! What can be set on a device.

use crate::answer::{Code, answer};
use crate::handle;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use std::ffi::c_uint;

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetPowerManagementLimit(
    device: nvmlDevice_t,
    milliwatts: c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        Ok(state.set_power_limit(index, f64::from(milliwatts) / 1000.0)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetPersistenceMode(device: nvmlDevice_t, mode: c_uint) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        Ok(state.set_persistence(index, mode == 1)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetComputeMode(device: nvmlDevice_t, mode: c_uint) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        Ok(state.set_compute_mode(index, mode)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetGpuLockedClocks(
    device: nvmlDevice_t,
    lowest: c_uint,
    highest: c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        if highest == 0 || lowest > highest {
            return Err(Code::INVALID_ARGUMENT);
        }
        Ok(state.set_locked_clocks(index, [lowest, highest])?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceResetGpuLockedClocks(device: nvmlDevice_t) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        Ok(state.set_locked_clocks(index, [0, 0])?)
    })
}
