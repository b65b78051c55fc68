//! Series of devices, by the names, units and labels of dcgm-exporter.

use super::exporter::Board;
use super::writer::{Labels, Writer};
use crate::owner::GpuNumbers;
use coloc_gpu::sample::{Reading, Sample};
use coloc_model::Fraction;
use std::fmt;

/// Whole MiB, as the exporter has them.
fn mib(bytes: u64) -> f64 {
    (bytes >> 20) as f64
}

/// A figure of a device as the driver tells it.
struct Vital {
    name: &'static str,
    help: &'static str,
    of: fn(&Sample) -> Option<f64>,
}

/// A figure of a device or of an instance, as the best source of samples tells it.
struct Activity {
    name: &'static str,
    help: &'static str,
    of: fn(&Reading) -> Option<Fraction>,
}

fn percent(part: Fraction) -> f64 {
    (part.get() * 100.0).round()
}

#[rustfmt::skip] // One row a line.
const VITALS: [Vital; 10] = [
    Vital { name: "DCGM_FI_DEV_SM_CLOCK", help: "SM clock frequency (in MHz)", of: |s| s.vitals.sm_clock_mhz.map(f64::from) },
    Vital { name: "DCGM_FI_DEV_MEM_CLOCK", help: "Memory clock frequency (in MHz)", of: |s| s.vitals.memory_clock_mhz.map(f64::from) },
    Vital { name: "DCGM_FI_DEV_GPU_TEMP", help: "GPU temperature (in C)", of: |s| s.vitals.temperature_c.map(f64::from) },
    Vital { name: "DCGM_FI_DEV_POWER_USAGE", help: "Power draw (in W)", of: |s| s.vitals.power_w },
    Vital { name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", help: "Total energy consumption since boot (in mJ)", of: |s| s.vitals.energy_j.map(|j| j * 1000.0) },
    Vital { name: "DCGM_FI_DEV_GPU_UTIL", help: "GPU utilization (in %)", of: |s| s.vitals.utilization.map(percent) },
    Vital { name: "DCGM_FI_DEV_MEM_COPY_UTIL", help: "Memory utilization (in %)", of: |s| s.vitals.memory_utilization.map(percent) },
    Vital { name: "DCGM_FI_DEV_FB_TOTAL", help: "Framebuffer memory in all (in MiB)", of: |s| Some(mib(s.vitals.memory_total.0)) },
    Vital { name: "DCGM_FI_DEV_FB_USED", help: "Framebuffer memory used (in MiB)", of: |s| Some(mib(s.vitals.memory_used.0)) },
    Vital { name: "DCGM_FI_DEV_FB_FREE", help: "Framebuffer memory free (in MiB)", of: |s| {
        let taken = s.vitals.memory_used + s.vitals.memory_reserved;
        Some(mib(s.vitals.memory_total.0.saturating_sub(taken.0)))
    } },
];

#[rustfmt::skip] // One row a line.
const ACTIVITIES: [Activity; 5] = [
    Activity { name: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", help: "Ratio of time the graphics engine is active", of: |r| r.gpu },
    Activity { name: "DCGM_FI_PROF_SM_ACTIVE", help: "The ratio of cycles an SM has at least 1 warp assigned", of: |r| r.sm },
    Activity { name: "DCGM_FI_PROF_SM_OCCUPANCY", help: "The ratio of number of warps resident on an SM", of: |r| r.occupancy },
    Activity { name: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", help: "Ratio of cycles the tensor (HMMA) pipe is active", of: |r| r.tensor },
    Activity { name: "DCGM_FI_PROF_DRAM_ACTIVE", help: "Ratio of cycles the device memory interface is active", of: |r| r.dram },
];

/// The labels that dcgm-exporter gives a device.
fn labels(gpu: &GpuNumbers, boards: &[Board], host: &str) -> Labels {
    let board = boards.get(gpu.index as usize);
    vec![
        ("gpu", gpu.index.to_string()),
        ("UUID", gpu.uuid.clone()),
        ("pci_bus_id", board.map(|board| board.address.clone()).unwrap_or_default()),
        ("device", format!("nvidia{}", gpu.index)),
        ("modelName", board.map_or_else(|| gpu.model.clone(), |board| board.name.clone())),
        ("Hostname", host.to_owned()),
    ]
}

/// Writes what was seen last of each device. A device that is lost has no series.
pub(super) fn write(
    to: &mut Writer<'_>,
    gpus: &[GpuNumbers],
    boards: &[Board],
    host: &str,
) -> fmt::Result {
    let seen = || gpus.iter().filter_map(|gpu| Some((gpu, gpu.sample.as_ref()?)));
    for Vital { name, help, of } in VITALS {
        let series =
            seen().filter_map(|(gpu, sample)| Some((labels(gpu, boards, host), of(sample)?)));
        to.gauges(name, help, series)?;
    }
    for Activity { name, help, of } in ACTIVITIES {
        let mut series = Vec::new();
        for (gpu, sample) in seen() {
            let labels = labels(gpu, boards, host);
            // A partitioned GPU is told by its instances, as the exporter does.
            for instance in &sample.instances {
                let mut labels = labels.clone();
                labels.insert(5, ("GPU_I_PROFILE", instance.profile.clone()));
                labels.insert(6, ("GPU_I_ID", instance.id.0.to_string()));
                series.extend(of(&instance.reading).map(|part| (labels, part.get())));
            }
            if sample.instances.is_empty() {
                series.extend(of(&sample.reading).map(|part| (labels, part.get())));
            }
        }
        to.gauges(name, help, series)?;
    }
    Ok(())
}
