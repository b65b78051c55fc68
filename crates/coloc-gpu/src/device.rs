//! What is known of a device: plain values, wherever they came from.

use crate::health::Condition;
use coloc_model::{BoardDescription, Bytes, Fraction, GpuModel};
use serde::{Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// The name of a device that survives reboots and renumbering. Cheap to copy about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Uuid(Arc<str>);

impl Uuid {
    /// A name as the driver writes it: `GPU-…` or `MIG-…`.
    pub fn new(text: &str) -> Self {
        Uuid(text.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Serialize for Uuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Versions of the driver and of what it offers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Versions {
    /// The driver, such as `570.86.15`.
    pub driver: String,
    /// The newest CUDA that it runs, as major and minor.
    pub cuda: (u32, u32),
}

/// What never changes about a device.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Identity {
    /// The driver's number for it now.
    pub index: u32,
    /// Its name for good.
    pub uuid: Uuid,
    /// The board's name, such as `NVIDIA A100-SXM4-40GB`.
    pub name: String,
    /// Its address, such as `00000000:07:00.0`.
    pub pci_bus_id: String,
    /// CUDA compute capability.
    pub compute_capability: (u32, u32),
    /// Memory of the device.
    pub memory_total: Bytes,
    /// Streaming multiprocessors, if they can be told.
    pub sms: Option<u32>,
    /// The enforced power limit in watts.
    pub power_limit_w: Option<f64>,
    /// It is made of software: no figure of it was measured.
    pub emulated: bool,
}

impl Identity {
    /// The model that schedulers know it by.
    pub fn model(&self) -> GpuModel {
        GpuModel::of_board(&BoardDescription {
            name: self.name.clone(),
            memory: self.memory_total,
            sms: self.sms.unwrap_or(0),
            limit_watts: self.power_limit_w.unwrap_or(0.0),
        })
    }

    /// Volta and newer run MPS clients in address spaces of their own, and take 48 of them.
    pub fn is_volta_or_newer(&self) -> bool {
        self.compute_capability.0 >= 7
    }
}

/// Whether a device is partitioned.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MigMode {
    /// It cannot be.
    Unsupported,
    /// It could be.
    Disabled,
    /// It is.
    Enabled,
    /// It will be after a reset.
    EnabledAfterReset,
    /// It will no longer be after a reset.
    DisabledAfterReset,
}

impl MigMode {
    /// The mode now, and the one that a reset would bring.
    pub fn from_current_and_pending(current: bool, pending: bool) -> Self {
        match (current, pending) {
            (false, false) => MigMode::Disabled,
            (true, true) => MigMode::Enabled,
            (false, true) => MigMode::EnabledAfterReset,
            (true, false) => MigMode::DisabledAfterReset,
        }
    }

    /// Whether the device is partitioned now.
    pub fn is_on(self) -> bool {
        matches!(self, MigMode::Enabled | MigMode::DisabledAfterReset)
    }
}

/// What changes from moment to moment. `None` is a question that the device does not answer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Vitals {
    /// Memory that is in use by processes.
    pub memory_used: Bytes,
    /// Memory that the driver keeps for itself.
    pub memory_reserved: Bytes,
    /// Memory of the device.
    pub memory_total: Bytes,
    /// Share of time in which any kernel ran.
    pub utilization: Option<Fraction>,
    /// Share of time in which device memory was read or written.
    pub memory_utilization: Option<Fraction>,
    /// Power draw.
    pub power_w: Option<f64>,
    /// Energy since the driver was loaded.
    pub energy_j: Option<f64>,
    /// Temperature of the die.
    pub temperature_c: Option<u32>,
    /// Clock of the SMs.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory.
    pub memory_clock_mhz: Option<u32>,
    /// Whether it is partitioned.
    pub mig: MigMode,
    /// How its memory is.
    pub condition: Condition,
}

impl Vitals {
    /// Nothing is known yet.
    pub(crate) const UNKNOWN: Vitals = Vitals {
        memory_used: Bytes::ZERO,
        memory_reserved: Bytes::ZERO,
        memory_total: Bytes::ZERO,
        utilization: None,
        memory_utilization: None,
        power_w: None,
        energy_j: None,
        temperature_c: None,
        sm_clock_mhz: None,
        memory_clock_mhz: None,
        mig: MigMode::Unsupported,
        condition: Condition { ecc_uncorrected: None, remap_pending: false, remap_failed: false },
    };
}

/// What a process does on a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// It computes in a context of its own.
    Compute,
    /// It computes as a client of MPS.
    Mps,
    /// It draws.
    Graphics,
}

/// A process that has a context on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceProcess {
    /// Its PID, in the namespace of the driver.
    pub pid: u32,
    /// What it does there.
    pub kind: ProcessKind,
    /// Memory that it holds; `None` when the driver does not tell.
    pub memory: Option<Bytes>,
    /// The GPU instance that it runs in.
    pub gpu_instance: Option<u32>,
    /// The compute instance that it runs in.
    pub compute_instance: Option<u32>,
}

/// How busy one process kept a device.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct ProcessUtilization {
    /// Its PID.
    pub pid: u32,
    /// Share of time in which kernels of it ran.
    pub sm: Fraction,
    /// Share of time in which it read or wrote device memory.
    pub memory: Fraction,
}

/// Lists the processes of all kinds once each: a client of MPS that is also listed as computing is a client.
pub(crate) fn merge_processes(
    lists: impl IntoIterator<Item = DeviceProcess>,
) -> Vec<DeviceProcess> {
    let mut merged: Vec<DeviceProcess> = Vec::new();
    for process in lists {
        let same = |p: &&mut DeviceProcess| {
            (p.pid, p.gpu_instance, p.compute_instance)
                == (process.pid, process.gpu_instance, process.compute_instance)
        };
        match merged.iter_mut().find(same) {
            Some(known) => {
                known.memory = known.memory.max(process.memory);
                if process.kind == ProcessKind::Mps {
                    known.kind = ProcessKind::Mps;
                }
            }
            None => merged.push(process),
        }
    }
    merged.sort_by_key(|p| (p.pid, p.gpu_instance, p.compute_instance));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_listed_once() {
        let process = |pid, kind, mib: u64| DeviceProcess {
            pid,
            kind,
            memory: Some(Bytes::from_mib(mib)),
            gpu_instance: None,
            compute_instance: None,
        };
        let merged = merge_processes([
            process(9, ProcessKind::Compute, 700),
            process(4, ProcessKind::Compute, 100),
            process(9, ProcessKind::Mps, 700),
            process(4, ProcessKind::Graphics, 120),
        ]);
        assert_eq!(
            merged,
            [process(4, ProcessKind::Compute, 120), process(9, ProcessKind::Mps, 700)]
        );
    }

    #[test]
    fn mig_modes_say_what_a_reset_would_change() {
        assert!(MigMode::from_current_and_pending(true, false).is_on());
        assert!(!MigMode::from_current_and_pending(false, true).is_on());
    }
}
