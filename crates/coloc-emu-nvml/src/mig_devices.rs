//! MIG devices: handles of compute instances that can be asked like GPUs.

use crate::answer::{Code, answer};
use crate::handle;
use coloc_emu::Place;
use coloc_emu::abi::put;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use std::ffi::c_uint;

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceIsMigDeviceHandle(
    device: nvmlDevice_t,
    target: *mut c_uint,
) -> nvmlReturn_t {
    answer(|_| Ok(put(target, handle::place(device)?.mig.is_some().into())?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        Ok(put(id, place.mig.ok_or(Code::NOT_SUPPORTED)?.gi)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetComputeInstanceId(
    device: nvmlDevice_t,
    id: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        Ok(put(id, place.mig.ok_or(Code::NOT_SUPPORTED)?.ci)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxMigDeviceCount(
    device: nvmlDevice_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        Ok(put(count, gpu.model().mig().map_or(0, |table| table.compute_slices.into()))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    target: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (gpu_index, gpu) = handle::whole(state, device)?;
        if gpu.model().mig().is_none() {
            return Err(Code::NOT_SUPPORTED);
        }
        let mig = gpu.mig_devices().get(index as usize).copied().ok_or(Code::NOT_FOUND)?;
        Ok(put(target, handle::device(Place { gpu: gpu_index, mig: Some(mig) }))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    mig_device: nvmlDevice_t,
    target: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, mig_device)?;
        place.mig.ok_or(Code::INVALID_ARGUMENT)?;
        Ok(put(target, handle::device(Place::whole(place.gpu)))?)
    })
}
