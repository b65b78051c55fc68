//! Faults on request, as NVML and CUDA report them.

use crate::support::{Cuda, device, nvml, on_fleet};
use coloc_emu::Options;
use coloc_emu::fleet::Fault;
use std::time::{Duration, Instant};

const TIMEOUT: u32 = 10;
const LOST: u32 = 15;

#[test]
fn a_lost_gpu_says_so_everywhere() {
    on_fleet(
        "faults::a_lost_gpu_says_so_everywhere",
        "2xA100-40GB",
        Options::default(),
        |emulator| {
            let nvml = nvml();
            let (first, second) = (device(&nvml, 0), device(&nvml, 1));
            let cuda = Cuda::with_context();
            cuda.allocate(1 << 30).expect("an empty device");
            emulator.lock().expect("free").inject(Fault::Lost { gpu: 0 }).expect("a GPU");
            let (mut milliwatts, mut handle) = (0, std::ptr::null_mut());
            // SAFETY: the targets are variables of ours.
            unsafe {
                assert_eq!(nvml.nvmlDeviceGetPowerUsage(first, &mut milliwatts), LOST);
                assert_eq!(nvml.nvmlDeviceGetHandleByIndex_v2(0, &mut handle), LOST);
                assert_eq!(nvml.nvmlDeviceGetPowerUsage(second, &mut milliwatts), 0);
            }
            assert_ne!(cuda.call("cuCtxSynchronize", []), 0);
            assert!(cuda.allocate(1 << 20).is_err());
            emulator.lock().expect("free").inject(Fault::Restored { gpu: 0 }).expect("a GPU");
            // SAFETY: the target is a variable of ours.
            assert_eq!(unsafe { nvml.nvmlDeviceGetPowerUsage(first, &mut milliwatts) }, 0);
        },
    );
}

#[test]
fn critical_errors_reach_those_who_wait() {
    const TEST: &str = "faults::critical_errors_reach_those_who_wait";
    on_fleet(TEST, "2xA100-40GB", Options::default(), |emulator| {
        let nvml = nvml();
        let handle = device(&nvml, 1);
        let mut set = std::ptr::null_mut();
        // SAFETY: all zero is an event, and the targets are variables of ours.
        unsafe {
            let mut event = std::mem::zeroed();
            assert_eq!(nvml.nvmlEventSetCreate(&mut set), 0);
            assert_eq!(nvml.nvmlDeviceRegisterEvents(handle, 8, set), 0);
            assert_eq!(nvml.nvmlEventSetWait_v2(set, &mut event, 10), TIMEOUT);
            let mut state = emulator.lock().expect("free");
            state.inject(Fault::Xid { gpu: 0, code: 31 }).expect("a GPU");
            state.inject(Fault::Xid { gpu: 1, code: 48 }).expect("a GPU");
            drop(state);
            assert_eq!(nvml.nvmlEventSetWait_v2(set, &mut event, 1000), 0);
            assert_eq!((event.device, event.eventType, event.eventData), (handle, 8, 48));
            assert_eq!(nvml.nvmlEventSetWait_v2(set, &mut event, 10), TIMEOUT);
            assert_eq!(nvml.nvmlEventSetFree(set), 0);
        }
    });
}

#[test]
fn memory_errors_are_counted_and_nvml_can_be_slow() {
    const TEST: &str = "faults::memory_errors_are_counted_and_nvml_can_be_slow";
    on_fleet(TEST, "1xA100-40GB", Options::default(), |emulator| {
        let nvml = nvml();
        let handle = device(&nvml, 0);
        let inject = |fault| emulator.lock().expect("free").inject(fault).expect("possible");
        inject(Fault::Ecc { gpu: 0, corrected: 3, uncorrected: 2 });
        let mut count = 0;
        // SAFETY: the target is a variable of ours.
        let read = |kind, count: &mut u64| unsafe {
            nvml.nvmlDeviceGetTotalEccErrors(handle, kind, 0, count)
        };
        assert_eq!((read(0, &mut count), count), (0, 3));
        assert_eq!((read(1, &mut count), count), (0, 2));
        inject(Fault::NvmlTimeouts { calls: 1 });
        assert_eq!(read(0, &mut count), TIMEOUT);
        assert_eq!(read(0, &mut count), 0);
        inject(Fault::NvmlDelay { millis: 50 });
        let start = Instant::now();
        assert_eq!(read(0, &mut count), 0);
        assert!(start.elapsed() >= Duration::from_millis(50));
    });
}

#[test]
fn critical_errors_end_whom_they_end_on_a_real_gpu() {
    const TEST: &str = "faults::critical_errors_end_whom_they_end_on_a_real_gpu";
    on_fleet(TEST, "1xA100-40GB", Options::default(), |emulator| {
        let cuda = Cuda::with_context();
        let inject = |fault| emulator.lock().expect("free").inject(fault).expect("possible");
        let uncorrected = || emulator.lock().expect("free").gpu(0).expect("a GPU").ecc_errors().1;
        for code in [13, 31, 63, 64] {
            inject(Fault::Xid { gpu: 0, code });
            assert_eq!(cuda.call("cuCtxSynchronize", []), 0, "XID {code} ends nobody");
        }
        inject(Fault::Remap { gpu: 0, failed: false });
        assert_eq!((cuda.call("cuCtxSynchronize", []), uncorrected()), (0, 0));
        inject(Fault::Xid { gpu: 0, code: 94 });
        assert_ne!(cuda.call("cuCtxSynchronize", []), 0);
        assert_eq!(uncorrected(), 1);
        emulator.lock().expect("free").sanity_check().expect("the books are right");
    });
}
