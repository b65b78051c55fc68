//! An emulated fleet to play on. The driver's library finds its fleet by environment, and a process must not change
//! its own once it has threads: so a test runs itself again as a child.

use coloc_emu::fleet::Fault;
use coloc_emu::{Emulator, Identity, Options, Place, ProcessSlot};
use coloc_emu_tools::run::FleetHome;
use coloc_gpu::driver::nvml::NvmlDriver;
use coloc_gpu::process::{Attribution, ProcessTable, Users};
use coloc_model::Bytes;
use coloc_physics::Profile;
use std::ffi::OsStr;
use std::process::Command;

const INSIDE: &str = "COLOC_TEST_INSIDE";

/// Runs `body` in a process whose driver is emulated. `name` is the test's full name.
pub(crate) fn on_fleet(name: &str, spec: &str, body: impl FnOnce(Stage)) {
    if std::env::var_os(INSIDE).is_some_and(|inside| inside == name) {
        body(Stage { emulator: Emulator::from_environment().expect("a fleet") });
        return;
    }
    let fleet = spec.parse().expect("a fleet spec");
    let options = Options { time_scale: 1.0, frozen: false, shared: false };
    let home = FleetHome::create(None, &fleet, options).expect("an emulated fleet");
    let output = Command::new(std::env::current_exe().expect("this program"))
        .args([name, "--exact", "--nocapture"])
        .envs(home.environment())
        .env(INSIDE, name)
        .output()
        .expect("the child runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    print!("{said}");
    assert!(said.contains("1 passed"), "no test is called {name}: {said}");
}

/// The fleet from inside.
pub(crate) struct Stage {
    emulator: Emulator,
}

impl Stage {
    /// A connection to the driver.
    pub(crate) fn driver(&self) -> NvmlDriver {
        NvmlDriver::from_library(OsStr::new("libnvidia-ml.so.1")).expect("the emulated driver")
    }

    /// Something goes wrong.
    pub(crate) fn inject(&self, fault: Fault) {
        self.emulator.lock().expect("the fleet").inject(fault).expect("a fault");
    }

    /// This process enters a GPU, holds memory and behaves like `profile`.
    pub(crate) fn occupy(&self, place: Place, held: Bytes, profile: &Profile) -> ProcessSlot {
        let mut fleet = self.emulator.lock().expect("the fleet");
        let slot = fleet.join(Identity::of_self()).expect("a row").slot;
        fleet.open_context(slot, place).expect("a context");
        fleet.allocate(slot, place, held).expect("memory");
        fleet.declare(slot, profile).expect("a profile");
        fleet.set_busy(slot, true).expect("work");
        slot
    }

    /// The process is gone from all GPUs.
    pub(crate) fn leave(&self, slot: ProcessSlot) {
        self.emulator.lock().expect("the fleet").leave(slot);
    }

    /// No tasks, and the real process table.
    pub(crate) fn attribution(&self) -> Attribution {
        Attribution::new(ProcessTable::default(), Users::of_system())
    }
}
