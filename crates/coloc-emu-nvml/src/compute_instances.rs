//! MIG: compute instances inside GPU instances.

use crate::answer::{Code, answer, check_version};
use crate::gpu_instances::{known_instance, sms};
use crate::handle;
use coloc_emu::Place;
use coloc_emu::abi::{fixed_text, get, put, put_slice};
use coloc_emu::fleet::{Gpu, MigDevice};
use nvml_wrapper_sys::bindings::{
    nvmlComputeInstance_t, nvmlComputeInstanceInfo_t, nvmlComputeInstancePlacement_t,
    nvmlComputeInstanceProfileInfo_t, nvmlComputeInstanceProfileInfo_v2_t, nvmlGpuInstance_t,
    nvmlReturn_t,
};
use std::ffi::c_uint;

/// Slices of a compute instance profile; ids and enumeration values are the same.
fn slices(number: c_uint) -> Result<u32, Code> {
    match number {
        0..=3 => Ok(number + 1),
        4 => Ok(7),
        _ => Err(Code::NOT_SUPPORTED),
    }
}

fn fitting_slices(gpu: &Gpu, gi: u32, number: c_uint) -> Result<u32, Code> {
    let slices = slices(number)?;
    let fits = slices <= gpu.instance_view(gi)?.profile.compute().into();
    if fits { Ok(slices) } else { Err(Code::NOT_SUPPORTED) }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
    instance: nvmlGpuInstance_t,
    number: c_uint,
    _engine: c_uint,
    target: *mut nvmlComputeInstanceProfileInfo_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gi, gpu) = known_instance(state, instance)?;
        let slices = fitting_slices(gpu, gi, number)?;
        let most = u32::from(gpu.instance_view(gi)?.profile.compute()) / slices;
        let info = nvmlComputeInstanceProfileInfo_t {
            id: number,
            sliceCount: slices,
            instanceCount: most,
            multiprocessorCount: sms(gpu, slices),
            sharedCopyEngineCount: slices,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
        };
        Ok(put(target, info)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    instance: nvmlGpuInstance_t,
    number: c_uint,
    _engine: c_uint,
    target: *mut nvmlComputeInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gi, gpu) = known_instance(state, instance)?;
        let slices = fitting_slices(gpu, gi, number)?;
        let asked = get(target.cast::<c_uint>())?;
        check_version::<nvmlComputeInstanceProfileInfo_v2_t>(asked, 2)?;
        let profile = gpu.instance_view(gi)?.profile;
        let info = nvmlComputeInstanceProfileInfo_v2_t {
            version: asked,
            id: number,
            sliceCount: slices,
            instanceCount: u32::from(profile.compute()) / slices,
            multiprocessorCount: sms(gpu, slices),
            sharedCopyEngineCount: slices,
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
            name: fixed_text(&profile.device_name(slices)),
        };
        Ok(put(target, info)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    instance: nvmlGpuInstance_t,
    profile: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gi, gpu) = known_instance(state, instance)?;
        let slices = fitting_slices(gpu, gi, profile)?;
        Ok(put(count, gpu.compute_remaining(gi, slices)?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceCreateComputeInstance(
    instance: nvmlGpuInstance_t,
    profile: c_uint,
    target: *mut nvmlComputeInstance_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gi, gpu) = known_instance(state, instance)?;
        let slices = fitting_slices(gpu, gi, profile)?;
        get(target)?;
        let ci = state.create_compute(index, gi, slices)?;
        Ok(put(target, handle::compute_instance(index, MigDevice { gi, ci }))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlComputeInstanceDestroy(instance: nvmlComputeInstance_t) -> nvmlReturn_t {
    answer(|state| {
        let (index, mig) = handle::compute_of(instance)?;
        if index >= state.gpu_count() {
            return Err(Code::INVALID_ARGUMENT);
        }
        Ok(state.destroy_compute(index, mig)?)
    })
}

fn compute_info(
    instance: nvmlComputeInstance_t,
    target: *mut nvmlComputeInstanceInfo_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, mig) = handle::compute_of(instance)?;
        let gpu = state.live_gpu(index).map_err(|_| Code::INVALID_ARGUMENT)?;
        let slices = gpu.compute_slices(mig)?;
        let info = nvmlComputeInstanceInfo_t {
            device: handle::device(Place::whole(index)),
            gpuInstance: handle::gpu_instance(index, mig.gi),
            id: mig.ci,
            profileId: if slices == 7 { 4 } else { slices - 1 },
            placement: nvmlComputeInstancePlacement_t { start: 0, size: slices },
        };
        Ok(put(target, info)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlComputeInstanceGetInfo(
    instance: nvmlComputeInstance_t,
    target: *mut nvmlComputeInstanceInfo_t,
) -> nvmlReturn_t {
    compute_info(instance, target)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlComputeInstanceGetInfo_v2(
    instance: nvmlComputeInstance_t,
    target: *mut nvmlComputeInstanceInfo_t,
) -> nvmlReturn_t {
    compute_info(instance, target)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstances(
    instance: nvmlGpuInstance_t,
    profile: c_uint,
    instances: *mut nvmlComputeInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gi, gpu) = known_instance(state, instance)?;
        let wanted = slices(profile)?;
        let mut found = Vec::new();
        for ci in gpu.compute_ids(gi)? {
            let mig = MigDevice { gi, ci };
            if gpu.compute_slices(mig)? == wanted {
                found.push(handle::compute_instance(index, mig));
            }
        }
        put(count, found.len() as c_uint)?;
        Ok(put_slice(instances, &found)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetComputeInstanceById(
    instance: nvmlGpuInstance_t,
    id: c_uint,
    target: *mut nvmlComputeInstance_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gi, gpu) = known_instance(state, instance)?;
        let mig = MigDevice { gi, ci: id };
        gpu.compute_slices(mig)?;
        Ok(put(target, handle::compute_instance(index, mig))?)
    })
}
