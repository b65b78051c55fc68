//! Sensors and counters: activity, power, energy, temperature, clocks.

use crate::answer::{Code, answer, check_version};
use crate::handle;
use coloc_emu::abi::{get, put, put_slice};
use coloc_emu::fleet::{Gpu, Reading};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_t, nvmlSample_t, nvmlTemperature_v1_t, nvmlUtilization_t, nvmlValue_t,
};
use std::ffi::{c_uint, c_ulonglong};
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970, for samples.
pub(crate) fn timestamp_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

fn sensor<T: Copy>(
    device: nvmlDevice_t,
    target: *mut T,
    value: impl FnOnce(&Gpu, &Reading) -> Result<T, Code>,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        Ok(put(target, value(gpu, &gpu.reading())?)?)
    })
}

/// Functions that store one number: a sensor of a whole GPU.
macro_rules! sensors {
    ($(fn $name:ident: $type:ty = |$gpu:pat_param, $reading:pat_param| $value:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(device: nvmlDevice_t, target: *mut $type) -> nvmlReturn_t {
            sensor(device, target, |$gpu, $reading| $value)
        }
    )*};
}

fn watts_to_mw(watts: f64) -> c_uint {
    (watts * 1000.0).round() as c_uint
}

sensors! {
    fn nvmlDeviceGetPowerUsage: c_uint = |_, reading| Ok(reading.milliwatts);
    fn nvmlDeviceGetTotalEnergyConsumption: c_ulonglong = |gpu, reading| {
        if gpu.board().counts_energy() { Ok(reading.millijoules) } else { Err(Code::NOT_SUPPORTED) }
    };
    fn nvmlDeviceGetPowerManagementLimit: c_uint = |gpu, _| Ok(watts_to_mw(gpu.limit_watts()));
    fn nvmlDeviceGetEnforcedPowerLimit: c_uint = |gpu, _| Ok(watts_to_mw(gpu.limit_watts()));
    fn nvmlDeviceGetPowerManagementDefaultLimit: c_uint =
        |gpu, _| Ok(watts_to_mw(gpu.model().limit_watts()));
    fn nvmlDeviceGetPowerManagementMode: c_uint = |_, _| Ok(1);
    fn nvmlDeviceGetPerformanceState: c_uint = |_, reading| Ok(reading.performance_state);
    fn nvmlDeviceGetPowerState: c_uint = |_, reading| Ok(reading.performance_state);
    fn nvmlDeviceGetUtilizationRates: nvmlUtilization_t = |gpu, reading| {
        if gpu.mig_enabled() {
            // A partitioned board has no utilization of its own; the profiling metrics do.
            return Err(Code::NOT_SUPPORTED);
        }
        Ok(nvmlUtilization_t { gpu: reading.gpu_percent, memory: reading.memory_percent })
    };
    fn nvmlDeviceGetPersistenceMode: c_uint = |gpu, _| Ok(gpu.persistence().into());
    fn nvmlDeviceGetComputeMode: c_uint = |gpu, _| Ok(gpu.compute_mode());
    fn nvmlDeviceGetDisplayMode: c_uint = |_, _| Ok(0);
    fn nvmlDeviceGetDisplayActive: c_uint = |_, _| Ok(0);
    fn nvmlDeviceGetCurrPcieLinkGeneration: c_uint = |gpu, _| Ok(gpu.board().pcie_generation);
    fn nvmlDeviceGetMaxPcieLinkGeneration: c_uint = |gpu, _| Ok(gpu.board().pcie_generation);
    fn nvmlDeviceGetCurrPcieLinkWidth: c_uint = |_, _| Ok(16);
    fn nvmlDeviceGetMaxPcieLinkWidth: c_uint = |_, _| Ok(16);
    fn nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = |_, reading| Ok(throttle(reading));
    fn nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = |_, reading| Ok(throttle(reading));
    fn nvmlDeviceGetSupportedClocksThrottleReasons: c_ulonglong = |_, _| Ok(IDLE | POWER_CAP);
    fn nvmlDeviceGetSupportedClocksEventReasons: c_ulonglong = |_, _| Ok(IDLE | POWER_CAP);
}

