//! The shared state under random use, and under files that are none.

use coloc_emu::fleet::{Fault, MigDevice, State};
use coloc_emu::visible_devices;
use coloc_emu::{AttachError, Emulator, Identity, Options, Place, ProcessSlot, STATE_FILE};
use coloc_model::Bytes;
use coloc_physics::catalogue;
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

fn fleet(spec: &str) -> (TempDir, Emulator) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options = Options { time_scale: 1.0, frozen: true, shared: false };
    let emulator = Emulator::create(folder.path(), &spec.parse().expect("a fleet"), options);
    (folder, emulator.expect("a new fleet"))
}

/// Something that a process or an operator does.
#[derive(Clone, Debug)]
enum Deed {
    Join(u8),
    Leave(u8),
    Open(u8, u8),
    Close(u8, u8),
    Allocate(u8, u8, u16),
    Release(u8, u8, u16),
    Busy(u8, bool),
    Declare(u8, u8),
    Launch(u8),
    Mig(u8, bool),
    Create(u8, u8),
    Destroy(u8, u8),
    Fault(u8, u8),
    Limit(u8, u16),
}

fn deed() -> impl Strategy<Value = Deed> {
    let small = || 0u8..6;
    prop_oneof![
        small().prop_map(Deed::Join),
        small().prop_map(Deed::Leave),
        (small(), small()).prop_map(|(a, b)| Deed::Open(a, b)),
        (small(), small()).prop_map(|(a, b)| Deed::Close(a, b)),
        (small(), small(), any::<u16>()).prop_map(|(a, b, c)| Deed::Allocate(a, b, c)),
        (small(), small(), any::<u16>()).prop_map(|(a, b, c)| Deed::Release(a, b, c)),
        (small(), any::<bool>()).prop_map(|(a, b)| Deed::Busy(a, b)),
        (small(), any::<u8>()).prop_map(|(a, b)| Deed::Declare(a, b)),
        small().prop_map(Deed::Launch),
        (small(), any::<bool>()).prop_map(|(a, b)| Deed::Mig(a, b)),
        (small(), any::<u8>()).prop_map(|(a, b)| Deed::Create(a, b)),
        (small(), small()).prop_map(|(a, b)| Deed::Destroy(a, b)),
        (small(), any::<u8>()).prop_map(|(a, b)| Deed::Fault(a, b)),
        (small(), any::<u16>()).prop_map(|(a, b)| Deed::Limit(a, b)),
    ]
}

fn identity(which: u8) -> Identity {
    let own = Identity::of_self();
    Identity { start_ticks: own.start_ticks + u64::from(which), ..own }
}

/// The whole GPU, or one of its MIG devices.
fn place(state: &State, which: u8) -> Place {
    let gpu = u32::from(which) % state.gpu_count();
    let devices = state.gpu(gpu).map(|gpu| gpu.mig_devices()).unwrap_or_default();
    let mig = devices.get(usize::from(which / 2) % devices.len().max(1)).copied();
    Place { gpu, mig }
}

/// Refusals are fine; what must hold is checked after every deed.
fn act(state: &mut State, slots: &mut [Option<ProcessSlot>; 6], deed: &Deed) {
    let slot = |slots: &[Option<ProcessSlot>; 6], which: u8| slots[usize::from(which) % 6];
    match *deed {
        Deed::Join(who) => {
            slots[usize::from(who)] = state.join(identity(who)).ok().map(|joined| joined.slot);
        }
        Deed::Leave(who) => {
            if let Some(slot) = slots[usize::from(who)].take() {
                state.leave(slot);
            }
        }
        Deed::Open(who, at) => {
            let at = place(state, at);
            let _ = slot(slots, who).map(|slot| state.open_context(slot, at));
        }
        Deed::Close(who, at) => {
            let at = place(state, at);
            let _ = slot(slots, who).map(|slot| state.close_context(slot, at));
        }
        Deed::Allocate(who, at, mib) => {
            let at = place(state, at);
            let _ =
                slot(slots, who).map(|slot| state.allocate(slot, at, Bytes::from_mib(mib.into())));
        }
        Deed::Release(who, at, mib) => {
            let at = place(state, at);
            let _ =
                slot(slots, who).map(|slot| state.release(slot, at, Bytes::from_mib(mib.into())));
        }
        Deed::Busy(who, busy) => {
            let _ = slot(slots, who).map(|slot| state.set_busy(slot, busy));
        }
        Deed::Declare(who, task) => {
            let all: Vec<_> = catalogue::all().collect();
            let profile = all[usize::from(task) % all.len()].profile();
            let _ = slot(slots, who).map(|slot| state.declare(slot, &profile));
        }
        Deed::Launch(who) => {
            let _ = slot(slots, who).map(|slot| state.launched(slot));
        }
        ref other => operate(state, other),
    }
}

