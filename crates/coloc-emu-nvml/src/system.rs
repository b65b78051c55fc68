//! Starting, stopping, versions, and finding devices.

use crate::answer::{Code, answer, answer_alone, initialize, shut_down};
use crate::handle;
use coloc_emu::abi::{get_text, put, put_text};
use coloc_emu::board::{CUDA_VERSION, DRIVER_VERSION, NVML_VERSION};
use coloc_emu::{Identity, Place};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use std::ffi::{CStr, c_char, c_int, c_uint};

#[unsafe(no_mangle)]
extern "C" fn nvmlInit() -> nvmlReturn_t {
    initialize()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    initialize()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    initialize()
}

#[unsafe(no_mangle)]
extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    shut_down()
}

/// What a code means, in words.
fn meaning(code: nvmlReturn_t) -> &'static CStr {
    match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        11 => c"Interrupt Request Issue",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        14 => c"Corrupted infoROM",
        15 => c"GPU is lost",
        16 => c"GPU requires reset",
        17 => c"GPU access blocked by the operating system",
        18 => c"Driver/library version mismatch",
        19 => c"In use by another client",
        20 => c"Insufficient Memory",
        21 => c"No data",
        22 => c"The requested vgpu operation is not available on target device",
        23 => c"Insufficient Resources",
        24 => c"Frequency Not Supported",
        25 => c"Argument Version Mismatch",
        26 => c"The requested functionality has been deprecated",
        27 => c"The system is not ready for the request",
        28 => c"No GPUs were found",
        _ => c"Unknown Error",
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: nvmlReturn_t) -> *const c_char {
    meaning(code).as_ptr()
}

fn text(target: *mut c_char, length: c_uint, text: &str) -> Result<(), Code> {
    if put_text(target, length as usize, text)? { Ok(()) } else { Err(Code::INSUFFICIENT_SIZE) }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer(|_| text(version, length, DRIVER_VERSION))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> nvmlReturn_t {
    answer(|_| text(version, length, NVML_VERSION))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion(version: *mut c_int) -> nvmlReturn_t {
    answer_alone(|| Ok(put(version, CUDA_VERSION)?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> nvmlReturn_t {
    answer(|_| Ok(put(version, CUDA_VERSION)?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlSystemGetProcessName(
    pid: c_uint,
    name: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    answer(|_| {
        let identity = Identity::of(pid as i32).ok_or(Code::NOT_FOUND)?;
        let mut full = identity.name();
        // NVML cuts names to the room that there is.
        let mut end = full.len().min((length as usize).saturating_sub(1));
        while !full.is_char_boundary(end) {
            end -= 1;
        }
        full.truncate(end);
        text(name, length, &full)
    })
}

fn count(out: *mut c_uint) -> nvmlReturn_t {
    answer(|state| Ok(put(out, state.gpu_count())?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount(count_out: *mut c_uint) -> nvmlReturn_t {
    count(count_out)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCount_v2(count_out: *mut c_uint) -> nvmlReturn_t {
    count(count_out)
}

fn by_index(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    answer(|state| {
        if index >= state.gpu_count() {
            return Err(Code::INVALID_ARGUMENT);
        }
        state.live_gpu(index)?;
        Ok(put(device, handle::device(Place::whole(index)))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    by_index(index, device)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    by_index(index, device)
}

fn by_bus_id(name: *const c_char, device: *mut nvmlDevice_t) -> nvmlReturn_t {
    answer(|state| {
        let name = get_text(name, 64)?;
        // Domains are written with four or eight digits, in either case.
        let plain = |name: &str| {
            let (domain, rest) = name.split_once(':')?;
            let domain = u32::from_str_radix(domain, 16).ok()?;
            Some((domain, rest.to_ascii_lowercase()))
        };
        let wanted = plain(&name).ok_or(Code::INVALID_ARGUMENT)?;
        let found = (0u32..)
            .zip(state.gpus())
            .find(|&(index, gpu)| plain(&gpu.bus_id(index)).as_ref() == Some(&wanted));
        let (index, _) = found.ok_or(Code::NOT_FOUND)?;
        state.live_gpu(index)?;
        Ok(put(device, handle::device(Place::whole(index)))?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId(
    name: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    by_bus_id(name, device)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByPciBusId_v2(
    name: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    by_bus_id(name, device)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    answer(|state| {
        let uuid = get_text(uuid, 96)?;
        let mut places = Vec::new();
        for (index, gpu) in (0u32..).zip(state.gpus()) {
            places.push((gpu.uuid(), Place::whole(index)));
            for mig in gpu.mig_devices() {
                places.push((gpu.mig_uuid(mig)?, Place { gpu: index, mig: Some(mig) }));
            }
        }
        let found = places.into_iter().find(|(name, _)| *name == uuid);
        let (_, place) = found.ok_or(Code::NOT_FOUND)?;
        state.live_gpu(place.gpu)?;
        Ok(put(device, handle::device(place))?)
    })
}
