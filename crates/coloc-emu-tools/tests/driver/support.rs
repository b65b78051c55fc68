//! Fleets for tests. Libraries find their fleet by the environment, so a test runs itself again as a child.

use coloc_emu::{DIR_VARIABLE, Emulator, Options};
use libloading::{Library, Symbol};
use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set for children that play a part of their own.
const ROLE: &str = "COLOC_TEST_ROLE";

/// Runs the body of a test in a child process whose environment names a new fleet.
pub(crate) fn on_fleet(test: &str, spec: &str, options: Options, body: impl FnOnce(&Emulator)) {
    if std::env::var_os(DIR_VARIABLE).is_some() {
        return body(&Emulator::from_environment().expect("made by the parent"));
    }
    let folder = tempfile::tempdir().expect("temporary folder");
    let fleet = spec.parse().expect("a fleet");
    let emulator = Emulator::create(folder.path(), &fleet, options).expect("a new fleet");
    let status = myself(test).env(DIR_VARIABLE, folder.path()).status().expect("the test itself");
    assert!(status.success(), "{test} in its own process: {status}");
    emulator.lock().expect("no lock is left behind").sanity_check().expect("sane to the end");
}

/// This test binary, told to run one test.
fn myself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the test binary"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// Starts a process that joins the fleet of this one and plays a part of the test.
pub(crate) fn spawn_role(test: &str, role: &str) -> Child {
    myself(test).env(ROLE, role).stdout(Stdio::null()).spawn().expect("the test itself")
}

/// The part that this process plays, if it has one.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Where cargo put a library of the workspace.
pub(crate) fn library_path(file: &str) -> PathBuf {
    let binary = std::env::current_exe().expect("the test binary");
    let folder = binary.parent().unwrap_or(Path::new("."));
    let found = [folder, &folder.join("..")].map(|folder| folder.join(file));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| panic!("no {file} was built"))
}

/// The emulated NVML, initialised.
pub(crate) fn nvml() -> NvmlLib {
    // SAFETY: our own library, which runs no code when loaded.
    let library = unsafe { NvmlLib::new(library_path("libcoloc_emu_nvml.so")) }.expect("loads");
    // SAFETY: takes nothing.
    assert_eq!(unsafe { library.nvmlInit_v2() }, 0);
    library
}

/// A device's handle.
pub(crate) fn device(nvml: &NvmlLib, index: u32) -> nvmlDevice_t {
    let mut handle = std::ptr::null_mut();
    // SAFETY: the target is a variable of ours.
    assert_eq!(unsafe { nvml.nvmlDeviceGetHandleByIndex_v2(index, &mut handle) }, 0);
    handle
}

/// The emulated CUDA driver.
pub(crate) struct Cuda(Library);

impl Cuda {
    pub(crate) fn load() -> Self {
        // SAFETY: our own library, which runs no code when loaded.
        Cuda(unsafe { Library::new(library_path("libcoloc_emu_cuda.so")) }.expect("loads"))
    }

    /// Calls a function that takes whole numbers and addresses only.
    pub(crate) fn call<const N: usize>(&self, name: &str, arguments: [usize; N]) -> i32 {
        let mut padded = [0; 12];
        padded[..N].copy_from_slice(&arguments);
        // SAFETY: on this ABI surplus integer arguments are ignored, and the functions check their pointers.
        unsafe {
            let function: Symbol<'_, AnyFunction> = self.0.get(name.as_bytes()).expect(name);
            invoke(*function, padded)
        }
    }

    /// Starts up and makes a context on the first device.
    pub(crate) fn with_context() -> Self {
        let cuda = Cuda::load();
        assert_eq!(cuda.call("cuInit", [0]), 0);
        let mut context = 0usize;
        // On a crowded device a context has to wait for room.
        let timeout = Instant::now() + Duration::from_secs(5);
        loop {
            match cuda.call("cuCtxCreate_v2", [&raw mut context as usize, 0, 0]) {
                0 => return cuda,
                code => assert!(code == 2 && Instant::now() < timeout, "no context: {code}"),
            }
        }
    }

    /// Allocates; the error code if it fails.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, i32> {
        let mut address = 0u64;
        match self.call("cuMemAlloc_v2", [&raw mut address as usize, bytes]) {
            0 => Ok(address),
            code => Err(code),
        }
    }

    pub(crate) fn free(&self, address: u64) -> i32 {
        self.call("cuMemFree_v2", [address as usize])
    }
}

/// Any exported function, as far as its arguments are numbers or addresses.
pub(crate) type AnyFunction = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> i32;

/// Calls a function with twelve arguments.
///
/// # Safety
/// The function must take numbers and addresses only, and check the addresses.
pub(crate) unsafe fn invoke(function: AnyFunction, a: [usize; 12]) -> i32 {
    // SAFETY: as the caller vouches.
    unsafe { function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11]) }
}

/// A small generator, the same on every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, below: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}
