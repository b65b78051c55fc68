//! MIG: mode and GPU instances.

use crate::answer::{Code, answer, check_version, version};
use crate::handle;
use coloc_emu::Place;
use coloc_emu::abi::{fixed_text, get, put, put_slice};
use coloc_emu::fleet::{Gpu, State};
use coloc_emu::mig::{self, InstanceProfile};
use coloc_emu::{DriverError, ErrorKind};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstanceInfo_t, nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceProfileInfo_t, nvmlGpuInstanceProfileInfo_v2_t, nvmlGpuInstanceProfileInfo_v3_t,
    nvmlReturn_t,
};
use std::ffi::c_uint;

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMigMode(
    device: nvmlDevice_t,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if gpu.model().mig().is_none() {
            return Err(Code::NOT_SUPPORTED);
        }
        let on = gpu.mig_enabled().into();
        put(current, on)?;
        Ok(put(pending, on)?)
    })
}

/// The call succeeds and the status tells: in use, if processes are on the device.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceSetMigMode(
    device: nvmlDevice_t,
    mode: c_uint,
    status: *mut nvmlReturn_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        if mode > 1 {
            return Err(Code::INVALID_ARGUMENT);
        }
        get(status)?;
        match state.set_mig_mode(index, mode == 1) {
            Ok(()) => Ok(put(status, 0)?),
            Err(DriverError { kind: ErrorKind::InUse { .. } }) => Ok(put(status, Code::IN_USE.0)?),
            Err(error) => Err(error.into()),
        }
    })
}

fn profile_by_enumeration(gpu: &Gpu, number: c_uint) -> Result<InstanceProfile, Code> {
    if number > 0x20 {
        return Err(Code::INVALID_ARGUMENT);
    }
    let found = mig::profiles(gpu.model()).into_iter().find(|p| p.enumeration == number);
    found.ok_or(Code::NOT_SUPPORTED)
}

pub(crate) fn sms(gpu: &Gpu, slices: u32) -> u32 {
    gpu.model().mig().map_or(0, |table| slices * table.sms_per_slice)
}

fn with_profile<T: Copy>(
    device: nvmlDevice_t,
    number: c_uint,
    target: *mut T,
    describe: impl FnOnce(&Gpu, InstanceProfile) -> Result<T, Code>,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let profile = profile_by_enumeration(gpu, number)?;
        Ok(put(target, describe(gpu, profile)?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceProfileInfo(
    device: nvmlDevice_t,
    number: c_uint,
    target: *mut nvmlGpuInstanceProfileInfo_t,
) -> nvmlReturn_t {
    with_profile(device, number, target, |gpu, profile| {
        Ok(nvmlGpuInstanceProfileInfo_t {
            id: profile.id,
            isP2pSupported: 0,
            sliceCount: profile.compute().into(),
            instanceCount: profile.most(),
            multiprocessorCount: sms(gpu, profile.compute().into()),
            copyEngineCount: profile.compute().into(),
            decoderCount: u32::from(profile.compute()) / 2,
            encoderCount: 0,
            jpegCount: profile.media.into(),
            ofaCount: profile.media.into(),
            memorySizeMB: profile.memory().mib() as u64,
        })
    })
}

fn profile_info_v2(gpu: &Gpu, profile: &InstanceProfile) -> nvmlGpuInstanceProfileInfo_v2_t {
    nvmlGpuInstanceProfileInfo_v2_t {
        version: version::<nvmlGpuInstanceProfileInfo_v2_t>(2),
        id: profile.id,
        isP2pSupported: 0,
        sliceCount: profile.compute().into(),
        instanceCount: profile.most(),
        multiprocessorCount: sms(gpu, profile.compute().into()),
        copyEngineCount: profile.compute().into(),
        decoderCount: u32::from(profile.compute()) / 2,
        encoderCount: 0,
        jpegCount: profile.media.into(),
        ofaCount: profile.media.into(),
        memorySizeMB: profile.memory().mib() as u64,
        name: fixed_text(&format!("MIG {}", profile.name())),
    }
}

/// Takes the second and the third version of the struct.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceProfileInfoV(
    device: nvmlDevice_t,
    number: c_uint,
    target: *mut nvmlGpuInstanceProfileInfo_v2_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let profile = profile_by_enumeration(gpu, number)?;
        let second = profile_info_v2(gpu, &profile);
        let asked = get(target.cast::<c_uint>())?;
        if asked == second.version {
            return Ok(put(target, second)?);
        }
        check_version::<nvmlGpuInstanceProfileInfo_v3_t>(asked, 3)?;
        let third = nvmlGpuInstanceProfileInfo_v3_t {
            version: asked,
            id: second.id,
            sliceCount: second.sliceCount,
            instanceCount: second.instanceCount,
            multiprocessorCount: second.multiprocessorCount,
            copyEngineCount: second.copyEngineCount,
            decoderCount: second.decoderCount,
            encoderCount: second.encoderCount,
            jpegCount: second.jpegCount,
            ofaCount: second.ofaCount,
            memorySizeMB: second.memorySizeMB,
            name: second.name,
            capabilities: 0,
        };
        Ok(put(target.cast(), third)?)
    })
}