const IDLE: c_ulonglong = 1;
const POWER_CAP: c_ulonglong = 4;

fn throttle(reading: &Reading) -> c_ulonglong {
    match (reading.performance_state, reading.power_capped) {
        (0, true) => POWER_CAP,
        (0, false) => 0,
        _ => IDLE,
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperature(
    device: nvmlDevice_t,
    sensor_kind: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |_, reading| match sensor_kind {
        0 => Ok(reading.celsius),
        _ => Err(Code::INVALID_ARGUMENT),
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperatureV(
    device: nvmlDevice_t,
    target: *mut nvmlTemperature_v1_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let mut value = get(target)?;
        check_version::<nvmlTemperature_v1_t>(value.version, 1)?;
        if value.sensorType != 0 {
            return Err(Code::INVALID_ARGUMENT);
        }
        value.temperature = gpu.reading().celsius as i32;
        Ok(put(target, value)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetTemperatureThreshold(
    device: nvmlDevice_t,
    kind: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |_, _| match kind {
        0 => Ok(92),
        1 => Ok(89),
        2 => Ok(95),
        3 => Ok(85),
        _ => Err(Code::NOT_SUPPORTED),
    })
}

/// Clock domains: 0 graphics, 1 SM, 2 memory, 3 video.
fn clock(gpu: &Gpu, kind: c_uint, now: Option<&Reading>) -> Result<c_uint, Code> {
    let board = gpu.board();
    match kind {
        0 | 1 => Ok(now.map_or(board.sm_mhz, |reading| reading.sm_mhz)),
        2 => Ok(now.map_or(board.memory_mhz, |reading| reading.memory_mhz)),
        3 => Ok(now.map_or(board.sm_mhz, |reading| reading.sm_mhz) * 9 / 10),
        _ => Err(Code::INVALID_ARGUMENT),
    }
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetClockInfo(
    device: nvmlDevice_t,
    kind: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |gpu, reading| clock(gpu, kind, Some(reading)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetMaxClockInfo(
    device: nvmlDevice_t,
    kind: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |gpu, _| clock(gpu, kind, None))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetClock(
    device: nvmlDevice_t,
    kind: c_uint,
    which: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |gpu, reading| match which {
        0 => clock(gpu, kind, Some(reading)),
        1..=3 => clock(gpu, kind, None),
        _ => Err(Code::INVALID_ARGUMENT),
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetApplicationsClock(
    device: nvmlDevice_t,
    kind: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |gpu, _| clock(gpu, kind, None))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    device: nvmlDevice_t,
    lowest: *mut c_uint,
    highest: *mut c_uint,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        put(lowest, watts_to_mw(gpu.board().lowest_limit_watts))?;
        Ok(put(highest, watts_to_mw(gpu.model().limit_watts()))?)
    })
}

/// Total power, GPU utilization and memory utilization as buffered samples: one, of now.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    kind: c_uint,
    last_seen: c_ulonglong,
    value_type: *mut c_uint,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::whole(state, device)?;
        let reading = gpu.reading();
        let value = match kind {
            0 => reading.milliwatts,
            1 => reading.gpu_percent,
            2 => reading.memory_percent,
            5 => reading.sm_mhz,
            6 => reading.memory_mhz,
            _ => return Err(Code::NOT_SUPPORTED),
        };
        let now = timestamp_us();
        if last_seen >= now {
            return Err(Code::NOT_FOUND);
        }
        const UNSIGNED_INT: c_uint = 1;
        put(value_type, UNSIGNED_INT)?;
        let room = get(count)?;
        put(count, 1)?;
        if samples.is_null() {
            return Ok(());
        }
        if room == 0 {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        let sample = nvmlSample_t { timeStamp: now, sampleValue: nvmlValue_t { uiVal: value } };
        Ok(put_slice(samples, &[sample])?)
    })
}

/// Nothing moves over the bus that the emulator knows of.
#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetPcieThroughput(
    device: nvmlDevice_t,
    counter: c_uint,
    target: *mut c_uint,
) -> nvmlReturn_t {
    sensor(device, target, |_, _| if counter < 2 { Ok(0) } else { Err(Code::INVALID_ARGUMENT) })
}
