//! Device memory and its errors.

use crate::answer::{Code, answer, check_version};
use crate::handle;
use coloc_emu::abi::{get, put};
use coloc_emu::fleet::Gpu;
use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlDevice_t, nvmlEccErrorCounts_t, nvmlMemory_t, nvmlMemory_v2_t,
    nvmlReturn_t,
};
use std::ffi::{c_uint, c_ulonglong};

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo(
    device: nvmlDevice_t,
    target: *mut nvmlMemory_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        let memory = state.memory(place)?;
        let value =
            nvmlMemory_t { total: memory.total.0, free: memory.free().0, used: memory.used.0 };
        Ok(put(target, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    target: *mut nvmlMemory_v2_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        let asked = get(target)?;
        check_version::<nvmlMemory_v2_t>(asked.version, 2)?;
        let memory = state.memory(place)?;
        // The emulated driver keeps no memory for itself.
        let value = nvmlMemory_v2_t {
            version: asked.version,
            total: memory.total.0,
            reserved: 0,
            free: memory.free().0,
            used: memory.used.0,
        };
        Ok(put(target, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetBAR1MemoryInfo(
    device: nvmlDevice_t,
    target: *mut nvmlBAR1Memory_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        let total = state.memory(place)?.total.0.next_power_of_two();
        Ok(put(target, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total, bar1Used: 0 })?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetEccMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        handle::whole(state, device)?;
        put(current, 1)?;
        Ok(put(pending, 1)?)
    })
}

/// Errors by kind: 0 corrected, 1 uncorrected.
fn errors(kind: c_uint, (corrected, uncorrected): (u64, u64)) -> Result<u64, Code> {
    match kind {
        0 => Ok(corrected),
        1 => Ok(uncorrected),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: nvmlDevice_t,
    kind: c_uint,
    counter: c_uint,
    target: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if counter > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        Ok(put(target, errors(kind, gpu.ecc_errors())?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetDetailedEccErrors(
    device: nvmlDevice_t,
    kind: c_uint,
    counter: c_uint,
    target: *mut nvmlEccErrorCounts_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if counter > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let deviceMemory = errors(kind, gpu.ecc_errors())?;
        let counts = nvmlEccErrorCounts_t { l1Cache: 0, l2Cache: 0, deviceMemory, registerFile: 0 };
        Ok(put(target, counts)?)
    })
}

/// From Ampere on rows of memory are remapped; before, pages are retired.
fn remaps_rows(gpu: &Gpu) -> bool {
    gpu.board().capability >= (8, 0)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRemappedRows(
    device: nvmlDevice_t,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if !remaps_rows(gpu) {
            return Err(Code::NOT_SUPPORTED);
        }
        put(corrected, 0)?;
        put(uncorrected, gpu.remapped_rows())?;
        put(pending, gpu.remap_pending().into())?;
        Ok(put(failed, gpu.remap_failed().into())?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRetiredPagesPendingStatus(
    device: nvmlDevice_t,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if remaps_rows(gpu) {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(put(pending, gpu.remap_pending().into())?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: nvmlDevice_t,
    kind: c_uint,
    counter: c_uint,
    location: c_uint,
    target: *mut c_ulonglong,
) -> nvmlReturn_t {
    const DEVICE_MEMORY: c_uint = 2;
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if counter > 1 || location > 8 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let count = errors(kind, gpu.ecc_errors())?;
        Ok(put(target, if location == DEVICE_MEMORY { count } else { 0 })?)
    })
}