fn possible_placements(
    device: nvmlDevice_t,
    profile: c_uint,
    placements: *mut nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let profile = gpu.profile(profile)?;
        if !gpu.mig_enabled() {
            return Err(Code::NOT_SUPPORTED);
        }
        let all: Vec<nvmlGpuInstancePlacement_t> = profile
            .starts()
            .iter()
            .map(|&start| nvmlGpuInstancePlacement_t {
                start: start.into(),
                size: profile.span().into(),
            })
            .collect();
        if placements.is_null() {
            return Ok(put(count, all.len() as c_uint)?);
        }
        let room = get(count)? as usize;
        put(count, all.len() as c_uint)?;
        if room < all.len() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        Ok(put_slice(placements, &all)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstancePossiblePlacements(
    device: nvmlDevice_t,
    profile: c_uint,
    placements: *mut nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    possible_placements(device, profile, placements, count)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    device: nvmlDevice_t,
    profile: c_uint,
    placements: *mut nvmlGpuInstancePlacement_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    possible_placements(device, profile, placements, count)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceRemainingCapacity(
    device: nvmlDevice_t,
    profile: c_uint,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let profile = gpu.profile(profile)?;
        if !gpu.mig_enabled() {
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(put(count, gpu.remaining(&profile))?)
    })
}

fn create(
    state: &mut State,
    device: nvmlDevice_t,
    profile: c_uint,
    start: Option<u32>,
    target: *mut nvmlGpuInstance_t,
) -> Result<(), Code> {
    let (index, _) = handle::whole(state, device)?;
    // Ask first whether the answer can be delivered: an instance without a handle would be lost.
    get(target)?;
    let id = state.create_instance(index, profile, start)?;
    Ok(put(target, handle::gpu_instance(index, id))?)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceCreateGpuInstance(
    device: nvmlDevice_t,
    profile: c_uint,
    target: *mut nvmlGpuInstance_t,
) -> nvmlReturn_t {
    answer(|state| create(state, device, profile, None, target))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceCreateGpuInstanceWithPlacement(
    device: nvmlDevice_t,
    profile: c_uint,
    placement: *const nvmlGpuInstancePlacement_t,
    target: *mut nvmlGpuInstance_t,
) -> nvmlReturn_t {
    answer(|state| {
        let placement = get(placement)?;
        let (_, gpu) = handle::whole(state, device)?;
        if placement.size != u32::from(gpu.profile(profile)?.span()) {
            return Err(Code::INVALID_ARGUMENT);
        }
        create(state, device, profile, Some(placement.start), target)
    })
}

pub(crate) fn known_instance(
    state: &State,
    handle: nvmlGpuInstance_t,
) -> Result<(u32, u32, &Gpu), Code> {
    let (index, gi) = handle::instance_of(handle)?;
    let gpu = state.live_gpu(index).map_err(|_| Code::INVALID_ARGUMENT)?;
    gpu.instance_view(gi)?;
    Ok((index, gi, gpu))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceDestroy(instance: nvmlGpuInstance_t) -> nvmlReturn_t {
    answer(|state| {
        let (index, gi, _) = known_instance(state, instance)?;
        Ok(state.destroy_instance(index, gi)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpuInstanceGetInfo(
    instance: nvmlGpuInstance_t,
    target: *mut nvmlGpuInstanceInfo_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gi, gpu) = known_instance(state, instance)?;
        let view = gpu.instance_view(gi)?;
        let info = nvmlGpuInstanceInfo_t {
            device: handle::device(Place::whole(index)),
            id: gi,
            profileId: view.profile.id,
            placement: nvmlGpuInstancePlacement_t { start: view.start, size: view.span },
        };
        Ok(put(target, info)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstances(
    device: nvmlDevice_t,
    profile: c_uint,
    instances: *mut nvmlGpuInstance_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gpu) = handle::whole(state, device)?;
        gpu.profile(profile)?;
        let mut found = Vec::new();
        for id in gpu.instance_ids() {
            if gpu.instance_view(id)?.profile.id == profile {
                found.push(handle::gpu_instance(index, id));
            }
        }
        put(count, found.len() as c_uint)?;
        Ok(put_slice(instances, &found)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetGpuInstanceById(
    device: nvmlDevice_t,
    id: c_uint,
    target: *mut nvmlGpuInstance_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gpu) = handle::whole(state, device)?;
        gpu.instance_view(id)?;
        Ok(put(target, handle::gpu_instance(index, id))?)
    })
}
