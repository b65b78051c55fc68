//! Few nodes for gangs: always, never, or where a model's largest tensor asks for it.

use crate::testkit::{World, mps, task};
use coloc_core::Policy;
use coloc_core::policy::{Pack, Place, Queue};
use coloc_model::{Share, SignatureId};

const FLEET: &str = "3x4xV100-16GB";

fn packed(pack: Pack) -> Policy {
    let policy = Policy::plain(Queue::BestEffort, Place::Consolidate, Share::Exclusive);
    Policy { pack, ..policy }
}

#[test]
fn the_node_with_the_least_room_is_taken() {
    let mut world = World::new(FLEET, packed(Pack::Always));
    let [first, second] = world.submit_all([task().gpus(3), task().gpus(2)]);
    assert_eq!((world.gpus(first), world.gpus(second)), (vec![0, 1, 2], vec![4, 5]));
    let [pair, one] = world.submit_all([task().gpus(2), task()]);
    assert_eq!(world.gpus(pair), [6, 7], "whole nodes are kept whole");
    assert_eq!(world.gpus(one), [3]);
    let whole = world.submit(task().gpus(4));
    assert_eq!(world.gpus(whole), [8, 9, 10, 11]);
}

/// A fleet with single tasks on all GPUs but these.
fn only_free(fleet: &str, policy: Policy, gpus: u32, free: &[u32]) -> World {
    let mut world = World::new(fleet, policy);
    let fillers: Vec<_> = (0..gpus).map(|_| world.submit(task().kind(9))).collect();
    for filler in fillers {
        if free.contains(&world.gpus(filler)[0]) {
            world.finish(filler);
        }
    }
    world
}

#[test]
fn who_must_be_together_waits_for_a_node() {
    for pack in [Pack::Always, Pack::Never, Pack::Skew(0.5)] {
        let mut world = only_free(FLEET, packed(pack), 12, &[1, 2, 5, 6, 7, 11]);
        let gang = world.submit(task().gpus(4));
        assert_eq!(world.waits(gang), pack != Pack::Never, "{pack:?}");
        if pack == Pack::Never {
            assert_eq!(world.gpus(gang), [5, 6, 7, 11], "on as few as are free");
        }
    }
}

#[test]
fn a_gang_larger_than_a_node_takes_as_few_as_it_needs() {
    let mut world =
        only_free(FLEET, packed(Pack::Always), 12, &[0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
    let wide = world.submit(task().gpus(6));
    assert_eq!(world.gpus(wide), [4, 5, 6, 7, 0, 1], "what is left over leaves the least room");
    let mut world = only_free(FLEET, packed(Pack::Always), 12, &[0, 1, 4, 5, 8, 9]);
    let wide = world.submit(task().gpus(6));
    assert!(world.waits(wide), "three nodes would be one too many");
}

#[test]
fn skew_decides_for_gangs_larger_than_a_node() {
    let (skewed, even, unknown) = (1, 2, 3);
    for (kind, waits) in [(skewed, true), (even, false), (unknown, true)] {
        let mut world = only_free("3x2xV100-16GB", packed(Pack::Skew(0.3)), 6, &[1, 3, 5]);
        let skews = [(SignatureId(skewed), 0.744), (SignatureId(even), 0.112)];
        world.scheduler = world.scheduler.with_skews(skews);
        let pair = world.submit(task().gpus(2).kind(kind));
        assert!(world.waits(pair), "it fits on one node, so it waits for one");
        let wide = world.submit(task().gpus(3).kind(kind));
        assert_eq!(world.waits(wide), waits, "kind {kind}");
    }
}

#[test]
fn shared_gpus_are_packed_too() {
    let mut world = World::new(FLEET, mps(Queue::BestEffort, Place::Consolidate));
    let light = task().gib(6).sm(0.1);
    let [first, second] = world.submit_all([light.gpus(4), light.gpus(4)]);
    assert_eq!(world.gpus(first), world.gpus(second), "two on each GPU");
    let third = world.submit(light.gpus(4));
    assert_eq!(world.gpus(third), [4, 5, 6, 7], "and no room for three");
}
