//! MIG through NVML's own symbols: the wrapper has no calls to create or destroy instances, and its list of
//! placements is always empty (0.13).
//!
//! `unsafe` because these are calls into a C library. Every pointer passed is to a local of the type that
//! `nvml-wrapper-sys` declares, and lists are passed with the length that they were allocated with.
#![allow(unsafe_code)]

use super::{DriverError, translate};
use crate::device::Uuid;
use crate::mig::{
    Board, BoardProfile, ComputeInstance, ComputeInstanceId, ExistingInstance, GpuInstanceId,
    MigDevice, Place, ProfileKind,
};
use coloc_model::Bytes;
use nvml_wrapper::error::{NvmlError, nvml_sym};
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings as sys;
use std::ffi::CStr;
use std::mem::{size_of, zeroed};

/// Instances of one profile on one board, with room to spare.
const MOST_INSTANCES: usize = 64;

fn missing(what: &'static str) -> impl Fn(NvmlError) -> DriverError {
    move |error| translate(what, error)
}

/// What a return code means. The wrapper knows no code for too few slices.
fn check(what: &'static str, code: sys::nvmlReturn_t) -> Result<(), DriverError> {
    match code {
        sys::nvmlReturn_enum_NVML_SUCCESS => Ok(()),
        sys::nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_RESOURCES => {
            Err(DriverError::InsufficientResources { what })
        }
        code => Err(translate(what, NvmlError::from(code))),
    }
}

pub(super) fn set_mode(nvml: &Nvml, device: &Device<'_>, on: bool) -> Result<(), DriverError> {
    const WHAT: &str = "changing MIG mode";
    let set = nvml_sym(nvml.lib().nvmlDeviceSetMigMode.as_ref()).map_err(missing(WHAT))?;
    let mut activation = sys::nvmlReturn_enum_NVML_SUCCESS;
    // SAFETY: see the module.
    check(WHAT, unsafe { set(device.handle(), u32::from(on), &mut activation) })?;
    // The call may succeed and the change still wait for a reset, or for a process to leave.
    check(WHAT, activation)
}

/// The GPU instance profiles by NVML's enumeration; which ids they have differs from board to board.
const PROFILES: [(u32, ProfileKind); 9] = [
    (sys::NVML_GPU_INSTANCE_PROFILE_1_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, ProfileKind::Media),
    (sys::NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_2_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_3_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_4_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_6_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_7_SLICE, ProfileKind::Plain),
    (sys::NVML_GPU_INSTANCE_PROFILE_8_SLICE, ProfileKind::Plain),
];

