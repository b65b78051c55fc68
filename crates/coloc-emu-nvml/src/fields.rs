//! Field values: sensors by number.

use crate::answer::{Code, answer};
use crate::handle;
use crate::sensors::timestamp_us;
use coloc_emu::abi::{get, put};
use coloc_emu::fleet::Gpu;
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlFieldValue_t, nvmlReturn_t, nvmlValue_t};
use std::ffi::c_int;

const UNSIGNED_INT: u32 = 1;
const UNSIGNED_LONG_LONG: u32 = 3;

/// ECC totals, energy, and power average and instant. The numbers are NVML's `NVML_FI_DEV_…`.
fn field(gpu: &Gpu, id: u32) -> Result<(u32, nvmlValue_t), Code> {
    let reading = gpu.reading();
    let (corrected, uncorrected) = gpu.ecc_errors();
    let int = |value: u32| (UNSIGNED_INT, nvmlValue_t { uiVal: value });
    let long = |value: u64| (UNSIGNED_LONG_LONG, nvmlValue_t { ullVal: value });
    Ok(match id {
        1 | 2 => int(1),
        3 | 5 => long(corrected),
        4 | 6 => long(uncorrected),
        82 => int(reading.celsius),
        83 if gpu.board().counts_energy() => long(reading.millijoules),
        // The average came with Ampere, but not on GA100.
        185 if gpu.board().capability > (8, 0) => int(reading.milliwatts),
        186 => int(reading.milliwatts),
        _ => return Err(Code::NOT_SUPPORTED),
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        if !(1..=4096).contains(&count) {
            return Err(Code::INVALID_ARGUMENT);
        }
        for at in 0..count as usize {
            let slot = values.wrapping_add(at);
            let mut value = get(slot)?;
            match field(gpu, value.fieldId) {
                Ok((kind, number)) => {
                    value.valueType = kind;
                    value.value = number;
                    value.nvmlReturn = 0;
                }
                Err(code) => value.nvmlReturn = code.0,
            }
            value.timestamp = timestamp_us() as i64;
            value.latencyUsec = 0;
            put(slot, value)?;
        }
        Ok(())
    })
}
