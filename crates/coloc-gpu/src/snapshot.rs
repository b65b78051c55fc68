//! All GPUs at one moment, as `coloc gpus` and the API answer it. The field names are a contract.

use crate::device::{DeviceProcess, Identity, MigMode, Uuid, Versions, Vitals};
use crate::driver::{Driver, DriverError};
use crate::inventory::survey;
use crate::mig::{GpuInstanceId, MigDevice};
use crate::process::{Attributed, Attribution, Owner};
use crate::sample::{InstanceSample, Sample, Source};
use coloc_model::{Bytes, Fraction, TaskId, Time};
use serde::Serialize;

/// Everything about all GPUs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Snapshot {
    /// At least one of them is made of software.
    pub emulated: bool,
    /// The driver's version.
    pub driver_version: String,
    /// The newest CUDA that it runs.
    pub cuda_version: String,
    /// The GPUs in the driver's order.
    pub gpus: Vec<GpuSnapshot>,
}

/// One GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GpuSnapshot {
    /// The driver's number.
    pub index: u32,
    /// Why nothing more is known of it.
    pub error: Option<String>,
    /// Its name for good.
    pub uuid: Option<Uuid>,
    /// The board.
    pub name: Option<String>,
    /// The model that schedulers know it by.
    pub model: Option<&'static str>,
    /// Its address.
    pub pci_bus_id: Option<String>,
    /// CUDA compute capability.
    pub compute_capability: Option<String>,
    /// Memory of the device.
    pub memory_total_bytes: Option<Bytes>,
    /// Memory that processes hold.
    pub memory_used_bytes: Option<Bytes>,
    /// Memory that the driver keeps.
    pub memory_reserved_bytes: Option<Bytes>,
    /// Share of time in which any kernel ran.
    pub utilization: Option<Fraction>,
    /// Share of time in which memory was read or written.
    pub memory_utilization: Option<Fraction>,
    /// Share of time in which the engine was busy, by the source.
    pub gract: Option<Fraction>,
    /// SM activity.
    pub smact: Option<Fraction>,
    /// SM occupancy.
    pub smocc: Option<Fraction>,
    /// DRAM activity.
    pub drama: Option<Fraction>,
    /// Where activity came from.
    pub source: Option<Source>,
    /// Power draw.
    pub power_w: Option<f64>,
    /// The power limit.
    pub power_limit_w: Option<f64>,
    /// Energy since the driver was loaded.
    pub energy_j: Option<f64>,
    /// Temperature.
    pub temperature_c: Option<u32>,
    /// Clock of the SMs.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory.
    pub memory_clock_mhz: Option<u32>,
    /// Partitions; `None` on boards that have none.
    pub mig: Option<MigSnapshot>,
    /// The processes on it.
    pub processes: Vec<ProcessSnapshot>,
}

/// A board that can be partitioned.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MigSnapshot {
    /// Whether it is.
    pub mode: MigMode,
    /// Its devices.
    pub devices: Vec<MigDevice>,
    /// How busy its instances are, once a monitor has looked.
    pub activity: Vec<InstanceActivity>,
}

/// How busy a GPU instance is: shares of the instance.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct InstanceActivity {
    /// The driver's number.
    pub gpu_instance: GpuInstanceId,
    /// Its size, such as `3g.20gb`.
    pub profile: String,
    /// Share of time in which the engine was busy.
    pub gract: Option<Fraction>,
    /// SM activity.
    pub smact: Option<Fraction>,
    /// SM occupancy.
    pub smocc: Option<Fraction>,
    /// DRAM activity.
    pub drama: Option<Fraction>,
    /// Where it came from; `None` when no source sees into instances.
    pub source: Option<Source>,
}

impl InstanceActivity {
    fn of(instance: &InstanceSample) -> Self {
        let reading = instance.reading;
        InstanceActivity {
            gpu_instance: instance.id,
            profile: instance.profile.clone(),
            gract: reading.gpu,
            smact: reading.sm,
            smocc: reading.occupancy,
            drama: reading.dram,
            source: instance.source,
        }
    }
}

/// A process on a GPU.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProcessSnapshot {
    /// Its PID.
    pub pid: u32,
    /// The user it runs as; `None` once it has ended.
    pub user: Option<String>,
    /// Its name; `None` once it has ended.
    pub command: Option<String>,
    /// Memory that it holds.
    pub memory_bytes: Option<Bytes>,
    /// The GPU instance that it runs in.
    pub gpu_instance: Option<u32>,
    /// The task that it belongs to.
    pub task: Option<TaskId>,
    /// coloc did not start it.
    pub foreign: bool,
}

/// What the driver says of one GPU.
pub type Told = Result<(Identity, Vitals, Vec<DeviceProcess>, Vec<MigDevice>), DriverError>;

/// Asks the driver about everything. A GPU that does not answer is told as such.
pub fn ask(driver: &mut dyn Driver) -> Result<(Versions, Vec<(u32, Told)>), DriverError> {
    let versions = driver.versions()?;
    let mut gpus = Vec::new();
    for (index, identity) in survey(driver)? {
        let told = identity.and_then(|identity| {
            let vitals = driver.vitals(index)?;
            let processes = driver.processes(index)?;
            let devices = if vitals.mig.is_on() { driver.mig_devices(index)? } else { Vec::new() };
            Ok((identity, vitals, processes, devices))
        });
        gpus.push((index, told));
    }
    Ok((versions, gpus))
}

