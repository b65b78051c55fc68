//! Sixteen processes on one GPU, a third of them killed.

use crate::support::{Cuda, Dice, on_fleet, role, spawn_role};
use coloc_emu::{Emulator, Options, Place};
use std::process::Child;
use std::time::{Duration, Instant};

const TEST: &str = "contention::memory_is_never_promised_twice";
const PROCESSES: usize = 16;
const KILLED: usize = 5;
const DURATION: Duration = Duration::from_secs(10);

#[test]
fn memory_is_never_promised_twice() {
    if let Some(seed) = role() {
        return allocate_at_random(seed.parse().expect("a number"));
    }
    on_fleet(TEST, "1xA100-40GB", Options::default(), |emulator| {
        let start = Instant::now();
        let mut children: Vec<Child> =
            (0..PROCESSES).map(|seed| spawn_role(TEST, &seed.to_string())).collect();
        let (mut looks, mut most) = (0u64, 0);
        let mut killed = 0;
        while start.elapsed() < DURATION {
            most = most.max(look(emulator));
            looks += 1;
            // Kills are spread over the whole time.
            let due = DURATION / (KILLED as u32 + 1) * (killed as u32 + 1);
            if killed < KILLED && start.elapsed() >= due {
                children[killed * 3].kill().expect("ours to kill");
                killed += 1;
            }
        }
        let mut survived = 0;
        for child in &mut children {
            survived += usize::from(child.wait().expect("ours").success());
        }
        assert_eq!(survived, PROCESSES - KILLED, "the others end well");
        // The dead are looked for every few milliseconds.
        let timeout = Instant::now() + Duration::from_secs(5);
        while look(emulator) > 0 && Instant::now() < timeout {
            std::thread::sleep(Duration::from_millis(5));
        }
        let state = emulator.lock().expect("no lock is left behind");
        assert_eq!(state.memory(Place::whole(0)).expect("alive").used.0, 0);
        assert_eq!(state.slots().count(), 0);
        let repairs = state.repairs();
        println!("{looks} looks, at most {most} bytes promised, {repairs} repairs after a death");
        assert!(most > 20 << 30, "the device was never under pressure");
    });
}

/// Checks the accounts and returns what is promised.
fn look(emulator: &Emulator) -> u64 {
    let state = emulator.lock().expect("the lock is never lost");
    state.sanity_check().expect("sane");
    let memory = state.memory(Place::whole(0)).expect("alive");
    assert!(memory.used <= memory.total);
    memory.used.0
}

fn allocate_at_random(seed: u64) {
    let cuda = Cuda::with_context();
    let mut dice = Dice(seed + 1);
    let mut held = Vec::new();
    let start = Instant::now();
    let mut refused = 0u64;
    while start.elapsed() < DURATION {
        if !held.is_empty() && dice.roll(2) == 0 {
            let at = dice.roll(held.len() as u64) as usize;
            assert_eq!(cuda.free(held.swap_remove(at)), 0);
        } else {
            match cuda.allocate((dice.roll(4096) as usize + 1) << 20) {
                Ok(address) => held.push(address),
                Err(code) => {
                    assert_eq!(code, 2, "out of memory is the only refusal");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0, "there was no contention");
}
