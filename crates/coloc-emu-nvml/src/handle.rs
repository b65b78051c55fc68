//! Handles are numbers with a tag, never addresses: a made-up one is refused, not followed.

use crate::answer::Code;
use coloc_emu::Place;
use coloc_emu::fleet::{Gpu, MigDevice, State};
use nvml_wrapper_sys::bindings::{nvmlComputeInstance_t, nvmlDevice_t, nvmlGpuInstance_t};
use std::ptr;

const DEVICE: usize = 0xC01D;
const GPU_INSTANCE: usize = 0xC01E;
const COMPUTE_INSTANCE: usize = 0xC01F;

/// Tag, GPU, GPU instance, compute instance plus one.
fn pack(tag: usize, gpu: u32, gi: u32, ci: u32) -> usize {
    tag << 32 | (gpu as usize & 0xFFFF) << 16 | (gi as usize & 0xFF) << 8 | (ci as usize & 0xFF)
}

fn unpack(tag: usize, handle: usize) -> Result<(u32, u32, u32), Code> {
    if handle >> 32 != tag {
        return Err(Code::INVALID_ARGUMENT);
    }
    let part = |shift: usize, mask: usize| (handle >> shift & mask) as u32;
    Ok((part(16, 0xFFFF), part(8, 0xFF), part(0, 0xFF)))
}

pub(crate) fn device(place: Place) -> nvmlDevice_t {
    let (gi, ci) = place.mig.map_or((0, 0), |mig| (mig.gi, mig.ci + 1));
    ptr::without_provenance_mut(pack(DEVICE, place.gpu, gi, ci))
}

/// The place behind a device handle; whether it is still there is for the caller to ask.
pub(crate) fn place(handle: nvmlDevice_t) -> Result<Place, Code> {
    let (gpu, gi, ci) = unpack(DEVICE, handle.addr())?;
    let mig = match (gi, ci.checked_sub(1)) {
        (0, None) => None,
        (gi, Some(ci)) if gi > 0 => Some(MigDevice { gi, ci }),
        _ => return Err(Code::INVALID_ARGUMENT),
    };
    Ok(Place { gpu, mig })
}

/// The GPU behind a handle, of a MIG device too, provided that it answers.
pub(crate) fn gpu(state: &State, handle: nvmlDevice_t) -> Result<(Place, &Gpu), Code> {
    let place = place(handle)?;
    if place.gpu >= state.gpu_count() {
        return Err(Code::INVALID_ARGUMENT);
    }
    let gpu = state.live_gpu(place.gpu)?;
    if let Some(mig) = place.mig {
        gpu.compute_slices(mig)?;
    }
    Ok((place, gpu))
}

/// The GPU behind a handle that must not be a MIG device's.
pub(crate) fn whole(state: &State, handle: nvmlDevice_t) -> Result<(u32, &Gpu), Code> {
    let (place, gpu) = gpu(state, handle)?;
    if place.mig.is_some() { Err(Code::NOT_SUPPORTED) } else { Ok((place.gpu, gpu)) }
}

pub(crate) fn gpu_instance(gpu: u32, gi: u32) -> nvmlGpuInstance_t {
    ptr::without_provenance_mut(pack(GPU_INSTANCE, gpu, gi, 0))
}

/// GPU and id of a GPU instance.
pub(crate) fn instance_of(handle: nvmlGpuInstance_t) -> Result<(u32, u32), Code> {
    let (gpu, gi, _) = unpack(GPU_INSTANCE, handle.addr())?;
    Ok((gpu, gi))
}

pub(crate) fn compute_instance(gpu: u32, mig: MigDevice) -> nvmlComputeInstance_t {
    ptr::without_provenance_mut(pack(COMPUTE_INSTANCE, gpu, mig.gi, mig.ci))
}

/// GPU and ids of a compute instance.
pub(crate) fn compute_of(handle: nvmlComputeInstance_t) -> Result<(u32, MigDevice), Code> {
    let (gpu, gi, ci) = unpack(COMPUTE_INSTANCE, handle.addr())?;
    Ok((gpu, MigDevice { gi, ci }))
}
