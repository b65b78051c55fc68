//! `coloc emu show`: the fleet's own numbers, before any driver API has rounded them.

use crate::error::{CliError, UsageError};
use crate::output::table::table;
use crate::output::{Answer, print_text};
use clap::Args;
use coloc_emu::fleet::{Gpu, State};
use coloc_emu::{DriverError, Emulator, Identity, Place};
use coloc_emu_tools::run::RunError;
use coloc_model::Bytes;
use serde::Serialize;

/// Show the fleet of this environment as the emulator sees it
#[derive(Args, Debug)]
pub(super) struct Show {
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Picture {
    emulated: bool,
    time_s: f64,
    frozen: bool,
    time_scale: f64,
    gpus: Vec<GpuPicture>,
}

#[derive(Serialize)]
struct GpuPicture {
    index: u32,
    name: &'static str,
    uuid: String,
    lost: bool,
    /// The last critical error, 0 for none.
    last_xid: u32,
    ecc_corrected: u64,
    ecc_uncorrected: u64,
    remap_pending: bool,
    remap_failed: bool,
    memory_total_bytes: u64,
    memory_used_bytes: u64,
    gract: f64,
    smact: f64,
    smocc: f64,
    drama: f64,
    power_w: f64,
    power_limit_w: f64,
    energy_j: f64,
    temperature_c: u32,
    sm_clock_mhz: u32,
    memory_clock_mhz: u32,
    mig: bool,
    mig_devices: Vec<MigPicture>,
    processes: Vec<ProcessPicture>,
}

#[derive(Serialize)]
struct MigPicture {
    uuid: String,
    name: String,
    gpu_instance: u32,
    compute_instance: u32,
    memory_total_bytes: u64,
    memory_used_bytes: u64,
}

#[derive(Serialize)]
struct ProcessPicture {
    pid: i32,
    name: String,
    memory_bytes: u64,
    gract: f64,
    smact: f64,
    drama: f64,
    speed: f64,
    mps: bool,
    hung: bool,
    launches: u64,
}

impl Show {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let emulator = Emulator::from_environment().map_err(RunError::from)?;
        let state = emulator.lock().map_err(RunError::from)?;
        let picture = picture(&state).map_err(|error| UsageError::Emulated(error.to_string()))?;
        drop(state);
        if self.json {
            return Answer { body: &picture, wall_s: None }.print();
        }
        let header =
            ["GPU", "memory", "utilization", "SMACT", "SMOCC", "DRAM", "power", "processes"];
        let rows = picture.gpus.iter().map(row);
        let faults: String = picture.gpus.iter().filter_map(faults).collect();
        let table = table(&header, rows);
        print_text(&format!("{table}\n\n{faults}Emulated: nothing here was measured."))
    }
}

/// `GPU 1: last XID 63, a row remap is pending`.
fn faults(gpu: &GpuPicture) -> Option<String> {
    let told = [
        (gpu.last_xid > 0).then(|| format!("last XID {}", gpu.last_xid)),
        (gpu.ecc_corrected > 0).then(|| format!("corrected ECC errors: {}", gpu.ecc_corrected)),
        (gpu.ecc_uncorrected > 0)
            .then(|| format!("uncorrected ECC errors: {}", gpu.ecc_uncorrected)),
        gpu.remap_pending.then(|| "a row remap is pending".to_owned()),
        gpu.remap_failed.then(|| "a row could not be remapped".to_owned()),
    ];
    let told: Vec<String> = told.into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("GPU {}: {}\n", gpu.index, told.join(", ")))
}

fn row(gpu: &GpuPicture) -> Vec<String> {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    if gpu.lost {
        return vec![format!("{} {} (lost)", gpu.index, gpu.name)];
    }
    vec![
        format!("{} {}", gpu.index, gpu.name),
        format!("{} of {}", Bytes(gpu.memory_used_bytes), Bytes(gpu.memory_total_bytes)),
        percent(gpu.gract),
        percent(gpu.smact),
        percent(gpu.smocc),
        percent(gpu.drama),
        format!("{:.0} W", gpu.power_w),
        gpu.processes.len().to_string(),
    ]
}

fn picture(state: &State) -> Result<Picture, DriverError> {
    let clock = state.clock();
    let gpus = (0u32..).zip(state.gpus()).map(|(index, gpu)| gpu_picture(state, index, gpu));
    Ok(Picture {
        emulated: true,
        time_s: state.now_ns() as f64 / 1e9,
        frozen: clock.is_frozen(),
        time_scale: clock.scale(),
        gpus: gpus.collect::<Result<_, _>>()?,
    })
}

fn gpu_picture(state: &State, index: u32, gpu: &Gpu) -> Result<GpuPicture, DriverError> {
    let (reading, place) = (gpu.reading(), Place::whole(index));
    let used = if gpu.is_lost() { Bytes::ZERO } else { state.memory(place)?.used };
    let processes = state.residents(place).into_iter().map(|resident| {
        let view = state.view(resident.process)?;
        Ok(ProcessPicture {
            pid: resident.pid,
            name: Identity::of(resident.pid).map_or_else(String::new, Identity::name),
            memory_bytes: resident.held.0,
            gract: resident.active,
            smact: resident.sm,
            drama: resident.dram,
            speed: view.rate,
            mps: resident.mps,
            hung: view.hung,
            launches: view.launches,
        })
    });
    let mig_devices = gpu.mig_devices().into_iter().map(|mig| {
        let memory = state.memory(Place { gpu: index, mig: Some(mig) })?;
        Ok(MigPicture {
            uuid: gpu.mig_uuid(mig)?,
            name: gpu.mig_name(mig)?,
            gpu_instance: mig.gi,
            compute_instance: mig.ci,
            memory_total_bytes: memory.total.0,
            memory_used_bytes: memory.used.0,
        })
    });
    Ok(GpuPicture {
        index,
        name: gpu.board().name,
        uuid: gpu.uuid(),
        lost: gpu.is_lost(),
        last_xid: gpu.last_xid(),
        ecc_corrected: gpu.ecc_errors().0,
        ecc_uncorrected: gpu.ecc_errors().1,
        remap_pending: gpu.remap_pending(),
        remap_failed: gpu.remap_failed(),
        memory_total_bytes: gpu.model().memory().0,
        memory_used_bytes: used.0,
        gract: reading.shares.gpu,
        smact: reading.shares.sm,
        smocc: reading.shares.occupancy,
        drama: reading.shares.dram,
        power_w: f64::from(reading.milliwatts) / 1000.0,
        power_limit_w: gpu.limit_watts(),
        energy_j: reading.millijoules as f64 / 1000.0,
        temperature_c: reading.celsius,
        sm_clock_mhz: reading.sm_mhz,
        memory_clock_mhz: reading.memory_mhz,
        mig: gpu.mig_enabled(),
        mig_devices: mig_devices.collect::<Result<_, DriverError>>()?,
        processes: processes.collect::<Result<_, DriverError>>()?,
    })
}
