//! The presets against the rules that they stand for.

use crate::testkit::{World, at, gib, mib, secs, share, task};
use coloc_core::policy::{Gate, Knowledge, MemoryBasis, OnOom, Pace, Place, Queue};
use coloc_core::preset::MemoryKnowledge::{self, Estimate, None, Oracle};
use coloc_core::{Policy, Preset};
use coloc_model::{Share, TaskState};

fn v1(known: MemoryKnowledge) -> Policy {
    Preset::CarmaV1.policy(known)
}

fn v2(known: MemoryKnowledge) -> Policy {
    Preset::CarmaV2.policy(known)
}

#[test]
fn what_both_versions_of_carma_share() {
    for known in [Oracle, Estimate, None] {
        for policy in [v1(known), v2(known)] {
            assert_eq!(
                (policy.queue, policy.place, policy.share),
                (Queue::Fifo, Place::Magm, Share::Mps)
            );
            assert!(policy.idle_first && !policy.learn && policy.starvation_limit.is_none());
            assert_eq!(policy.recovery.on_oom, OnOom::Exclusive);
            assert!(policy.recovery.stops_others && policy.recovery.retries == u32::MAX);
        }
    }
}

#[test]
fn the_published_numbers_of_each_version() {
    let window = secs(90);
    let mean = Gate::TumblingMean { limit: share(0.8), window };
    let risk = Gate::Risk { sm: share(0.8), occupancy: share(0.45), dram: share(0.4) };
    let estimated = |margin| Knowledge::Estimated { margin: mib(margin) };
    let unknown = |min_free| Knowledge::Unknown { min_free: mib(min_free) };
    let cases = [
        (v1(Oracle), estimated(2000), mean),
        (v1(Estimate), estimated(0), Gate::Open),
        (v1(None), unknown(2000), mean),
        (v2(Oracle), estimated(2048), risk),
        (v2(Estimate), estimated(2048), risk),
        (v2(None), unknown(5120), risk),
    ];
    for (policy, knowledge, gate) in cases {
        assert_eq!((policy.knowledge, policy.gate), (knowledge, gate));
    }
    let pace = |idle, shared| Pace { idle: secs(idle), shared: secs(shared) };
    assert_eq!((v1(Oracle).pace, v2(Oracle).pace), (pace(30, 60), pace(1, 1)));
    assert_eq!((v1(Oracle).settle, v2(Oracle).settle), (Option::None, Some(secs(30))));
    let reserve = |mebi| MemoryBasis::Reported { reserve: mib(mebi) };
    assert_eq!((v1(Oracle).memory, v2(Oracle).memory), (reserve(0), reserve(512)));
}

#[test]
fn idle_gpus_come_first_without_a_look_at_memory() {
    let mut world = World::new("2xA100-40GB", v2(Estimate));
    let [small, sentinel] = world.submit_all([task().gib(1), task().mib(40_000)]);
    world.advance(secs(1));
    assert_eq!((world.gpus(small), world.gpus(sentinel)), (vec![0], vec![1]));
    // 40,000 + 2048 MiB are more than the device has: beside others it can never run.
    let again = world.submit(task().mib(40_000));
    world.advance(secs(600));
    assert!(world.waits(again));
    world.finish(small);
    assert_eq!(world.gpus(again), [0]);
}

#[test]
fn only_the_head_is_considered() {
    let mut world = World::new("1xA100-40GB", v2(Oracle));
    let [_, head, small] = world.submit_all([task().gib(1), task().gib(40), task().gib(1)]);
    world.advance(secs(600));
    assert!(world.waits(head) && world.waits(small));
}

#[test]
fn one_decision_a_second_and_thirty_seconds_of_grace() {
    let mut world = World::new("2xA100-40GB", v2(Oracle));
    world.submit_all([task().gib(1); 5]);
    world.advance(secs(100));
    let times: Vec<_> = world.launches.iter().map(|&(time, _)| time).collect();
    assert_eq!(times, [0, 1, 30, 31, 60].map(at));
}

