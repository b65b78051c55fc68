//! NVML's own profiling metrics (Hopper and newer): averages between two samples.

use crate::answer::{Code, answer, answer_alone, check_version};
use crate::handle;
use coloc_emu::Place;
use coloc_emu::abi::{get, put};
use coloc_emu::fleet::{Shares, State};
use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpmMetric_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t,
    nvmlReturn_t,
};
use std::collections::BTreeMap;
use std::ffi::c_uint;
use std::mem::offset_of;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

const TAG: usize = 0xC021;
const REVISION: u32 = 1;

/// Sums over time at one moment, and what held at that moment.
#[derive(Clone, Copy)]
struct Sample {
    at_ns: u64,
    sums: Shares,
    now: Shares,
    /// Of a MIG device, whose activity is not summed.
    instance: bool,
}

static SAMPLES: Mutex<BTreeMap<usize, Option<Sample>>> = Mutex::new(BTreeMap::new());

fn samples() -> MutexGuard<'static, BTreeMap<usize, Option<Sample>>> {
    SAMPLES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmQueryDeviceSupport(
    device: nvmlDevice_t,
    target: *mut nvmlGpmSupport_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (_, gpu) = handle::gpu(state, device)?;
        let mut support = get(target)?;
        if support.version != REVISION {
            check_version::<nvmlGpmSupport_t>(support.version, REVISION)?;
        }
        support.isSupportedDevice = gpu.board().has_gpm().into();
        Ok(put(target, support)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleAlloc(target: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    answer_alone(|| {
        let mut samples = samples();
        let id = samples.keys().next_back().map_or(TAG << 32, |last| last + 1);
        put(target, ptr::without_provenance_mut(id))?;
        samples.insert(id, None);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    answer_alone(|| samples().remove(&sample.addr()).map(|_| ()).ok_or(Code::INVALID_ARGUMENT))
}

fn take(state: &State, place: Place, sample: nvmlGpmSample_t) -> Result<(), Code> {
    let gpu = state.live_gpu(place.gpu)?;
    if !gpu.board().has_gpm() {
        return Err(Code::NOT_SUPPORTED);
    }
    let mut samples = samples();
    let slot = samples.get_mut(&sample.addr()).ok_or(Code::INVALID_ARGUMENT)?;
    *slot = Some(Sample {
        at_ns: state.now_ns(),
        sums: gpu.share_seconds(),
        now: state.mig_shares(place)?,
        instance: place.mig.is_some(),
    });
    Ok(())
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmSampleGet(device: nvmlDevice_t, sample: nvmlGpmSample_t) -> nvmlReturn_t {
    answer(|state| {
        let (place, _) = handle::gpu(state, device)?;
        take(state, place, sample)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMigSampleGet(
    device: nvmlDevice_t,
    gpu_instance: c_uint,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, gpu) = handle::whole(state, device)?;
        let devices = gpu.mig_devices();
        let mig = devices.into_iter().find(|mig| mig.gi == gpu_instance).ok_or(Code::NOT_FOUND)?;
        take(state, Place { gpu: index, mig: Some(mig) }, sample)
    })
}

/// Metrics in percent, by NVML's numbers.
fn metric(id: u32, mean: Shares) -> Result<f64, Code> {
    let share = match id {
        1 => mean.gpu,
        2 => mean.sm,
        3 => mean.occupancy,
        10 => mean.dram,
        // What kind of arithmetic runs is not modelled, nor what moves over buses.
        _ => return Err(Code::NOT_SUPPORTED),
    };
    Ok(share * 100.0)
}

/// Struct versions aside, the array may be longer or shorter than ours: only what is asked for is touched.
#[unsafe(no_mangle)]
extern "C" fn nvmlGpmMetricsGet(target: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    answer(|_| {
        let head = target.cast::<c_uint>();
        let (version, count) = (get(head)?, get(head.wrapping_add(1))?);
        if version != REVISION {
            return Err(Code::VERSION_MISMATCH);
        }
        if count > 512 {
            return Err(Code::INVALID_ARGUMENT);
        }
        let address = target.cast::<u8>();
        let handle_at = |offset: usize| get(address.wrapping_add(offset).cast::<usize>());
        let first = handle_at(offset_of!(nvmlGpmMetricsGet_t, sample1))?;
        let second = handle_at(offset_of!(nvmlGpmMetricsGet_t, sample2))?;
        let samples = samples();
        let sample = |id: usize| samples.get(&id).copied().flatten().ok_or(Code::INVALID_ARGUMENT);
        let (first, second) = (sample(first)?, sample(second)?);
        let seconds = second.at_ns.saturating_sub(first.at_ns) as f64 / 1e9;
        // On a stopped clock there is no span to average over.
        let mean = if second.instance || seconds <= 0.0 {
            second.now
        } else {
            second.sums.mean_since(first.sums, seconds)
        };
        let metrics = address.wrapping_add(offset_of!(nvmlGpmMetricsGet_t, metrics));
        for at in 0..count as usize {
            let entry = metrics.cast::<nvmlGpmMetric_t>().wrapping_add(at);
            let id = get(entry.cast::<c_uint>())?;
            let field = |offset: usize| entry.cast::<u8>().wrapping_add(offset);
            let (code, value) = match metric(id, mean) {
                Ok(value) => (0, value),
                Err(code) => (code.0, 0.0),
            };
            put(field(offset_of!(nvmlGpmMetric_t, nvmlReturn)).cast(), code)?;
            put(field(offset_of!(nvmlGpmMetric_t, value)).cast(), value)?;
        }
        Ok(())
    })
}
