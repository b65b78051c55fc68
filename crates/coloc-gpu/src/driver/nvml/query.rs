//! Questions about one device, and what the answers mean.

use super::lists::{self, List};
use super::{DriverError, translate};
use crate::device::{
    DeviceProcess, Identity, MigMode, ProcessKind, ProcessUtilization, Uuid, Versions, Vitals,
    merge_processes,
};
use crate::health::Condition;
use coloc_model::{Bytes, Fraction};
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use nvml_wrapper_sys::bindings::nvmlProcessInfo_t;

/// What the emulated driver has in its boards' part numbers.
const EMULATED: &str = "emulated";

pub(super) fn versions(nvml: &Nvml) -> Result<Versions, DriverError> {
    let driver = nvml.sys_driver_version().map_err(|e| translate("reading versions", e))?;
    let cuda = nvml.sys_cuda_driver_version().map_err(|e| translate("reading versions", e))?;
    let cuda = u32::try_from(cuda).unwrap_or(0);
    Ok(Versions { driver, cuda: (cuda / 1000, cuda % 1000 / 10) })
}

/// An answer that a device may not have. Losing the device is not one of them.
fn optional<T>(what: &'static str, answer: Result<T, NvmlError>) -> Result<Option<T>, DriverError> {
    match answer.map_err(|error| translate(what, error)) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_device_loss() || error.wants_reconnect() => Err(error),
        Err(_) => Ok(None),
    }
}

pub(super) fn identity(device: &Device<'_>, index: u32) -> Result<Identity, DriverError> {
    const WHAT: &str = "reading the device's identity";
    let fail = |error| translate(WHAT, error);
    let capability = optional(WHAT, device.cuda_compute_capability())?;
    let capability = capability.map_or((0, 0), |c| (c.major.max(0) as u32, c.minor.max(0) as u32));
    let cores = optional(WHAT, device.num_cores())?;
    let part = optional(WHAT, device.board_part_number())?.unwrap_or_default();
    Ok(Identity {
        index,
        uuid: Uuid::new(&device.uuid().map_err(fail)?),
        name: device.name().map_err(fail)?,
        pci_bus_id: optional(WHAT, device.pci_info())?.map_or(String::new(), |pci| pci.bus_id),
        compute_capability: capability,
        memory_total: Bytes(device.memory_info().map_err(fail)?.total),
        sms: cores.and_then(|cores| Some(cores / cores_per_sm(capability)?)),
        power_limit_w: optional(WHAT, device.enforced_power_limit())?.map(from_milli),
        emulated: part.to_ascii_lowercase().contains(EMULATED),
    })
}

/// CUDA cores (FP32 lanes) in an SM, by compute capability; from NVIDIA's programming guide.
fn cores_per_sm(capability: (u32, u32)) -> Option<u32> {
    match capability {
        (3, _) => Some(192),
        (5, _) | (6, 1..=2) => Some(128),
        (6, 0) | (7, _) | (8, 0) => Some(64),
        (8, _) | (9, _) | (10..=12, _) => Some(128),
        _ => None,
    }
}

fn from_milli(value: u32) -> f64 {
    f64::from(value) / 1000.0
}

fn from_percent(value: u32) -> Fraction {
    Fraction::saturating(f64::from(value) / 100.0)
}

/// What changes fast.
fn pulse(device: &Device<'_>, vitals: &mut Vitals) -> Result<(), DriverError> {
    const WHAT: &str = "reading the device's state";
    let memory = device.memory_info().map_err(|error| translate(WHAT, error))?;
    let rates = optional(WHAT, device.utilization_rates())?;
    let energy = optional(WHAT, device.total_energy_consumption())?;
    vitals.memory_used = Bytes(memory.used);
    vitals.memory_reserved = Bytes(memory.reserved);
    vitals.memory_total = Bytes(memory.total);
    vitals.utilization = rates.as_ref().map(|rates| from_percent(rates.gpu));
    vitals.memory_utilization = rates.as_ref().map(|rates| from_percent(rates.memory));
    vitals.power_w = optional(WHAT, device.power_usage())?.map(from_milli);
    vitals.energy_j = energy.map(|millijoules| millijoules as f64 / 1000.0);
    Ok(())
}