fn operate(state: &mut State, deed: &Deed) {
    match *deed {
        Deed::Mig(gpu, on) => {
            let _ = state.set_mig_mode(gpu.into(), on);
        }
        Deed::Create(gpu, kind) => {
            let gpu = u32::from(gpu);
            let profile = [19, 20, 15, 14, 9, 5, 0, 77][usize::from(kind) % 8];
            let start = (kind > 128).then_some(u32::from(kind) % 9);
            if let Ok(gi) = state.create_instance(gpu, profile, start) {
                let _ = state.create_compute(gpu, gi, u32::from(kind) % 5);
            }
        }
        Deed::Destroy(gpu, which) => {
            let (gpu, gi) = (u32::from(gpu), u32::from(which));
            let _ = state.destroy_compute(gpu, MigDevice { gi, ci: 0 });
            let _ = state.destroy_instance(gpu, gi);
        }
        Deed::Fault(gpu, kind) => {
            let gpu = u32::from(gpu);
            let pid = identity(0).pid;
            let fault = match kind % 6 {
                0 => Fault::Lost { gpu },
                1 => Fault::Restored { gpu },
                2 => Fault::Xid { gpu, code: 31 },
                3 => Fault::Hang { pid },
                4 => Fault::Unhang { pid },
                _ => Fault::Ecc { gpu, corrected: 1, uncorrected: u64::MAX },
            };
            let _ = state.inject(fault);
        }
        Deed::Limit(gpu, watts) => {
            let _ = state.set_power_limit(gpu.into(), watts.into());
        }
        _ => unreachable!("a process's deed"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn books_balance_whatever_happens(deeds in prop::collection::vec(deed(), 0..60)) {
        let (_folder, emulator) = fleet("2xA100-40GB,1xV100-16GB");
        let mut state = emulator.lock().expect("free");
        let mut slots = [None; 6];
        for deed in &deeds {
            act(&mut state, &mut slots, deed);
            state.sanity_check().map_err(TestCaseError::fail)?;
            for gpu in state.gpus() {
                let reading = gpu.reading();
                prop_assert!(f64::from(reading.milliwatts) <= gpu.limit_watts() * 1000.0 + 1.0);
                prop_assert!((0.0..=1.0).contains(&reading.shares.sm));
                prop_assert!(reading.shares.sm <= reading.shares.gpu + 1e-9);
            }
            for slot in state.slots() {
                let rate = state.view(slot).expect("listed").rate;
                prop_assert!((0.0..=1.0 + 1e-9).contains(&rate), "rate {}", rate);
            }
        }
        slots.into_iter().flatten().for_each(|slot| state.leave(slot));
        for gpu in 0..state.gpu_count() {
            if let Ok(memory) = state.memory(Place::whole(gpu)) {
                prop_assert_eq!(memory.used, Bytes::ZERO);
            }
        }
    }

    #[test]
    fn visible_devices_survive_any_text(text in "(GPU-|MIG-|[0-9]|,| |-|[a-f]|é){0,20}") {
        let (_folder, emulator) = fleet("3xA100-40GB");
        let seen = visible_devices(&emulator.lock().expect("free"), Some(&text));
        prop_assert!(seen.len() <= 3);
    }
}

#[test]
fn visible_devices_follow_the_variable() {
    let (_folder, emulator) = fleet("3xA100-40GB");
    let mut state = emulator.lock().expect("free");
    let seen = |state: &State, list: Option<&str>| {
        visible_devices(state, list).iter().map(|device| device.place.gpu).collect::<Vec<_>>()
    };
    assert_eq!(seen(&state, None), [0, 1, 2]);
    assert_eq!(seen(&state, Some("")), [0u32; 0]);
    assert_eq!(seen(&state, Some("2,0")), [2, 0]);
    assert_eq!(seen(&state, Some("1,9,0")), [1], "the list ends where it names nothing");
    assert_eq!(seen(&state, Some("1,1")), [0u32; 0], "nothing may be named twice");
    let uuid = state.gpu(1).expect("there").uuid();
    assert_eq!(seen(&state, Some(&uuid)), [1]);
    assert_eq!(seen(&state, Some(&uuid[..12])), [1], "a unique beginning will do");
    assert_eq!(seen(&state, Some("GPU-")), [0u32; 0], "an ambiguous one will not");
    state.inject(Fault::Lost { gpu: 0 }).expect("there");
    assert_eq!(seen(&state, None), [1, 2]);
}

#[test]
fn a_file_that_is_no_fleet_is_refused() {
    let (folder, emulator) = fleet("1xT4-16GB");
    let file = folder.path().join(STATE_FILE);
    let whole = std::fs::read(&file).expect("readable");
    let mut scribbled = whole.clone();
    scribbled[..8].fill(0xff);
    for content in [&[][..], b"hello", &whole[..whole.len() - 1], &scribbled] {
        let other = tempfile::tempdir().expect("temporary folder");
        std::fs::write(other.path().join(STATE_FILE), content).expect("writable");
        let refused = Emulator::open(other.path());
        assert!(matches!(refused, Err(AttachError::Version { .. })), "{} bytes", content.len());
    }
    let nowhere = Emulator::open(&folder.path().join("nowhere"));
    assert!(matches!(nowhere, Err(AttachError::File { .. })));
    drop(emulator);
}

#[test]
fn a_fleet_is_its_makers_alone_unless_it_is_shared() {
    for (shared, mode) in [(false, 0o600), (true, 0o666)] {
        let folder = tempfile::tempdir().expect("temporary folder");
        let options = Options { shared, ..Options::default() };
        let fleet = "1xT4-16GB".parse().expect("a fleet");
        let _emulator = Emulator::create(folder.path(), &fleet, options).expect("a new fleet");
        let found = std::fs::metadata(folder.path().join(STATE_FILE)).expect("a file");
        assert_eq!(found.permissions().mode() & 0o777, mode);
    }
}

#[test]
fn a_file_that_is_cut_off_or_overwritten_gives_errors_and_ends_nobody() {
    let whole = {
        let (folder, _emulator) = fleet("1xT4-16GB");
        std::fs::metadata(folder.path().join(STATE_FILE)).expect("a file").len()
    };
    for length in [0, 100, 4096, 8192, whole / 2, whole - 1] {
        let (folder, emulator) = fleet("1xT4-16GB");
        let file = folder.path().join(STATE_FILE);
        let file = std::fs::OpenOptions::new().write(true).open(file).expect("ours");
        // While a process has the lock, which is the worst moment.
        let mut state = emulator.lock().expect("free");
        file.set_len(length).expect("ours");
        let _ = state.join(Identity::of_self());
        let _ = (state.gpu(0).map(|gpu| gpu.reading()), state.sanity_check());
        state.inject(Fault::Xid { gpu: 0, code: 31 }).ok();
        drop(state);
        for _ in 0..2 {
            let refused = emulator.lock().err();
            assert!(matches!(refused, Some(AttachError::Cut { .. })), "{length}: {refused:?}");
        }
        assert!(Emulator::open(folder.path()).is_err());
    }
    let (folder, emulator) = fleet("1xT4-16GB");
    let file = folder.path().join(STATE_FILE);
    let file = std::fs::OpenOptions::new().write(true).open(file).expect("ours");
    std::os::unix::fs::FileExt::write_all_at(&file, &[0xff; 16], 0).expect("ours");
    assert!(matches!(emulator.lock().err(), Some(AttachError::Cut { .. })));
}

/// Bytes of the file before the state: the header and the lock.
const HEADER: usize = 40;

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn garbage_in_the_tables_ends_nobody(seed in any::<u64>(), density in 1u64..4096) {
        let (folder, emulator) = fleet("2xA100-40GB");
        let path = folder.path().join(STATE_FILE);
        let mut bytes = std::fs::read(&path).expect("ours");
        let mut random = seed | 1;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for byte in &mut bytes[HEADER..] {
            let drawn = next();
            if drawn % density == 0 {
                *byte = (drawn >> 32) as u8;
            }
        }
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("ours");
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes[HEADER..], HEADER as u64).expect("ours");
        let survived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let Ok(mut state) = emulator.lock() else { return };
            for gpu in 0..4 {
                let _ = state.inject(Fault::Xid { gpu, code: 94 });
                let _ = (state.gpu(gpu).map(|gpu| gpu.reading()), state.memory(Place::whole(gpu)));
                let _ = state.residents(Place::whole(gpu));
            }
            if let Ok(joined) = state.join(Identity::of_self()) {
                let _ = state.open_context(joined.slot, Place::whole(0));
                let _ = state.allocate(joined.slot, Place::whole(0), Bytes::from_mib(64));
                state.leave(joined.slot);
            }
        }));
        // A panic is caught by every entry of the libraries; what must not come is a signal or a hang.
        let _ = survived;
        let _ = emulator.lock().map(drop);
    }
}

