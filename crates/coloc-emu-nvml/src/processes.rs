//! Processes on a device, what they hold and what they use.

use crate::answer::{Code, answer, check_version};
use crate::handle;
use crate::sensors::timestamp_us;
use coloc_emu::abi::{get, put, put_slice};
use coloc_emu::fleet::{ResidentView, percent};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessDetail_v1_t, nvmlProcessDetailList_v1_t, nvmlProcessInfo_v1_t,
    nvmlProcessInfo_v2_t, nvmlProcessUtilizationInfo_v1_t, nvmlProcessUtilizationSample_t,
    nvmlProcessesUtilizationInfo_v1_t, nvmlReturn_t,
};
use std::ffi::{c_uint, c_ulonglong};

/// "No instance" in process lists.
const WHOLE: c_uint = c_uint::MAX;

/// Which processes a list holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Compute,
    Mps,
    Graphics,
}

impl Kind {
    fn holds(self, resident: &ResidentView) -> bool {
        match self {
            Kind::Compute => !resident.mps,
            Kind::Mps => resident.mps,
            Kind::Graphics => false,
        }
    }
}

fn instance_ids(resident: &ResidentView) -> (c_uint, c_uint) {
    resident.place.mig.map_or((WHOLE, WHOLE), |mig| (mig.gi, mig.ci))
}

fn info_v1(resident: &ResidentView) -> nvmlProcessInfo_v1_t {
    nvmlProcessInfo_v1_t { pid: resident.pid as c_uint, usedGpuMemory: resident.held.0 }
}

fn info_v2(resident: &ResidentView) -> nvmlProcessInfo_v2_t {
    let (gpuInstanceId, computeInstanceId) = instance_ids(resident);
    nvmlProcessInfo_v2_t {
        pid: resident.pid as c_uint,
        usedGpuMemory: resident.held.0,
        gpuInstanceId,
        computeInstanceId,
    }
}

/// Fills a caller's array, or says how long it must be.
fn fill<T: Copy>(count: *mut c_uint, array: *mut T, values: &[T]) -> Result<(), Code> {
    let room = get(count)? as usize;
    put(count, values.len() as c_uint)?;
    if values.is_empty() {
        return Ok(());
    }
    if room < values.len() || array.is_null() {
        return Err(Code::INSUFFICIENT_SIZE);
    }
    Ok(put_slice(array, values)?)
}

fn list<T: Copy>(
    device: nvmlDevice_t,
    count: *mut c_uint,
    array: *mut T,
    kind: Kind,
    describe: fn(&ResidentView) -> T,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        let residents = state.residents(place);
        let values: Vec<T> =
            residents.iter().filter(|resident| kind.holds(resident)).map(describe).collect();
        fill(count, array, &values)
    })
}

/// The three lists, each in three versions. The first has a smaller struct.
macro_rules! process_lists {
    ($(fn $name:ident($type:ty) = $kind:expr, $describe:expr;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name(
            device: nvmlDevice_t,
            count: *mut c_uint,
            array: *mut $type,
        ) -> nvmlReturn_t {
            list(device, count, array, $kind, $describe)
        }
    )*};
}

process_lists! {
    fn nvmlDeviceGetComputeRunningProcesses(nvmlProcessInfo_v1_t) = Kind::Compute, info_v1;
    fn nvmlDeviceGetComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = Kind::Compute, info_v2;
    fn nvmlDeviceGetComputeRunningProcesses_v3(nvmlProcessInfo_v2_t) = Kind::Compute, info_v2;
    fn nvmlDeviceGetGraphicsRunningProcesses(nvmlProcessInfo_v1_t) = Kind::Graphics, info_v1;
    fn nvmlDeviceGetGraphicsRunningProcesses_v2(nvmlProcessInfo_v2_t) = Kind::Graphics, info_v2;
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlProcessInfo_v2_t) = Kind::Graphics, info_v2;
    fn nvmlDeviceGetMPSComputeRunningProcesses(nvmlProcessInfo_v1_t) = Kind::Mps, info_v1;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlProcessInfo_v2_t) = Kind::Mps, info_v2;
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlProcessInfo_v2_t) = Kind::Mps, info_v2;
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetRunningProcessDetailList(
    device: nvmlDevice_t,
    target: *mut nvmlProcessDetailList_v1_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        let mut list = get(target)?;
        check_version::<nvmlProcessDetailList_v1_t>(list.version, 1)?;
        let kind = match list.mode {
            0 => Kind::Compute,
            1 => Kind::Graphics,
            2 => Kind::Mps,
            _ => return Err(Code::INVALID_ARGUMENT),
        };
        let residents = state.residents(place);
        let values: Vec<nvmlProcessDetail_v1_t> = residents
            .iter()
            .filter(|resident| kind.holds(resident))
            .map(|resident| {
                let (gpuInstanceId, computeInstanceId) = instance_ids(resident);
                nvmlProcessDetail_v1_t {
                    pid: resident.pid as c_uint,
                    usedGpuMemory: resident.held.0,
                    gpuInstanceId,
                    computeInstanceId,
                    usedGpuCcProtectedMemory: 0,
                }
            })
            .collect();
        let room = list.numProcArrayEntries as usize;
        list.numProcArrayEntries = values.len() as c_uint;
        put(target, list)?;
        if values.is_empty() {
            return Ok(());
        }
        if room < values.len() || list.procArray.is_null() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        Ok(put_slice(list.procArray, &values)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    samples: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, device)?;
        if gpu.mig_enabled() {
            return Err(Code::NOT_SUPPORTED);
        }
        let now = timestamp_us();
        let residents = state.residents(place);
        if residents.is_empty() || last_seen >= now {
            put(count, 0)?;
            return Err(Code::NOT_FOUND);
        }
        let values: Vec<nvmlProcessUtilizationSample_t> = residents
            .iter()
            .map(|resident| nvmlProcessUtilizationSample_t {
                pid: resident.pid as c_uint,
                timeStamp: now,
                smUtil: percent(resident.active),
                memUtil: percent(resident.dram),
                encUtil: 0,
                decUtil: 0,
            })
            .collect();
        fill(count, samples, &values)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetProcessesUtilizationInfo(
    device: nvmlDevice_t,
    target: *mut nvmlProcessesUtilizationInfo_v1_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (place, gpu) = handle::gpu(state, device)?;
        let mut info = get(target)?;
        check_version::<nvmlProcessesUtilizationInfo_v1_t>(info.version, 1)?;
        if gpu.mig_enabled() {
            return Err(Code::NOT_SUPPORTED);
        }
        let now = timestamp_us();
        let residents = state.residents(place);
        if residents.is_empty() || info.lastSeenTimeStamp >= now {
            return Err(Code::NOT_FOUND);
        }
        let values: Vec<nvmlProcessUtilizationInfo_v1_t> = residents
            .iter()
            .map(|resident| nvmlProcessUtilizationInfo_v1_t {
                timeStamp: now,
                pid: resident.pid as c_uint,
                smUtil: percent(resident.active),
                memUtil: percent(resident.dram),
                encUtil: 0,
                decUtil: 0,
                jpgUtil: 0,
                ofaUtil: 0,
            })
            .collect();
        let room = info.processSamplesCount as usize;
        info.processSamplesCount = values.len() as c_uint;
        put(target, info)?;
        if room < values.len() || info.procUtilArray.is_null() {
            return Err(Code::INSUFFICIENT_SIZE);
        }
        Ok(put_slice(info.procUtilArray, &values)?)
    })
}
