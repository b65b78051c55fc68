//! A library that is opened by its path finds the fleet beside it.

use crate::support::library_path;
use coloc_emu::{DIR_VARIABLE, Emulator, Options};
use nvml_wrapper_sys::bindings::NvmlLib;
use std::os::unix::fs::symlink;

#[test]
fn a_library_opened_by_path_finds_the_fleet_beside_it() {
    assert!(std::env::var_os(DIR_VARIABLE).is_none(), "run without a fleet in the environment");
    let folder = tempfile::tempdir().expect("temporary folder");
    let fleet = "3xT4-16GB".parse().expect("a fleet");
    let _emulator = Emulator::create(folder.path(), &fleet, Options::default()).expect("made");
    std::fs::create_dir(folder.path().join("lib")).expect("writable");
    let path = folder.path().join("lib/libnvidia-ml.so.1");
    symlink(library_path("libcoloc_emu_nvml.so"), &path).expect("writable");
    let mut count = 0;
    // SAFETY: our own library, which runs no code when loaded, and a variable of ours.
    unsafe {
        let nvml = NvmlLib::new(&path).expect("loads");
        assert_eq!(nvml.nvmlInit_v2(), 0);
        assert_eq!(nvml.nvmlDeviceGetCount_v2(&mut count), 0);
    }
    assert_eq!(count, 3);
}
