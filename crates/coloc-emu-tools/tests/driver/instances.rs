//! MIG through the calls that real drivers take: what is legal can be made, what is not is refused.

use crate::support::{device, nvml, on_fleet};
use coloc_emu::Options;
use nvml_wrapper_sys::bindings::{
    NvmlLib, nvmlDevice_t, nvmlGpuInstance_t, nvmlGpuInstancePlacement_t,
};
use std::collections::BTreeSet;

const INVALID: u32 = 2;
const IN_USE: u32 = 19;
const INSUFFICIENT: u32 = 23;

/// NVIDIA's table for the A100 with 40 GB, typed here once more so that the code is not its own witness:
/// id, compute slices, memory slices, legal starts, and whether there is one on a board at most.
const TABLE: [(u32, u32, u32, &[u32], bool); 7] = [
    (19, 1, 1, &[0, 1, 2, 3, 4, 5, 6], false),
    (20, 1, 1, &[0, 1, 2, 3, 4, 5, 6], true),
    (15, 1, 2, &[0, 2, 4, 6], false),
    (14, 2, 2, &[0, 2, 4], false),
    (9, 3, 4, &[0, 4], false),
    (5, 4, 4, &[0], false),
    (0, 7, 8, &[0], false),
];

/// Profile (row of the table) and start.
type Put = (usize, u32);

fn fits(layout: &BTreeSet<Put>, (row, start): Put) -> bool {
    let (_, compute, span, _, single) = TABLE[row];
    let apart = layout.iter().all(|&(other, at)| {
        let (_, _, other_span, _, other_single) = TABLE[other];
        (start + span <= at || at + other_span <= start) && !(single && other_single)
    });
    let slices: u32 = layout.iter().map(|&(other, _)| TABLE[other].1).sum();
    apart && slices + compute <= 7
}

fn all_puts() -> Vec<Put> {
    let starts = |(row, entry): (usize, &(u32, u32, u32, &'static [u32], bool))| {
        entry.3.iter().map(move |&start| (row, start)).collect::<Vec<_>>()
    };
    TABLE.iter().enumerate().flat_map(starts).collect()
}

/// Every layout that can stand on a board, the empty one included.
fn all_layouts() -> BTreeSet<BTreeSet<Put>> {
    let mut found = BTreeSet::from([BTreeSet::new()]);
    let mut fresh: Vec<BTreeSet<Put>> = vec![BTreeSet::new()];
    while let Some(layout) = fresh.pop() {
        for put in all_puts() {
            if fits(&layout, put) {
                let mut larger = layout.clone();
                larger.insert(put);
                if found.insert(larger.clone()) {
                    fresh.push(larger);
                }
            }
        }
    }
    found
}

fn create(
    nvml: &NvmlLib,
    device: nvmlDevice_t,
    (row, start): Put,
) -> Result<nvmlGpuInstance_t, u32> {
    let (id, _, span, ..) = TABLE[row];
    let placement = nvmlGpuInstancePlacement_t { start, size: span };
    let mut instance = std::ptr::null_mut();
    // SAFETY: the arguments are variables of ours.
    let code = unsafe {
        nvml.nvmlDeviceCreateGpuInstanceWithPlacement(device, id, &placement, &mut instance)
    };
    if code == 0 { Ok(instance) } else { Err(code) }
}

fn enable(nvml: &NvmlLib, device: nvmlDevice_t) {
    let mut status = 99;
    // SAFETY: the target is a variable of ours.
    assert_eq!(unsafe { nvml.nvmlDeviceSetMigMode(device, 1, &mut status) }, 0);
    assert_eq!(status, 0);
}

#[test]
fn every_legal_layout_can_be_made_and_no_other() {
    const TEST: &str = "instances::every_legal_layout_can_be_made_and_no_other";
    on_fleet(TEST, "1xA100-40GB", Options::default(), |_| {
        let nvml = nvml();
        let device = device(&nvml, 0);
        enable(&nvml, device);
        let layouts = all_layouts();
        let mut refusals = 0u64;
        for layout in &layouts {
            let made: Vec<nvmlGpuInstance_t> = layout
                .iter()
                .map(|&put| {
                    create(&nvml, device, put).unwrap_or_else(|code| {
                        panic!("{layout:?} is legal, but {put:?} was refused with {code}")
                    })
                })
                .collect();
            for put in all_puts() {
                if !fits(layout, put) {
                    assert_eq!(
                        create(&nvml, device, put),
                        Err(INSUFFICIENT),
                        "{put:?} on {layout:?}"
                    );
                    refusals += 1;
                }
            }
            for instance in made {
                // SAFETY: a handle that the library gave us.
                assert_eq!(unsafe { nvml.nvmlGpuInstanceDestroy(instance) }, 0);
            }
        }
        for illegal in [(3, 6), (4, 2), (5, 4), (0, 7), (2, 1)] {
            assert_eq!(create(&nvml, device, illegal), Err(INVALID), "{illegal:?}");
        }
        println!("{} legal layouts made, {refusals} illegal additions refused", layouts.len());
    });
}

#[test]
fn instances_go_in_the_documented_order() {
    const TEST: &str = "instances::instances_go_in_the_documented_order";
    on_fleet(TEST, "1xA100-40GB", Options::default(), |_| {
        let nvml = nvml();
        let device = device(&nvml, 0);
        enable(&nvml, device);
        let without_place = |ids: &[u32]| -> Vec<Result<nvmlGpuInstance_t, u32>> {
            let one = |&id: &u32| {
                let mut instance = std::ptr::null_mut();
                // SAFETY: the target is a variable of ours.
                match unsafe { nvml.nvmlDeviceCreateGpuInstance(device, id, &mut instance) } {
                    0 => Ok(instance),
                    code => Err(code),
                }
            };
            ids.iter().map(one).collect()
        };
        // NVIDIA's guide: this order fails, the other succeeds.
        let made = without_place(&[19, 19, 14, 9]);
        assert_eq!(made[3], Err(INSUFFICIENT));
        // SAFETY: handles that the library gave us.
        made.into_iter().flatten().for_each(|gi| unsafe {
            assert_eq!(nvml.nvmlGpuInstanceDestroy(gi), 0);
        });
        let made: Vec<_> =
            without_place(&[9, 19, 14, 19]).into_iter().map(Result::unwrap).collect();
        let (mut compute, mut handle) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut uuid = [0; 96];
        // SAFETY: handles that the library gave us, and variables of ours.
        unsafe {
            assert_eq!(nvml.nvmlGpuInstanceCreateComputeInstance(made[0], 2, &mut compute), 0);
            assert_eq!(nvml.nvmlGpuInstanceDestroy(made[0]), IN_USE, "a compute instance is in it");
            assert_eq!(nvml.nvmlDeviceGetMigDeviceHandleByIndex(device, 0, &mut handle), 0);
            assert_eq!(nvml.nvmlDeviceGetUUID(handle, uuid.as_mut_ptr(), 96), 0);
            let text = std::ffi::CStr::from_ptr(uuid.as_ptr()).to_string_lossy();
            assert!(text.starts_with("MIG-"), "{text}");
            assert_eq!(nvml.nvmlComputeInstanceDestroy(compute), 0);
            made.into_iter().for_each(|gi| assert_eq!(nvml.nvmlGpuInstanceDestroy(gi), 0));
        }
    });
}