pub(super) fn board(nvml: &Nvml, device: &Device<'_>) -> Result<Board, DriverError> {
    let mut profiles = Vec::new();
    for (number, kind) in PROFILES {
        match profile(nvml, device, number, kind) {
            Ok(profile) => profiles.push(profile),
            // The board does not have it.
            Err(DriverError::NotSupported { .. } | DriverError::NotFound { .. }) => {}
            Err(DriverError::Other { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let mut instances = Vec::new();
    for profile in &profiles {
        instances.extend(instances_of(nvml, device, profile)?);
    }
    Ok(Board::new(profiles, instances))
}

fn profile(
    nvml: &Nvml,
    device: &Device<'_>,
    number: u32,
    kind: ProfileKind,
) -> Result<BoardProfile, DriverError> {
    const WHAT: &str = "reading MIG profiles";
    let get = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstanceProfileInfo.as_ref());
    let get = get.map_err(missing(WHAT))?;
    // SAFETY: see the module; all-zero is a valid value of this plain structure.
    let info = unsafe {
        let mut info: sys::nvmlGpuInstanceProfileInfo_t = zeroed();
        check(WHAT, get(device.handle(), number, &mut info))?;
        info
    };
    let memory = Bytes::from_mib(info.memorySizeMB.min(1 << 24));
    let compute = info.sliceCount.min(u32::from(u8::MAX)) as u8;
    let name = profile_name(nvml, device, number)
        .unwrap_or_else(|| BoardProfile::conventional_name(compute, memory, kind));
    Ok(BoardProfile {
        id: info.id,
        name,
        kind,
        compute,
        memory,
        most: info.instanceCount,
        places: places(nvml, device, info.id)?,
    })
}

/// The name that newer drivers give a profile, without their `MIG ` in front.
fn profile_name(nvml: &Nvml, device: &Device<'_>, number: u32) -> Option<String> {
    let get = nvml.lib().nvmlDeviceGetGpuInstanceProfileInfoV.as_ref().ok()?;
    // SAFETY: see the module; the version tells the library the size of the structure.
    let info = unsafe {
        let mut info: sys::nvmlGpuInstanceProfileInfo_v2_t = zeroed();
        info.version = size_of::<sys::nvmlGpuInstanceProfileInfo_v2_t>() as u32 | 2 << 24;
        check("", get(device.handle(), number, &mut info)).ok()?;
        info
    };
    let bytes = info.name.map(|byte| byte as u8);
    let name = CStr::from_bytes_until_nul(&bytes).ok()?.to_str().ok()?;
    let name = name.trim_start_matches("MIG ").trim();
    (!name.is_empty()).then(|| name.to_owned())
}

fn places(nvml: &Nvml, device: &Device<'_>, profile: u32) -> Result<Vec<Place>, DriverError> {
    const WHAT: &str = "reading MIG placements";
    let get = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstancePossiblePlacements_v2.as_ref());
    let get = get.map_err(missing(WHAT))?;
    // SAFETY: see the module.
    let (list, count) = unsafe {
        let mut count = 0;
        check(WHAT, get(device.handle(), profile, std::ptr::null_mut(), &mut count))?;
        count = count.min(MOST_INSTANCES as u32);
        let mut list: [sys::nvmlGpuInstancePlacement_t; MOST_INSTANCES] = zeroed();
        check(WHAT, get(device.handle(), profile, list.as_mut_ptr(), &mut count))?;
        (list, count as usize)
    };
    let place = |p: &sys::nvmlGpuInstancePlacement_t| Place::new(p.start, p.size);
    Ok(list[..count.min(MOST_INSTANCES)].iter().filter_map(place).collect())
}

fn instances_of(
    nvml: &Nvml,
    device: &Device<'_>,
    profile: &BoardProfile,
) -> Result<Vec<ExistingInstance>, DriverError> {
    const WHAT: &str = "listing MIG instances";
    let list = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstances.as_ref()).map_err(missing(WHAT))?;
    let info = nvml_sym(nvml.lib().nvmlGpuInstanceGetInfo.as_ref()).map_err(missing(WHAT))?;
    let mut handles = [std::ptr::null_mut(); MOST_INSTANCES];
    let mut count = MOST_INSTANCES as u32;
    // SAFETY: see the module.
    match check(WHAT, unsafe {
        list(device.handle(), profile.id, handles.as_mut_ptr(), &mut count)
    }) {
        Ok(()) => {}
        // MIG mode is off, so there are none.
        Err(DriverError::NotSupported { .. } | DriverError::NotFound { .. }) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    }
    let mut instances = Vec::new();
    for &handle in &handles[..(count as usize).min(MOST_INSTANCES)] {
        // SAFETY: the handle came from the library just now.
        let known = unsafe {
            let mut known: sys::nvmlGpuInstanceInfo_t = zeroed();
            check(WHAT, info(handle, &mut known))?;
            known
        };
        let Some(place) = Place::new(known.placement.start, known.placement.size) else { continue };
        instances.push(ExistingInstance {
            id: GpuInstanceId(known.id),
            profile: profile.id,
            place,
            computes: computes_of(nvml, handle)?,
            busy: false,
        });
    }
    Ok(instances)
}

/// Compute instance profiles by NVML's enumeration, and the slices that they have.
const COMPUTE_PROFILES: [(u32, u8); 7] = [
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, 1),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE, 2),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, 3),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE, 4),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE, 6),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE, 7),
    (sys::NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE, 8),
];

