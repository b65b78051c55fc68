//! Starting up, and what devices are.

use crate::answer::{Code, answer};
use crate::library::{initialize, with};
use coloc_emu::Place;
use coloc_emu::abi::{get_text, put, put_text};
use coloc_emu::board::CUDA_VERSION;
use coloc_emu::fleet::{Gpu, State};
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
extern "C" fn cuInit(flags: c_uint) -> c_int {
    answer(|| if flags == 0 { initialize() } else { Err(Code::INVALID_VALUE) })
}

#[unsafe(no_mangle)]
extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    answer(|| Ok(put(version, CUDA_VERSION)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    answer(|| with(|library| Ok(put(count, library.devices.len() as c_int)?)))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> c_int {
    answer(|| {
        with(|library| {
            library.device(ordinal)?;
            Ok(put(device, ordinal)?)
        })
    })
}

/// Answers from the state of a device.
fn describe(device: c_int, body: impl FnOnce(&State, Place, &Gpu) -> Result<(), Code>) -> c_int {
    answer(|| {
        with(|library| {
            let (_, place) = library.device(device)?;
            let (state, _) = library.client.lock()?;
            body(&state, place, state.live_gpu(place.gpu)?)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int) -> c_int {
    describe(device, |_, place, gpu| {
        let room = usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?;
        let mut full = gpu.name(place.mig)?;
        full.truncate(room.saturating_sub(1));
        if put_text(name, room, &full)? { Ok(()) } else { Err(Code::INVALID_VALUE) }
    })
}

fn total(target: *mut usize, device: c_int) -> c_int {
    describe(device, |state, place, _| Ok(put(target, state.memory(place)?.total.0 as usize)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) -> c_int {
    total(bytes, device)
}

fn uuid_of(place: Place, gpu: &Gpu) -> Result<[u8; 16], Code> {
    let text = gpu.uuid_of(place.mig)?;
    let digits: Vec<u8> =
        text[4..].bytes().filter_map(|byte| (byte as char).to_digit(16)).map(|d| d as u8).collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = pair[0] << 4 | pair.get(1).copied().unwrap_or(0);
    }
    Ok(bytes)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) -> c_int {
    describe(device, |_, place, gpu| Ok(put(uuid, uuid_of(place, gpu)?)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    describe(device, |_, place, gpu| Ok(put(uuid, uuid_of(place, gpu)?)?))
}

/// CUDA writes the domain with four digits.
fn bus_id(place: Place, gpu: &Gpu) -> String {
    gpu.bus_id(place.gpu).split_off(4)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, length: c_int, device: c_int) -> c_int {
    describe(device, |_, place, gpu| {
        let room = usize::try_from(length).map_err(|_| Code::INVALID_VALUE)?;
        if put_text(id, room, &bus_id(place, gpu))? { Ok(()) } else { Err(Code::INVALID_VALUE) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetByPCIBusId(device: *mut c_int, id: *const c_char) -> c_int {
    answer(|| {
        let wanted = get_text(id, 64)?.to_ascii_uppercase();
        with(|library| {
            let (state, _) = library.client.lock()?;
            for (ordinal, &place) in library.devices.iter().enumerate() {
                let own = bus_id(place, state.gpu(place.gpu)?);
                if own == wanted || wanted.strip_prefix("0000") == Some(&own) {
                    return Ok(put(device, ordinal as c_int)?);
                }
            }
            Err(Code::INVALID_DEVICE)
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceComputeCapability(
    major: *mut c_int,
    minor: *mut c_int,
    device: c_int,
) -> c_int {
    describe(device, |_, _, gpu| {
        let (high, low) = gpu.board().capability;
        put(major, high as c_int)?;
        Ok(put(minor, low as c_int)?)
    })
}

/// Limits that all supported boards share come first; what depends on the board, after.
fn attribute(place: Place, gpu: &Gpu, number: c_int) -> Result<c_int, Code> {
    let board = gpu.board();
    let sms = match place.mig {
        Some(mig) => (gpu.mig_fractions(mig)?.0 * f64::from(gpu.model().sms())).round() as u32,
        None => gpu.model().sms(),
    };
    let number = match number {
        1..=3 => 1024,
        4 => 64,
        5 | 11 => i32::MAX,
        6 | 7 => 65_535,
        8 => 49_152,
        9 | 12 | 82 => 65_536,
        10 => 32,
        14 => 512,
        15 | 19 | 31 | 32 | 41 | 78 | 79 | 80 | 83 | 95 => 1,
        38 => 40 << 20,
        39 => 2048,
        40 => 3,
        81 | 97 => 101_376,
        106 => 32,
        13 => board.sm_mhz as c_int * 1000,
        16 => sms as c_int,
        20 => gpu.compute_mode() as c_int,
        33 => Gpu::bus(place.gpu) as c_int,
        36 => board.memory_mhz as c_int * 1000,
        37 => board.bus_bits as c_int,
        50 => gpu.node() as c_int,
        75 => board.capability.0 as c_int,
        76 => board.capability.1 as c_int,
        0..200 => 0,
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(number)
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceGetAttribute(value: *mut c_int, number: c_int, device: c_int) -> c_int {
    describe(device, |_, place, gpu| Ok(put(value, attribute(place, gpu, number)?)?))
}

#[unsafe(no_mangle)]
extern "C" fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) -> c_int {
    answer(|| {
        with(|library| {
            library.device(device)?;
            library.device(peer)?;
            Ok(put(can, 0)?)
        })
    })
}