/// What changes slowly.
fn condition(nvml: &Nvml, device: &Device<'_>, vitals: &mut Vitals) -> Result<(), DriverError> {
    const WHAT: &str = "reading the device's condition";
    let mig = optional(WHAT, device.mig_mode())?;
    vitals.temperature_c = optional(WHAT, device.temperature(TemperatureSensor::Gpu))?;
    vitals.sm_clock_mhz = optional(WHAT, device.clock_info(Clock::SM))?;
    vitals.memory_clock_mhz = optional(WHAT, device.clock_info(Clock::Memory))?;
    vitals.mig = mig.map_or(MigMode::Unsupported, |mode| {
        MigMode::from_current_and_pending(mode.current == 1, mode.pending == 1)
    });
    vitals.condition = memory_condition(nvml, device)?;
    Ok(())
}

/// How a device's memory is: from Ampere on by its rows, before by its pages.
fn memory_condition(nvml: &Nvml, device: &Device<'_>) -> Result<Condition, DriverError> {
    const WHAT: &str = "reading the condition of the device's memory";
    let errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
    let (remap_pending, remap_failed) = match optional(WHAT, lists::remapped_rows(nvml, device))? {
        Some(rows) => rows,
        None => (optional(WHAT, device.are_pages_pending_retired())?.unwrap_or(false), false),
    };
    let ecc_uncorrected = optional(WHAT, errors)?;
    Ok(Condition { ecc_uncorrected, remap_pending, remap_failed })
}

pub(super) fn vitals(nvml: &Nvml, device: &Device<'_>) -> Result<Vitals, DriverError> {
    let mut vitals = Vitals::UNKNOWN;
    pulse(device, &mut vitals)?;
    condition(nvml, device, &mut vitals)?;
    Ok(vitals)
}

pub(super) fn refresh(device: &Device<'_>, vitals: &mut Vitals) -> Result<(), DriverError> {
    pulse(device, vitals)
}

/// "Not available", and "not in an instance".
const NO_AMOUNT: u64 = u64::MAX;
const NO_INSTANCE: u32 = u32::MAX;

fn process(kind: ProcessKind, info: &nvmlProcessInfo_t) -> DeviceProcess {
    let instance = |id: u32| (id != NO_INSTANCE).then_some(id);
    DeviceProcess {
        pid: info.pid,
        kind,
        memory: (info.usedGpuMemory != NO_AMOUNT).then_some(Bytes(info.usedGpuMemory)),
        gpu_instance: instance(info.gpuInstanceId),
        compute_instance: instance(info.computeInstanceId),
    }
}

pub(super) fn processes(
    nvml: &Nvml,
    device: &Device<'_>,
) -> Result<Vec<DeviceProcess>, DriverError> {
    let mut all = Vec::new();
    let lists = [
        (ProcessKind::Compute, List::Compute),
        (ProcessKind::Mps, List::Mps),
        (ProcessKind::Graphics, List::Graphics),
    ];
    for (kind, list) in lists {
        match lists::processes(nvml, device, list) {
            Ok(infos) => all.extend(infos.iter().map(|info| process(kind, info))),
            // Not every board draws or has clients.
            Err(DriverError::NotSupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(merge_processes(all))
}

/// Time shares by process since a moment in the driver's clock, and the newest moment seen.
pub(super) fn process_utilization(
    nvml: &Nvml,
    device: &Device<'_>,
    since: u64,
) -> Result<(u64, Vec<ProcessUtilization>), DriverError> {
    let samples = lists::utilization(nvml, device, since)?;
    let newest = samples.iter().map(|sample| sample.timeStamp).max().unwrap_or(since);
    // Of several samples of a process the newest counts.
    let mut latest: Vec<(u64, ProcessUtilization)> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.timeStamp > since) {
        let utilization = ProcessUtilization {
            pid: sample.pid,
            sm: from_percent(sample.smUtil),
            memory: from_percent(sample.memUtil),
        };
        match latest.iter_mut().find(|(_, known)| known.pid == sample.pid) {
            Some(known) if known.0 < sample.timeStamp => *known = (sample.timeStamp, utilization),
            Some(_) => {}
            None => latest.push((sample.timeStamp, utilization)),
        }
    }
    Ok((newest, latest.into_iter().map(|(_, utilization)| utilization).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sms_follow_from_cores() {
        // A100: 6912 cores; H100 SXM: 16896; V100: 5120; RTX 3090: 10496; P100: 3584; K80's die: 2496.
        let boards = [
            ((8, 0), 6912, 108),
            ((9, 0), 16_896, 132),
            ((7, 0), 5120, 80),
            ((8, 6), 10_496, 82),
            ((6, 0), 3584, 56),
            ((3, 7), 2496, 13),
        ];
        for (capability, cores, sms) in boards {
            assert_eq!(cores_per_sm(capability).map(|per_sm| cores / per_sm), Some(sms));
        }
        assert_eq!(cores_per_sm((99, 0)), None);
    }
}
