//! What is booked on which basis, and which tasks may come beside it.

use super::{CONTRACT, LONG};
use crate::testkit::{World, gib, mib, secs, task};
use coloc_core::policy::{Contract, Knowledge};
use coloc_core::preset::MemoryKnowledge;
use coloc_core::{Policy, Preset, Refusal};
use coloc_model::{Basis, Share};

#[test]
fn a_declaration_is_booked_for_life_whatever_is_seen() {
    // 30 GiB were declared; while it loads, half a GiB is on the GPU.
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let loading = world.submit(task().declares(30));
    let large = world.submit(task().declares(35));
    let small = world.submit(task().declares(10));
    assert!(world.runs(small));
    world.observe(loading, mib(500));
    world.advance(secs(3600));
    assert!(world.waits(large), "65 GiB of 40 are never promised");
    world.trains(loading, gib(3));
    assert_eq!(world.booked(0), gib(40), "not even once it was seen to need less");
    assert!(world.waits(large));
}

#[test]
fn preset_coloc_has_the_contract_and_others_do_not() {
    for known in [MemoryKnowledge::Oracle, MemoryKnowledge::Estimate, MemoryKnowledge::None] {
        assert!(Preset::Coloc.policy(known).contract.is_some());
        for preset in [Preset::CarmaV1, Preset::CarmaV2, Preset::Tiresias, Preset::Allox] {
            assert_eq!(preset.policy(known).contract, None);
        }
    }
}

#[test]
fn history_raises_a_declaration_and_never_lowers_it() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let first = world.submit(task().kind(1).declares(30));
    world.trains(first, gib(2));
    world.finish(first);
    let second = world.submit(task().kind(1).declares(30));
    assert_eq!(world.booked(0), gib(30), "the last run used 2, and 30 were declared");
    world.finish(second);
    let third = world.submit(task().kind(1).declares(1));
    assert_eq!(world.booked(0), gib(2).scale(1.03), "1 was declared, and such tasks hold 2");
    let promised = world.scheduler.promised(third).expect("it runs");
    assert_eq!((promised.basis, promised.limit), (Basis::Declared, Some(gib(2).scale(1.03))));
}

#[test]
fn an_estimate_is_booked_at_its_bound_until_there_is_evidence() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().at_most(30));
    world.observe(id, gib(2));
    world.advance(secs(3600));
    assert_eq!(world.booked(0), gib(30), "time alone is no evidence");
    world.trains(id, gib(2));
    assert_eq!(world.booked(0), gib(2).scale(1.05));
    let promised = world.scheduler.promised(id).expect("it runs");
    assert_eq!((promised.basis, promised.settled), (Basis::Estimated, true));
    assert_eq!(promised.limit, Some(gib(30)), "limits are fixed at launch");
}

#[test]
fn what_was_expected_stays_booked() {
    // The estimate is right: it will hold 20 GiB in its evaluation.
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let right = world.submit(task().gib(20));
    world.trains(right, gib(15));
    assert_eq!(world.booked(0), gib(20));
}

#[test]
fn a_few_runs_do_not_refute_an_estimate_but_many_do() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    for run in 0..5 {
        let id = world.submit(task().kind(1).gib(20));
        let booked = if run < 3 { gib(20) } else { gib(5).scale(1.03) };
        assert_eq!(world.booked(0), booked, "after {run} runs");
        world.observe(id, gib(5));
        world.finish(id);
    }
    let low = world.submit(task().kind(1).gib(4));
    assert_eq!(world.booked(0), gib(5).scale(1.03), "one that was too low is raised at once");
    world.finish(low);
}

#[test]
fn tasks_of_which_nothing_is_known_do_not_share() {
    // Eight that need 21 to 28 GiB each on four GPUs: nothing is known of any.
    let mut world = World::new("4xA100-40GB", CONTRACT);
    let ids: Vec<_> = (0..8).map(|_| world.submit(task())).collect();
    assert_eq!(world.running().count(), 4, "one on each GPU");
    for &id in &ids[..4] {
        world.observe_at_work(id, gib(25), 0.5);
    }
    world.advance(secs(30));
    assert_eq!(world.running().count(), 4);
    assert_eq!(world.booked(0), gib(40));
    let refusal = Refusal::HeldAlone { holder: ids[0], until_settled: true };
    assert!(world.refusals(ids[4], 0).contains(&refusal));
    world.advance(secs(LONG));
    assert_eq!(world.booked(0), gib(25).scale(1.1), "settled: company that fits may come");
    assert_eq!(world.running().count(), 4, "but it is not known that these fit");
    let small = world.submit(task().declares(10));
    assert!(world.runs(small));
}

#[test]
fn sharing_blindly_is_a_choice() {
    let contract = Some(Contract { share_blind: true, ..Contract::default() });
    let knowledge = Knowledge::Unknown { min_free: gib(5) };
    let mut world = World::new("1xA100-40GB", Policy { contract, knowledge, ..CONTRACT });
    let ids = world.submit_all([task(), task(), task()]);
    assert!(ids.into_iter().all(|id| world.runs(id)));
    assert_eq!(world.booked(0), gib(15));
}

#[test]
fn on_partitions_the_unknown_get_the_largest_or_what_is_configured() {
    let whole = Policy { share: Share::Mig, ..CONTRACT };
    let mut world = World::new("1xA100-40GB", whole);
    let id = world.submit(task());
    let instance = world.placement(id).slots[0].instance.expect("a partition");
    assert!(instance.memory > gib(35), "{:?}", instance);
    let contract = Some(Contract { unknown_instance: Some(gib(9)), ..Contract::default() });
    let mut world = World::new("1xA100-40GB", Policy { contract, ..whole });
    let ids = world.submit_all([task(), task()]);
    for id in ids {
        let instance = world.placement(id).slots[0].instance.expect("a partition");
        assert!(instance.memory >= gib(9) && instance.memory < gib(20), "{instance:?}");
    }
    world.trains(ids[0], gib(1));
    assert!(world.booked(0) > gib(18), "an instance cannot shrink");
}

#[test]
fn who_asked_to_be_alone_stays_alone() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let alone = world.submit(task().exclusive());
    world.trains(alone, gib(1));
    let other = world.submit(task().declares(1));
    assert_eq!(world.booked(0), gib(40));
    assert!(world.waits(other));
}
