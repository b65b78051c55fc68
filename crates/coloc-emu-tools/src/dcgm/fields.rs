//! DCGM's fields by number.

use coloc_emu::fleet::{Gpu, MigDevice, Shares, State};
use coloc_emu::{DriverError, Place};

/// What a field is called.
pub(super) struct Field {
    pub(super) id: u32,
    /// Column of `dcgmi dmon`.
    pub(super) column: &'static str,
    /// Name in the exporter, without its prefix.
    pub(super) metric: &'static str,
    /// Prometheus type.
    pub(super) kind: &'static str,
    /// Also kept for MIG devices.
    pub(super) of_instances: bool,
    pub(super) help: &'static str,
}

const fn field(
    id: u32,
    column: &'static str,
    metric: &'static str,
    kind: &'static str,
    of_instances: bool,
    help: &'static str,
) -> Field {
    Field { id, column, metric, kind, of_instances, help }
}

/// The fields that the emulator can answer.
#[rustfmt::skip] // One row a line.
pub(super) static FIELDS: [Field; 16] = [
    field(100, "SMCLK", "DEV_SM_CLOCK", "gauge", false, "SM clock frequency (in MHz)."),
    field(101, "MMCLK", "DEV_MEM_CLOCK", "gauge", false, "Memory clock frequency (in MHz)."),
    field(150, "TMPTR", "DEV_GPU_TEMP", "gauge", false, "GPU temperature (in C)."),
    field(155, "POWER", "DEV_POWER_USAGE", "gauge", false, "Power draw (in W)."),
    field(156, "TOTEC", "DEV_TOTAL_ENERGY_CONSUMPTION", "counter", false, "Total energy consumption since boot (in mJ)."),
    field(203, "GPUTL", "DEV_GPU_UTIL", "gauge", false, "GPU utilization (in %)."),
    field(204, "MCUTL", "DEV_MEM_COPY_UTIL", "gauge", false, "Memory utilization (in %)."),
    field(230, "XIDER", "DEV_XID_ERRORS", "gauge", false, "Value of the last XID error encountered."),
    field(250, "FBTTL", "DEV_FB_TOTAL", "gauge", true, "Framebuffer memory in all (in MiB)."),
    field(251, "FBFRE", "DEV_FB_FREE", "gauge", true, "Framebuffer memory free (in MiB)."),
    field(252, "FBUSD", "DEV_FB_USED", "gauge", true, "Framebuffer memory used (in MiB)."),
    field(1001, "GRACT", "PROF_GR_ENGINE_ACTIVE", "gauge", true, "Ratio of time the graphics engine is active."),
    field(1002, "SMACT", "PROF_SM_ACTIVE", "gauge", true, "The ratio of cycles an SM has at least 1 warp assigned."),
    field(1003, "SMOCC", "PROF_SM_OCCUPANCY", "gauge", true, "The ratio of number of warps resident on an SM."),
    field(1004, "TENSO", "PROF_PIPE_TENSOR_ACTIVE", "gauge", true, "Ratio of cycles the tensor (HMMA) pipe is active."),
    field(1005, "DRAMA", "PROF_DRAM_ACTIVE", "gauge", true, "Ratio of cycles the device memory interface is active."),
];

/// The field of that number.
pub(super) fn by_id(id: u32) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.id == id)
}

/// A MIG device of each GPU instance: DCGM tells of GPU instances, whatever they are divided into.
pub(super) fn first_of_each(gpu: &Gpu) -> Vec<MigDevice> {
    let mut devices = gpu.mig_devices();
    devices.dedup_by_key(|device| device.gi);
    devices
}

/// Activity of a device between two looks.
#[derive(Clone, Copy)]
pub(super) struct Look {
    at_ns: u64,
    sums: Shares,
}

impl Look {
    pub(super) fn at(state: &State, gpu: &Gpu) -> Self {
        Look { at_ns: state.now_ns(), sums: gpu.share_seconds() }
    }
}

/// Activity of a GPU instance: that of its compute instances, each by its part of the slices.
fn of_instance(state: &State, gpu: &Gpu, index: u32, gi: u32) -> Result<Shares, DriverError> {
    let slices = f64::from(gpu.instance_view(gi)?.profile.compute());
    let mut all = Shares::default();
    for mig in gpu.mig_devices().into_iter().filter(|mig| mig.gi == gi) {
        let part = f64::from(gpu.compute_slices(mig)?) / slices;
        let shares = state.mig_shares(Place { gpu: index, mig: Some(mig) })?;
        all.sm += shares.sm * part;
        all.occupancy += shares.occupancy * part;
        // They share the memory of their instance.
        all.dram = (all.dram + shares.dram).min(1.0);
        all.gpu = all.gpu.max(shares.gpu);
    }
    Ok(all)
}

/// Activity of a place: the mean since an earlier look, or of this moment where there is none.
fn shares(state: &State, place: Place, since: Option<Look>) -> Result<Shares, DriverError> {
    let gpu = state.live_gpu(place.gpu)?;
    let now = || match place.mig {
        None => state.mig_shares(place),
        Some(mig) => of_instance(state, gpu, place.gpu, mig.gi),
    };
    let Some(since) = since.filter(|_| place.mig.is_none()) else { return now() };
    let seconds = state.now_ns().saturating_sub(since.at_ns) as f64 / 1e9;
    if seconds <= 0.0 {
        return now();
    }
    Ok(gpu.share_seconds().mean_since(since.sums, seconds))
}

/// A field's value, as text; `None` where DCGM has none either.
pub(super) fn value(
    state: &State,
    place: Place,
    id: u32,
    since: Option<Look>,
) -> Result<Option<String>, DriverError> {
    let gpu = state.live_gpu(place.gpu)?;
    let reading = gpu.reading();
    let memory = state.memory(place)?;
    let whole = place.mig.is_none();
    let mib = |bytes: coloc_model::Bytes| format!("{:.0}", bytes.mib());
    let ratio = |of: fn(Shares) -> f64| -> Result<_, DriverError> {
        Ok(Some(format!("{:.3}", of(shares(state, place, since)?))))
    };
    Ok(match id {
        250 => Some(mib(memory.total)),
        251 => Some(mib(memory.free())),
        252 => Some(mib(memory.used)),
        1001 => return ratio(|shares| shares.gpu),
        1002 => return ratio(|shares| shares.sm),
        1003 => return ratio(|shares| shares.occupancy),
        1005 => return ratio(|shares| shares.dram),
        // What kind of arithmetic runs is not modelled.
        1004 => None,
        100 if whole => Some(reading.sm_mhz.to_string()),
        101 if whole => Some(reading.memory_mhz.to_string()),
        150 if whole => Some(reading.celsius.to_string()),
        155 if whole => Some(format!("{:.3}", f64::from(reading.milliwatts) / 1000.0)),
        156 if whole => Some(reading.millijoules.to_string()),
        203 if whole && !gpu.mig_enabled() => Some(reading.gpu_percent.to_string()),
        204 if whole && !gpu.mig_enabled() => Some(reading.memory_percent.to_string()),
        230 if whole => Some(gpu.last_xid().to_string()),
        _ => None,
    })
}
