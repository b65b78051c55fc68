//! Speeds and activity follow the model, whichever process asks.

use crate::support::on_fleet;
use coloc_emu::fleet::{MigDevice, State};
use coloc_emu::{Identity, Options, Place, ProcessSlot};
use coloc_model::{Share, SignatureId};
use coloc_physics::{Part, Resident, SharedGpu, catalogue};

/// Enters this process once more, by another start time. Under one lock it is not looked up whether it lives.
fn join(state: &mut State, which: u32, place: Place, name: &str) -> ProcessSlot {
    let own = Identity::of_self();
    let identity = Identity { start_ticks: own.start_ticks + u64::from(which), ..own };
    let slot = state.join(identity).expect("room").slot;
    state.open_context(slot, place).expect("memory");
    state.declare(slot, &catalogue::find(name).expect("catalogued").profile()).expect("joined");
    state.set_busy(slot, true).expect("joined");
    slot
}

#[test]
fn sharers_run_at_the_models_speed() {
    let frozen = Options { time_scale: 1.0, frozen: true, shared: false };
    on_fleet("physics::sharers_run_at_the_models_speed", "1xA100-40GB", frozen, |emulator| {
        let mut state = emulator.lock().expect("free");
        let place = Place::whole(0);
        let names = ["resnet", "vgg"];
        let slots = [0, 1].map(|i| join(&mut state, i, place, names[i as usize]));
        let profiles = names.map(|name| catalogue::find(name).expect("catalogued").profile());
        let guests = [0, 1].map(|i: usize| Resident {
            profile: &profiles[i],
            signature: SignatureId(0),
            part: Part::Whole,
        });
        let mut expected = Vec::new();
        SharedGpu::default().rates(Share::Streams, &guests, &mut expected);
        for (slot, rate) in slots.into_iter().zip(expected) {
            let seen = state.view(slot).expect("joined").rate;
            assert!((seen - rate).abs() < 1e-12, "{seen} against {rate}");
            assert!(rate < 1.0);
        }
        state.leave(slots[1]);
        assert_eq!(state.view(slots[0]).expect("joined").rate, 1.0, "alone again");
        state.leave(slots[0]);
    });
}

#[test]
fn a_slice_is_slower_and_undisturbed() {
    let frozen = Options { time_scale: 1.0, frozen: true, shared: false };
    on_fleet("physics::a_slice_is_slower_and_undisturbed", "1xA100-40GB", frozen, |emulator| {
        let mut state = emulator.lock().expect("free");
        state.set_mig_mode(0, true).expect("idle");
        let mut place = || {
            let gi = state.create_instance(0, 9, None).expect("room");
            let ci = state.create_compute(0, gi, 3).expect("room");
            Place { gpu: 0, mig: Some(MigDevice { gi, ci }) }
        };
        let (first, second) = (place(), place());
        let one = join(&mut state, 0, first, "vgg");
        let alone = state.view(one).expect("joined").rate;
        assert!((0.1..0.9).contains(&alone), "{alone}");
        let two = join(&mut state, 1, second, "vgg");
        assert_eq!(state.view(one).expect("joined").rate, alone);
        assert_eq!(state.view(two).expect("joined").rate, alone);
        let shares = state.mig_shares(first).expect("there");
        assert!(shares.sm > state.gpu(0).expect("there").reading().shares.sm / 2.0);
        [one, two].into_iter().for_each(|slot| state.leave(slot));
    });
}