#[test]
fn the_fixed_sleeps_of_the_first_version() {
    let mut world = World::new("2xA100-40GB", v1(Oracle));
    world.submit_all([task().gib(1); 4]);
    world.advance(secs(300));
    let times: Vec<_> = world.launches.iter().map(|&(time, _)| time).collect();
    assert_eq!(times, [0, 30, 60, 120].map(at));
}

#[test]
fn the_margins_and_reserves_add_up() {
    // 40,960 in use but for what is needed: need + 2048 + 512.
    for (free, starts) in [(5 * 1024 + 2560, true), (5 * 1024 + 2559, false)] {
        let mut world = World::new("1xA100-40GB", v2(Oracle));
        world.submit(task().gib(1));
        world.observe_gpu(0, 0.1, mib(40_960 - free));
        world.advance(secs(100));
        let second = world.submit(task().gib(5));
        assert_eq!(world.runs(second), starts, "{free} MiB free");
    }
}

#[test]
fn the_gate_of_the_second_version_shuts() {
    for (sm, starts) in [(0.95, false), (0.85, true)] {
        // Occupancy is half of it: 0.475 is above 0.45, 0.425 is not.
        let mut world = World::new("1xA100-40GB", v2(Oracle));
        world.submit(task().gib(1));
        world.observe_gpu(0, sm, gib(1));
        world.advance(secs(100));
        let second = world.submit(task().gib(1));
        assert_eq!(world.runs(second), starts, "SM activity {sm}");
    }
}

#[test]
fn the_gate_of_the_first_version_is_not_there_for_estimates() {
    for (known, starts) in [(Oracle, false), (None, false), (Estimate, true)] {
        let mut world = World::new("1xA100-40GB", v1(known));
        world.submit(task().gib(1));
        world.observe_gpu(0, 0.9, gib(1));
        world.advance(secs(200));
        let second = world.submit(task().gib(1));
        assert_eq!(world.runs(second), starts, "{known:?}");
    }
}

#[test]
fn a_recovered_task_drains_the_server() {
    let mut world = World::new("2xA100-40GB", v2(Estimate));
    let [a, b, victim] = world.submit_all([task().gib(1); 3]);
    world.advance(secs(100));
    assert!(world.runs(victim));
    world.oom(victim, gib(30));
    let small = world.submit(task().gib(1));
    world.advance(secs(1000));
    assert!(world.waits(victim) && world.waits(small), "all collocation stops");
    world.finish(a);
    assert!(world.runs(victim) && world.waits(small));
    world.advance(secs(30));
    assert!(world.runs(small) && world.runs(b));
    // For ever: nothing is learned.
    for _ in 0..20 {
        world.oom(victim, gib(50));
        world.advance(secs(1));
    }
    assert_eq!(world.state(victim), TaskState::Running);
}

#[test]
fn ours_needs_no_settle_time() {
    let policy = Preset::Coloc.policy(Oracle);
    assert_eq!((policy.settle, policy.memory), (Option::None, MemoryBasis::Ledger));
    assert!(!policy.recovery.stops_others && !policy.idle_first);
    let mut world = World::new("1xA100-40GB", policy);
    let ids = world.submit_all([task().gib(10).sm(0.2); 5]);
    let running = ids.iter().filter(|&&id| world.runs(id)).count();
    assert_eq!((running, world.booked(0)), (4, gib(40)), "at once, and no more than fit");
}

#[test]
fn ours_does_not_let_a_recovered_task_stop_others() {
    let mut world = World::new("1xA100-40GB", Preset::Coloc.policy(Estimate));
    let [victim, _] = world.submit_all([task().gib(1).sm(0.1), task().gib(30).sm(0.1)]);
    world.oom(victim, gib(20));
    let small = world.submit(task().gib(1).sm(0.1));
    assert!(world.waits(victim) && world.runs(small));
}