fn compute_profile(
    nvml: &Nvml,
    gi: sys::nvmlGpuInstance_t,
    number: u32,
) -> Result<sys::nvmlComputeInstanceProfileInfo_t, DriverError> {
    const WHAT: &str = "reading compute instance profiles";
    let get = nvml_sym(nvml.lib().nvmlGpuInstanceGetComputeInstanceProfileInfo.as_ref());
    let get = get.map_err(missing(WHAT))?;
    let engine = sys::NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
    // SAFETY: see the module.
    unsafe {
        let mut info: sys::nvmlComputeInstanceProfileInfo_t = zeroed();
        check(WHAT, get(gi, number, engine, &mut info))?;
        Ok(info)
    }
}

fn computes_of(
    nvml: &Nvml,
    gi: sys::nvmlGpuInstance_t,
) -> Result<Vec<ComputeInstance>, DriverError> {
    const WHAT: &str = "listing compute instances";
    let list = nvml_sym(nvml.lib().nvmlGpuInstanceGetComputeInstances.as_ref());
    let list = list.map_err(missing(WHAT))?;
    let info =
        nvml_sym(nvml.lib().nvmlComputeInstanceGetInfo_v2.as_ref()).map_err(missing(WHAT))?;
    let mut computes = Vec::new();
    for (number, slices) in COMPUTE_PROFILES {
        let Ok(profile) = compute_profile(nvml, gi, number) else { continue };
        let mut handles = [std::ptr::null_mut(); MOST_INSTANCES];
        let mut count = MOST_INSTANCES as u32;
        // SAFETY: see the module; handles come from the library.
        unsafe {
            check(WHAT, list(gi, profile.id, handles.as_mut_ptr(), &mut count))?;
            for &handle in &handles[..(count as usize).min(MOST_INSTANCES)] {
                let mut known: sys::nvmlComputeInstanceInfo_t = zeroed();
                check(WHAT, info(handle, &mut known))?;
                computes.push(ComputeInstance { id: ComputeInstanceId(known.id), slices });
            }
        }
    }
    Ok(computes)
}

pub(super) fn create_instance(
    nvml: &Nvml,
    device: &Device<'_>,
    profile: u32,
    place: Place,
) -> Result<GpuInstanceId, DriverError> {
    const WHAT: &str = "creating a GPU instance";
    let create = nvml_sym(nvml.lib().nvmlDeviceCreateGpuInstanceWithPlacement.as_ref());
    let create = create.map_err(missing(WHAT))?;
    let info = nvml_sym(nvml.lib().nvmlGpuInstanceGetInfo.as_ref()).map_err(missing(WHAT))?;
    let placement = sys::nvmlGpuInstancePlacement_t {
        start: u32::from(place.start),
        size: u32::from(place.span),
    };
    // SAFETY: see the module; the handle came from the library just now.
    unsafe {
        let mut handle = std::ptr::null_mut();
        check(WHAT, create(device.handle(), profile, &placement, &mut handle))?;
        let mut known: sys::nvmlGpuInstanceInfo_t = zeroed();
        check(WHAT, info(handle, &mut known))?;
        Ok(GpuInstanceId(known.id))
    }
}

fn instance_handle(
    what: &'static str,
    nvml: &Nvml,
    device: &Device<'_>,
    gi: GpuInstanceId,
) -> Result<sys::nvmlGpuInstance_t, DriverError> {
    let get = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstanceById.as_ref()).map_err(missing(what))?;
    let mut handle = std::ptr::null_mut();
    // SAFETY: see the module.
    check(what, unsafe { get(device.handle(), gi.0, &mut handle) })?;
    Ok(handle)
}

pub(super) fn destroy_instance(
    nvml: &Nvml,
    device: &Device<'_>,
    gi: GpuInstanceId,
) -> Result<(), DriverError> {
    const WHAT: &str = "destroying a GPU instance";
    let handle = instance_handle(WHAT, nvml, device, gi)?;
    let destroy = nvml_sym(nvml.lib().nvmlGpuInstanceDestroy.as_ref()).map_err(missing(WHAT))?;
    // SAFETY: the handle came from the library just now.
    check(WHAT, unsafe { destroy(handle) })
}