/// Puts the answers together.
pub fn compose(
    versions: Versions,
    told: Vec<(u32, Told)>,
    attribution: &mut Attribution,
) -> Snapshot {
    let gpus: Vec<GpuSnapshot> = told
        .iter()
        .map(|(index, told)| match told {
            Ok((identity, vitals, processes, devices)) => {
                describe(identity, vitals, processes, devices, attribution)
            }
            Err(error) => GpuSnapshot::silent(*index, error),
        })
        .collect();
    let emulated =
        told.iter().any(|(_, told)| told.as_ref().is_ok_and(|(identity, ..)| identity.emulated));
    let Versions { driver: driver_version, cuda: (major, minor) } = versions;
    Snapshot { emulated, driver_version, cuda_version: format!("{major}.{minor}"), gpus }
}

fn describe(
    identity: &Identity,
    vitals: &Vitals,
    processes: &[DeviceProcess],
    devices: &[MigDevice],
    attribution: &mut Attribution,
) -> GpuSnapshot {
    let (major, minor) = identity.compute_capability;
    let mig = (vitals.mig != MigMode::Unsupported).then(|| MigSnapshot {
        mode: vitals.mig,
        devices: devices.to_vec(),
        activity: Vec::new(),
    });
    GpuSnapshot {
        index: identity.index,
        error: None,
        uuid: Some(identity.uuid.clone()),
        name: Some(identity.name.clone()),
        model: Some(identity.model().name()),
        pci_bus_id: Some(identity.pci_bus_id.clone()),
        compute_capability: Some(format!("{major}.{minor}")),
        memory_total_bytes: Some(vitals.memory_total),
        memory_used_bytes: Some(vitals.memory_used),
        memory_reserved_bytes: Some(vitals.memory_reserved),
        utilization: vitals.utilization,
        memory_utilization: vitals.memory_utilization,
        gract: None,
        smact: None,
        smocc: None,
        drama: None,
        source: vitals.utilization.map(|_| Source::Utilization),
        power_w: vitals.power_w,
        power_limit_w: identity.power_limit_w,
        energy_j: vitals.energy_j,
        temperature_c: vitals.temperature_c,
        sm_clock_mhz: vitals.sm_clock_mhz,
        memory_clock_mhz: vitals.memory_clock_mhz,
        mig,
        processes: processes
            .iter()
            .map(|process| ProcessSnapshot::of(process, attribution.of(process.pid, Time::START)))
            .collect(),
    }
}

impl GpuSnapshot {
    /// A GPU that does not answer.
    fn silent(index: u32, error: &DriverError) -> Self {
        GpuSnapshot {
            index,
            error: Some(error.to_string()),
            uuid: None,
            name: None,
            model: None,
            pci_bus_id: None,
            compute_capability: None,
            memory_total_bytes: None,
            memory_used_bytes: None,
            memory_reserved_bytes: None,
            utilization: None,
            memory_utilization: None,
            gract: None,
            smact: None,
            smocc: None,
            drama: None,
            source: None,
            power_w: None,
            power_limit_w: None,
            energy_j: None,
            temperature_c: None,
            sm_clock_mhz: None,
            memory_clock_mhz: None,
            mig: None,
            processes: Vec::new(),
        }
    }

    /// Takes what a monitor saw of its activity.
    pub fn set_activity(&mut self, sample: &Sample) {
        let reading = sample.reading;
        self.source = sample.source;
        (self.gract, self.smact) = (reading.gpu, reading.sm);
        (self.smocc, self.drama) = (reading.occupancy, reading.dram);
        if let Some(mig) = &mut self.mig {
            mig.activity = sample.instances.iter().map(InstanceActivity::of).collect();
        }
    }
}

impl ProcessSnapshot {
    /// A process and what it belongs to.
    pub fn of(process: &DeviceProcess, attributed: Attributed) -> Self {
        let task = match attributed.owner {
            Owner::Task { task, .. } => Some(task),
            Owner::Foreign => None,
        };
        ProcessSnapshot {
            pid: process.pid,
            user: attributed.user,
            command: attributed.command,
            memory_bytes: process.memory,
            gpu_instance: process.gpu_instance,
            task,
            foreign: task.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::scripted::Scripted;
    use crate::process::{ProcessTable, Users};

    #[test]
    fn a_gpu_that_does_not_answer_is_told_and_the_others_too() {
        let mut scripted = Scripted::with_gpus(2);
        scripted.script().gpus[0].failure = Some(DriverError::Lost);
        let (versions, told) = ask(&mut scripted).expect("the driver answers");
        let mut attribution = Attribution::new(ProcessTable::at("/nonexistent"), Users::default());
        let snapshot = compose(versions, told, &mut attribution);
        assert!(snapshot.gpus[0].error.as_ref().is_some_and(|why| why.contains("lost")));
        assert_eq!(snapshot.gpus[1].model, Some("A100-40GB"));
        assert!(!snapshot.emulated);
    }
}
