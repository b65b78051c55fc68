//! A driver that does what a test tells it.

use super::{Connect, Driver, DriverError};
use crate::device::{DeviceProcess, Identity, MigMode, ProcessUtilization, Uuid, Versions, Vitals};
use crate::mig::{Board, ComputeInstanceId, GpuInstanceId, MigDevice, Place};
use crate::sample::Reading;
use coloc_model::{Bytes, Fraction};
use std::sync::{Arc, Mutex, MutexGuard};

#[derive(Debug)]
pub(crate) struct ScriptedGpu {
    pub(crate) identity: Identity,
    pub(crate) vitals: Vitals,
    pub(crate) processes: Vec<DeviceProcess>,
    pub(crate) gpm: Result<Option<Reading>, DriverError>,
    pub(crate) failure: Option<DriverError>,
}

#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) gpus: Vec<ScriptedGpu>,
    unloaded: bool,
    connections: u32,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct Scripted {
    script: Arc<Mutex<Script>>,
    gate: Arc<Mutex<()>>,
}

pub(crate) fn identity(index: u32) -> Identity {
    Identity {
        index,
        uuid: Uuid::new(&format!("GPU-{index:04}")),
        name: "NVIDIA A100-SXM4-40GB".to_owned(),
        pci_bus_id: format!("00000000:{:02X}:00.0", index + 7),
        compute_capability: (8, 0),
        memory_total: Bytes::from_mib(40_960),
        sms: Some(108),
        power_limit_w: Some(400.0),
        emulated: false,
    }
}

pub(crate) fn vitals() -> Vitals {
    Vitals {
        memory_used: Bytes::from_mib(1000),
        memory_reserved: Bytes::from_mib(400),
        memory_total: Bytes::from_mib(40_960),
        utilization: Some(Fraction::new(0.75)),
        memory_utilization: Some(Fraction::new(0.25)),
        power_w: Some(120.0),
        energy_j: Some(1.0e6),
        temperature_c: Some(40),
        sm_clock_mhz: Some(1410),
        memory_clock_mhz: Some(1215),
        mig: MigMode::Disabled,
        condition: crate::health::Condition::default(),
    }
}

pub(crate) fn gpu(index: u32) -> ScriptedGpu {
    ScriptedGpu {
        identity: identity(index),
        vitals: vitals(),
        processes: Vec::new(),
        gpm: Err(DriverError::NotSupported { what: "GPM" }),
        failure: None,
    }
}

impl Scripted {
    pub(crate) fn with_gpus(count: u32) -> Self {
        let scripted = Scripted::default();
        scripted.script().gpus = (0..count).map(gpu).collect();
        scripted
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("no test panicked")
    }

    pub(crate) fn connect(&self) -> Connect {
        let scripted = self.clone();
        Box::new(move || {
            if scripted.script().unloaded {
                return Err(DriverError::NotLoaded);
            }
            scripted.script().connections += 1;
            Ok(Box::new(scripted.clone()))
        })
    }

    /// Every call waits until the guard is dropped.
    pub(crate) fn hang(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().expect("no test panicked")
    }

    pub(crate) fn unload(&self) {
        self.script().unloaded = true;
    }

    pub(crate) fn load(&self) {
        self.script().unloaded = false;
    }

    pub(crate) fn connections(&self) -> u32 {
        self.script().connections
    }

    fn on<T>(
        &self,
        index: u32,
        answer: impl FnOnce(&mut ScriptedGpu) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        self.alive()?;
        let mut script = self.script();
        let gpu = script.gpus.get_mut(index as usize);
        let gpu = gpu.ok_or(DriverError::NotFound { what: "device" })?;
        match &gpu.failure {
            Some(error) => Err(error.clone()),
            None => answer(gpu),
        }
    }

    fn alive(&self) -> Result<(), DriverError> {
        drop(self.gate.lock().expect("no test panicked"));
        if self.script().unloaded { Err(DriverError::NotLoaded) } else { Ok(()) }
    }
}

const NO_MIG: DriverError = DriverError::NotSupported { what: "MIG" };

impl Driver for Scripted {
    fn versions(&mut self) -> Result<Versions, DriverError> {
        Ok(Versions { driver: "570.86.15".to_owned(), cuda: (12, 8) })
    }
    fn count(&mut self) -> Result<u32, DriverError> {
        self.alive()?;
        Ok(self.script().gpus.len() as u32)
    }
    fn identity(&mut self, index: u32) -> Result<Identity, DriverError> {
        self.on(index, |gpu| Ok(Identity { index, ..gpu.identity.clone() }))
    }
    fn vitals(&mut self, index: u32) -> Result<Vitals, DriverError> {
        self.on(index, |gpu| Ok(gpu.vitals))
    }
    fn refresh(&mut self, index: u32, vitals: &mut Vitals) -> Result<(), DriverError> {
        *vitals = self.vitals(index)?;
        Ok(())
    }
    fn processes(&mut self, index: u32) -> Result<Vec<DeviceProcess>, DriverError> {
        self.on(index, |gpu| Ok(gpu.processes.clone()))
    }
    fn process_utilization(&mut self, index: u32) -> Result<Vec<ProcessUtilization>, DriverError> {
        self.on(index, |_| Ok(Vec::new()))
    }
    fn gpm(&mut self, index: u32) -> Result<Option<Reading>, DriverError> {
        self.on(index, |gpu| gpu.gpm.clone())
    }

    fn gpm_of_instance(
        &mut self,
        index: u32,
        _: GpuInstanceId,
    ) -> Result<Option<Reading>, DriverError> {
        self.on(index, |gpu| gpu.gpm.clone())
    }
    fn mig_board(&mut self, _: u32) -> Result<Board, DriverError> {
        Err(NO_MIG)
    }
    fn set_mig(&mut self, _: u32, _: bool) -> Result<(), DriverError> {
        Err(NO_MIG)
    }
    fn create_instance(&mut self, _: u32, _: u32, _: Place) -> Result<GpuInstanceId, DriverError> {
        Err(NO_MIG)
    }
    fn destroy_instance(&mut self, _: u32, _: GpuInstanceId) -> Result<(), DriverError> {
        Err(NO_MIG)
    }
    fn create_compute(
        &mut self,
        _: u32,
        _: GpuInstanceId,
        _: u8,
    ) -> Result<ComputeInstanceId, DriverError> {
        Err(NO_MIG)
    }
    fn destroy_compute(
        &mut self,
        _: u32,
        _: GpuInstanceId,
        _: ComputeInstanceId,
    ) -> Result<(), DriverError> {
        Err(NO_MIG)
    }
    fn mig_devices(&mut self, _: u32) -> Result<Vec<MigDevice>, DriverError> {
        Ok(Vec::new())
    }
}