pub(super) fn create_compute(
    nvml: &Nvml,
    device: &Device<'_>,
    gi: GpuInstanceId,
    slices: u8,
) -> Result<ComputeInstanceId, DriverError> {
    const WHAT: &str = "creating a compute instance";
    let handle = instance_handle(WHAT, nvml, device, gi)?;
    let number = COMPUTE_PROFILES.iter().find(|(_, has)| *has == slices);
    let (number, _) = number.ok_or(DriverError::NotFound { what: WHAT })?;
    let profile = compute_profile(nvml, handle, *number)?;
    let create = nvml_sym(nvml.lib().nvmlGpuInstanceCreateComputeInstance.as_ref());
    let create = create.map_err(missing(WHAT))?;
    let info =
        nvml_sym(nvml.lib().nvmlComputeInstanceGetInfo_v2.as_ref()).map_err(missing(WHAT))?;
    // SAFETY: see the module; handles come from the library.
    unsafe {
        let mut compute = std::ptr::null_mut();
        check(WHAT, create(handle, profile.id, &mut compute))?;
        let mut known: sys::nvmlComputeInstanceInfo_t = zeroed();
        check(WHAT, info(compute, &mut known))?;
        Ok(ComputeInstanceId(known.id))
    }
}

pub(super) fn destroy_compute(
    nvml: &Nvml,
    device: &Device<'_>,
    gi: GpuInstanceId,
    ci: ComputeInstanceId,
) -> Result<(), DriverError> {
    const WHAT: &str = "destroying a compute instance";
    let handle = instance_handle(WHAT, nvml, device, gi)?;
    let get = nvml_sym(nvml.lib().nvmlGpuInstanceGetComputeInstanceById.as_ref());
    let get = get.map_err(missing(WHAT))?;
    let destroy =
        nvml_sym(nvml.lib().nvmlComputeInstanceDestroy.as_ref()).map_err(missing(WHAT))?;
    // SAFETY: see the module; handles come from the library.
    unsafe {
        let mut compute = std::ptr::null_mut();
        check(WHAT, get(handle, ci.0, &mut compute))?;
        check(WHAT, destroy(compute))
    }
}

pub(super) fn devices(nvml: &Nvml, device: &Device<'_>) -> Result<Vec<MigDevice>, DriverError> {
    const WHAT: &str = "listing MIG devices";
    let count = match device.mig_device_count() {
        Ok(count) => count,
        Err(NvmlError::NotSupported) => return Ok(Vec::new()),
        Err(error) => return Err(translate(WHAT, error)),
    };
    let gi_of = nvml_sym(nvml.lib().nvmlDeviceGetGpuInstanceId.as_ref()).map_err(missing(WHAT))?;
    let ci_of = nvml_sym(nvml.lib().nvmlDeviceGetComputeInstanceId.as_ref());
    let ci_of = ci_of.map_err(missing(WHAT))?;
    let mut devices = Vec::new();
    for index in 0..count.min(MOST_INSTANCES as u32) {
        // Numbers need not be consecutive.
        let Ok(mig) = device.mig_device_by_index(index) else { continue };
        let (mut gi, mut ci) = (0, 0);
        // SAFETY: see the module.
        unsafe {
            check(WHAT, gi_of(mig.handle(), &mut gi))?;
            check(WHAT, ci_of(mig.handle(), &mut ci))?;
        }
        let memory = mig.memory_info().ok();
        devices.push(MigDevice {
            uuid: Uuid::new(&mig.uuid().map_err(|error| translate(WHAT, error))?),
            gpu_instance: GpuInstanceId(gi),
            compute_instance: ComputeInstanceId(ci),
            memory_total: memory.as_ref().map(|memory| Bytes(memory.total)),
            memory_used: memory.as_ref().map(|memory| Bytes(memory.used)),
        });
    }
    Ok(devices)
}
