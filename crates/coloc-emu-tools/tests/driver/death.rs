//! What the dead leave behind.

use crate::support::{Cuda, on_fleet, role, spawn_role};
use coloc_emu::{Emulator, Options, Place};
use std::time::{Duration, Instant};

fn used(emulator: &Emulator) -> u64 {
    emulator.lock().expect("no lock is left").memory(Place::whole(0)).expect("alive").used.0
}

/// Waits for a condition, not for a time.
fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what} never came");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_process_gives_its_memory_back() {
    const TEST: &str = "death::a_killed_process_gives_its_memory_back";
    if role().is_some() {
        let cuda = Cuda::with_context();
        cuda.allocate(8 << 30).expect("an empty device");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    on_fleet(TEST, "1xV100-16GB", Options::default(), |emulator| {
        let mut child = spawn_role(TEST, "holder");
        wait_until("the allocation", || used(emulator) > 8 << 30);
        child.kill().expect("ours");
        // Not waited for yet: a zombie holds nothing.
        wait_until("the memory", || used(emulator) == 0);
        child.wait().expect("ours");
    });
}

#[test]
fn a_lock_whose_owner_died_is_repaired() {
    const TEST: &str = "death::a_lock_whose_owner_died_is_repaired";
    if role().is_some() {
        let emulator = Emulator::from_environment().expect("the parent's fleet");
        let session = emulator.lock().expect("free");
        println!("{}", session.now_ns());
        std::process::abort();
    }
    on_fleet(TEST, "1xV100-16GB", Options::default(), |emulator| {
        let status = spawn_role(TEST, "owner").wait().expect("ours");
        assert!(!status.success(), "it was meant to die");
        let state = emulator.lock().expect("taken over from the dead");
        assert_eq!(state.repairs(), 1);
        state.sanity_check().expect("repaired");
    });
}
