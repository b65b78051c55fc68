//! What a device is: names, numbers, place on the bus.

use crate::answer::{Code, answer};
use crate::handle;
use coloc_emu::Place;
use coloc_emu::abi::{fixed_text, get, put, put_text};
use coloc_emu::board::VBIOS_VERSION;
use coloc_emu::fleet::{Gpu, State};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlDeviceAttributes_t, nvmlPciInfo_t, nvmlPciInfoExt_v1_t, nvmlReturn_t,
};
use std::ffi::{c_char, c_int, c_uint, c_ulong};

fn put_name(
    handle: nvmlDevice_t,
    target: *mut c_char,
    length: c_uint,
    name: impl FnOnce(&State, Place, &Gpu) -> Result<String, Code>,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, handle)?;
        let name = name(state, place, gpu)?;
        if put_text(target, length as usize, &name)? {
            Ok(())
        } else {
            Err(Code::INSUFFICIENT_SIZE)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetName(
    device: nvmlDevice_t,
    name: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    put_name(device, name, length, |_, place, gpu| Ok(gpu.name(place.mig)?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetUUID(
    device: nvmlDevice_t,
    uuid: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    put_name(device, uuid, length, |_, place, gpu| Ok(gpu.uuid_of(place.mig)?))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSerial(
    device: nvmlDevice_t,
    serial: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    put_name(device, serial, length, |_, place, _| Ok(Gpu::serial(place.gpu)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetVbiosVersion(
    device: nvmlDevice_t,
    version: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    put_name(device, version, length, |_, _, _| Ok(VBIOS_VERSION.to_owned()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetBoardPartNumber(
    device: nvmlDevice_t,
    number: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    put_name(device, number, length, |_, _, _| Ok("COLOC-EMULATED".to_owned()))
}

fn put_number(
    handle: nvmlDevice_t,
    target: *mut c_uint,
    number: impl FnOnce(Place, &Gpu) -> Result<u32, Code>,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, handle)?;
        Ok(put(target, number(place, gpu)?)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) -> nvmlReturn_t {
    put_number(device, index, |place, gpu| match place.mig {
        None => Ok(place.gpu),
        Some(own) => {
            let at = gpu.mig_devices().iter().position(|mig| *mig == own);
            at.map(|at| at as u32).ok_or(Code::NOT_FOUND)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minor: *mut c_uint) -> nvmlReturn_t {
    put_number(device, minor, |place, _| Ok(place.gpu))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetArchitecture(
    device: nvmlDevice_t,
    architecture: *mut c_uint,
) -> nvmlReturn_t {
    put_number(device, architecture, |_, gpu| Ok(gpu.board().architecture()))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetBrand(device: nvmlDevice_t, brand: *mut c_uint) -> nvmlReturn_t {
    put_number(device, brand, |_, gpu| {
        Ok(if gpu.board().name.contains("GeForce") { 5 } else { 14 })
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetBoardId(device: nvmlDevice_t, board: *mut c_uint) -> nvmlReturn_t {
    put_number(device, board, |place, _| Ok(Gpu::bus(place.gpu) << 8))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multi: *mut c_uint) -> nvmlReturn_t {
    put_number(device, multi, |_, _| Ok(0))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetNumGpuCores(device: nvmlDevice_t, cores: *mut c_uint) -> nvmlReturn_t {
    put_number(device, cores, |_, gpu| Ok(gpu.model().sms() * gpu.board().cores_per_sm))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMemoryBusWidth(
    device: nvmlDevice_t,
    width: *mut c_uint,
) -> nvmlReturn_t {
    put_number(device, width, |_, gpu| Ok(gpu.board().bus_bits))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCudaComputeCapability(
    device: nvmlDevice_t,
    major: *mut c_int,
    minor: *mut c_int,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::gpu(state, device)?;
        let (high, low) = gpu.board().capability;
        put(major, high as c_int)?;
        Ok(put(minor, low as c_int)?)
    })
}

fn pci_info(device: nvmlDevice_t, info: *mut nvmlPciInfo_t) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, device)?;
        let (domain, bus) = (gpu.node(), Gpu::bus(place.gpu));
        let value = nvmlPciInfo_t {
            busIdLegacy: fixed_text(&format!("{domain:04X}:{bus:02X}:00.0")),
            domain,
            bus,
            device: 0,
            pciDeviceId: gpu.board().pci_id,
            pciSubSystemId: 0x1463_10DE,
            busId: fixed_text(&gpu.bus_id(place.gpu)),
        };
        Ok(put(info, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfo_v3(
    device: nvmlDevice_t,
    info: *mut nvmlPciInfo_t,
) -> nvmlReturn_t {
    pci_info(device, info)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPciInfoExt(
    device: nvmlDevice_t,
    info: *mut nvmlPciInfoExt_v1_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, device)?;
        let asked = get(info)?;
        crate::answer::check_version::<nvmlPciInfoExt_v1_t>(asked.version, 1)?;
        let (domain, bus) = (gpu.node(), Gpu::bus(place.gpu));
        let value = nvmlPciInfoExt_v1_t {
            version: asked.version,
            domain,
            bus,
            device: 0,
            pciDeviceId: gpu.board().pci_id,
            pciSubSystemId: 0x1463_10DE,
            baseClass: 3,
            subClass: 2,
            busId: fixed_text(&gpu.bus_id(place.gpu)),
        };
        Ok(put(info, value)?)
    })
}

fn attributes(device: nvmlDevice_t, out: *mut nvmlDeviceAttributes_t) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, device)?;
        let mig = place.mig.ok_or(Code::NOT_SUPPORTED)?;
        let table = gpu.model().mig().ok_or(Code::NOT_SUPPORTED)?;
        let instance = gpu.instance_view(mig.gi)?;
        let slices = gpu.compute_slices(mig)?;
        let value = nvmlDeviceAttributes_t {
            multiprocessorCount: slices * table.sms_per_slice,
            sharedCopyEngineCount: instance.profile.compute().into(),
            sharedDecoderCount: 0,
            sharedEncoderCount: 0,
            sharedJpegCount: 0,
            sharedOfaCount: 0,
            gpuInstanceSliceCount: instance.profile.compute().into(),
            computeInstanceSliceCount: slices,
            memorySizeMB: instance.memory.mib() as u64,
        };
        Ok(put(out, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetAttributes(
    device: nvmlDevice_t,
    out: *mut nvmlDeviceAttributes_t,
) -> nvmlReturn_t {
    attributes(device, out)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetAttributes_v2(
    device: nvmlDevice_t,
    out: *mut nvmlDeviceAttributes_t,
) -> nvmlReturn_t {
    attributes(device, out)
}

/// Every GPU is near every core.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetCpuAffinity(
    device: nvmlDevice_t,
    words: c_uint,
    set: *mut c_ulong,
) -> nvmlReturn_t {
    answer(|state| {
        handle::whole(state, device)?;
        if words == 0 || words > 1024 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for word in 0..words as usize {
            let here = cores.saturating_sub(word * 64).min(64);
            let mask = if here == 64 { c_ulong::MAX } else { (1 << here) - 1 };
            put(set.wrapping_add(word), mask)?;
        }
        Ok(())
    })
}
