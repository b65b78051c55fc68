//! Waiting for critical errors.

use crate::answer::{Code, answer, answer_alone, emulator};
use crate::handle;
use coloc_emu::abi::put;
use coloc_emu::{Place, wait_for_change};
use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlReturn_t};
use std::collections::BTreeMap;
use std::ffi::{c_uint, c_ulonglong};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const XID: c_ulonglong = 8;
const TAG: usize = 0xC020;

/// The GPUs whose errors a set waits for, and the number of the first event not yet delivered.
#[derive(Default)]
struct Set {
    gpus: Vec<u32>,
    next: u64,
}

static SETS: Mutex<BTreeMap<usize, Set>> = Mutex::new(BTreeMap::new());

fn sets() -> MutexGuard<'static, BTreeMap<usize, Set>> {
    SETS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetCreate(target: *mut nvmlEventSet_t) -> nvmlReturn_t {
    answer(|state| {
        let mut sets = sets();
        let id = sets.keys().next_back().map_or(TAG << 32, |last| last + 1);
        put(target, ptr::without_provenance_mut(id))?;
        sets.insert(id, Set { gpus: Vec::new(), next: state.event_count() });
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    answer_alone(|| sets().remove(&set.addr()).map(|_| ()).ok_or(Code::INVALID_ARGUMENT))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceGetSupportedEventTypes(
    device: nvmlDevice_t,
    types: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer(|state| {
        handle::whole(state, device)?;
        Ok(put(types, XID)?)
    })
}

#[unsafe(no_mangle)]
extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    types: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    answer(|state| {
        let (index, _) = handle::whole(state, device)?;
        if types & !XID != 0 {
            return Err(Code::NOT_SUPPORTED);
        }
        let mut sets = sets();
        let set = sets.get_mut(&set.addr()).ok_or(Code::INVALID_ARGUMENT)?;
        if types & XID != 0 && !set.gpus.contains(&index) {
            set.gpus.push(index);
        }
        Ok(())
    })
}

fn wait(set: nvmlEventSet_t, target: *mut nvmlEventData_t, millis: c_uint) -> nvmlReturn_t {
    answer_alone(|| {
        let emulator = emulator()?;
        let deadline = Instant::now() + Duration::from_millis(millis.into());
        loop {
            let seen = emulator.critical_events().load(Ordering::Acquire);
            if let Some((gpu, xid)) = next_event(set)? {
                let event = nvmlEventData_t {
                    device: handle::device(Place::whole(gpu)),
                    eventType: XID,
                    eventData: xid.into(),
                    gpuInstanceId: c_uint::MAX,
                    computeInstanceId: c_uint::MAX,
                };
                return Ok(put(target, event)?);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Code::TIMEOUT);
            }
            wait_for_change(emulator.critical_events(), seen, left);
        }
    })
}

fn next_event(set: nvmlEventSet_t) -> Result<Option<(u32, u32)>, Code> {
    let emulator = emulator()?;
    let state = emulator.lock()?;
    let mut sets = sets();
    let set = sets.get_mut(&set.addr()).ok_or(Code::INVALID_ARGUMENT)?;
    let found = state.events_since(set.next).find(|(_, gpu, _)| set.gpus.contains(gpu));
    set.next = found.map_or(state.event_count(), |(number, ..)| number + 1);
    Ok(found.map(|(_, gpu, xid)| (gpu, xid)))
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait(
    set: nvmlEventSet_t,
    target: *mut nvmlEventData_t,
    millis: c_uint,
) -> nvmlReturn_t {
    wait(set, target, millis)
}

#[unsafe(no_mangle)]
extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    target: *mut nvmlEventData_t,
    millis: c_uint,
) -> nvmlReturn_t {
    wait(set, target, millis)
}