#[test]
fn work_is_accounted_for_exactly() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let options = Options { time_scale: 1000.0, frozen: false, shared: false };
    let emulator =
        Emulator::create(folder.path(), &"1xA100-40GB".parse().expect("a fleet"), options)
            .expect("a new fleet");
    let own = Identity::of_self();
    let profile = catalogue::find("vgg").expect("catalogued").profile();
    let slot = {
        let mut state = emulator.lock().expect("free");
        let slot = state.join(own).expect("room").slot;
        state.open_context(slot, Place::whole(0)).expect("memory");
        state.declare(slot, &profile).expect("joined");
        state.set_busy(slot, true).expect("joined");
        slot
    };
    let start = emulator.lock().expect("free").now_ns();
    let first = emulator.lock().expect("free").view(slot).expect("joined").work_s;
    // However often a process looks, the sum is the same.
    for _ in 0..500 {
        drop(emulator.lock().expect("free"));
    }
    let state = emulator.lock().expect("free");
    let passed = (state.now_ns() - start) as f64 / 1e9;
    let done = state.view(slot).expect("joined").work_s - first;
    assert!((done - passed).abs() < passed * 0.01 + 1.0, "{done} s of work in {passed} s alone");
}

#[test]
fn a_gang_that_waits_for_its_slowest_member_keeps_the_others_less_busy() {
    let (_folder, emulator) = fleet("2xA100-40GB");
    let mut state = emulator.lock().expect("free");
    let mut train = |who: u8, name: &str, gpus: &[u32]| {
        let slot = state.join(identity(who)).expect("room").slot;
        for &gpu in gpus {
            state.open_context(slot, Place::whole(gpu)).expect("memory");
        }
        let profile = catalogue::find(name).expect("catalogued").profile();
        state.declare(slot, &profile).expect("joined");
        state.set_busy(slot, true).expect("joined");
        let sm = |gpu| state.gpu(gpu).expect("there").reading().shares.sm;
        ([sm(0), sm(1)], state.view(slot).expect("joined").rate)
    };
    let (alone, rate) = train(0, "gpt2_large_2", &[0, 1]);
    assert_eq!((alone[0], rate), (alone[1], 1.0));
    let (beside, _) = train(1, "vgg", &[1]);
    assert!(beside[0] < alone[0] * 0.9, "it waits for the other: {alone:?}, then {beside:?}");
    assert!(beside[1] > beside[0], "somebody else works there: {beside:?}");
}
