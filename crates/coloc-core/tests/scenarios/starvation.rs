//! A task that has been passed over for too long gets GPUs kept free.

use crate::testkit::{World, at, gib, mps, secs, task};
use coloc_core::policy::{Place, Queue};
use coloc_core::{Event, Policy, Refusal};
use coloc_model::{Bytes, GpuId, TaskId};

const HOUR: u64 = 3600;
const PATIENT: Policy =
    Policy { starvation_limit: Some(secs(HOUR)), ..mps(Queue::BestEffort, Place::FirstFit) };

/// A task of 40 GiB waits beside one of 30 GiB, until its starvation limit is reached.
fn large_task_waits(policy: Policy, blocker: u32) -> (World, TaskId, TaskId) {
    let mut world = World::new("1xA100-40GB", policy);
    let [running, large] = world.submit_all([task().kind(blocker).gib(30), task().gib(40)]);
    world.advance(secs(HOUR));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    (world, running, large)
}

#[test]
fn before_the_starvation_limit_a_task_is_passed_over() {
    let mut world = World::new("1xA100-40GB", PATIENT);
    world.submit_all([task().gib(30), task().gib(40)]);
    world.advance(secs(HOUR - 1));
    let small = world.submit(task().gib(5));
    assert!(world.runs(small));
}

#[test]
fn no_gpu_is_kept_that_takes_nothing() {
    for lost in [false, true] {
        let mut world = World::new("2xA100-40GB", PATIENT);
        let gpu = GpuId(1);
        world.tell(match lost {
            false => Event::GpuDrained { gpu, drained: true },
            true => Event::GpuThere { gpu, there: false },
        });
        let [running, large] = world.submit_all([task().gib(30), task().gib(40)]);
        let pair = world.submit(task().gpus(2).gib(40));
        world.advance(secs(HOUR));
        let trigger = world.submit(task().gib(40));
        world.cancel(trigger);
        let small = world.submit(task().gib(5));
        // The idle one would have been kept, for ever, and the other given away again and again.
        assert_eq!(world.refusals(small, 0), [Refusal::Reserved { reserved_for: large }]);
        world.finish(running);
        assert_eq!(world.gpus(large), [0]);
        world.finish(large);
        assert!(
            world.runs(small) && world.waits(pair),
            "nothing is kept for a pair that cannot be"
        );
    }
}

#[test]
fn after_that_its_gpu_is_kept_for_it() {
    let (mut world, running, large) = large_task_waits(PATIENT, 1);
    let small = world.submit(task().gib(5));
    assert_eq!(world.refusals(small, 0), [Refusal::Reserved { reserved_for: large }]);
    world.finish(running);
    assert!(world.runs(large));
}

#[test]
fn once_it_runs_nothing_is_kept_any_more() {
    let (mut world, running, large) = large_task_waits(PATIENT, 1);
    world.finish(running);
    world.finish(large);
    let [a, b] = world.submit_all([task().gib(5), task().gib(5)]);
    assert!(world.runs(a) && world.runs(b));
}

#[test]
fn nothing_is_kept_for_a_task_that_was_cancelled() {
    let (mut world, _, large) = large_task_waits(PATIENT, 1);
    let small = world.submit(task().gib(5));
    assert!(world.waits(small));
    world.cancel(large);
    assert!(world.runs(small));
}

#[test]
fn what_was_kept_and_not_used_goes_to_whoever_waits() {
    let mut world = World::filled(PATIENT, [task().gib(30), task().gib(35)]);
    let large = world.submit(task().gib(35));
    world.advance(secs(HOUR));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    let small = world.submit(task().gib(6));
    assert_eq!(world.refusals(small, 0), [Refusal::Reserved { reserved_for: large }]);
    // Room for the large one comes up elsewhere.
    let other = world.running().find(|&id| world.gpus(id) == [1]).expect("35 GiB");
    world.finish(other);
    assert_eq!((world.gpus(large), world.gpus(small)), (vec![1], vec![0]));
}

#[test]
fn a_recovered_task_that_stops_all_others_is_not_stopped_by_them() {
    let mut policy = Policy { place: Place::Exclusive, ..PATIENT };
    policy.recovery.stops_others = true;
    let mut world = World::new("1xA100-40GB", policy);
    let [victim, head] = world.submit_all([task(), task()]);
    world.advance(secs(HOUR));
    world.submit(task());
    world.oom(victim, gib(1));
    assert!(world.runs(victim));
    world.finish(victim);
    assert!(world.runs(head));
}

#[test]
fn a_gang_gets_gpus_of_one_node() {
    let mut world = World::new("2x2xA100-40GB", PATIENT);
    let tasks = world.submit_all([task().gib(30); 4]);
    let gang = world.submit(task().gib(40).gpus(2));
    world.advance(secs(HOUR));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    let small = world.submit(task().gib(5));
    assert_eq!(world.gpus(small), [2], "the other node is open to all");
    world.finish(tasks[0]);
    world.finish(tasks[1]);
    assert_eq!(world.gpus(gang), [0, 1]);
}

const LEARNING: Policy = Policy { learn: true, ..PATIENT };

/// Kind 1 takes two hours, kind 2 ten minutes, and the scheduler has seen both.
fn experienced() -> World {
    let mut world = World::new("1xA100-40GB", LEARNING);
    for (kind, span) in [(1, 2 * HOUR), (2, 600)] {
        let id = world.submit(task().kind(kind).gib(5));
        world.advance(secs(span));
        world.finish(id);
    }
    world
}

/// Kind 1 has run for most of its two hours while a large task waits.
fn long_task_nearly_done(minutes_left: u64) -> (World, TaskId, TaskId) {
    let mut world = experienced();
    let [running, large] = world.submit_all([task().kind(1).gib(30), task().gib(40)]);
    world.observe(running, Bytes::from_mib(30 * 1024));
    world.advance(secs(2 * HOUR - 60 * minutes_left));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    (world, running, large)
}

#[test]
fn who_is_gone_by_then_may_still_use_a_gpu_that_is_kept() {
    let (mut world, ..) = long_task_nearly_done(30);
    let short = world.submit(task().kind(2).gib(5));
    assert!(world.runs(short), "ten minutes fit in the thirty that are left");
}

#[test]
fn who_would_still_be_there_may_not() {
    let (mut world, _, large) = long_task_nearly_done(5);
    let short = world.submit(task().kind(2).gib(5));
    assert_eq!(world.refusals(short, 0), [Refusal::Reserved { reserved_for: large }]);
}

#[test]
fn of_a_kind_never_seen_nobody_knows_when_it_is_gone() {
    let (mut world, _, large) = long_task_nearly_done(30);
    let unknown = world.submit(task().kind(9).gib(5));
    assert_eq!(world.refusals(unknown, 0), [Refusal::Reserved { reserved_for: large }]);
}

#[test]
fn a_gpu_whose_tasks_nobody_can_foresee_is_kept_from_all() {
    let mut world = experienced();
    let [running, large] = world.submit_all([task().kind(9).gib(30), task().gib(40)]);
    world.observe(running, Bytes::from_mib(30 * 1024));
    world.advance(secs(HOUR));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    let short = world.submit(task().kind(2).gib(5));
    assert_eq!(world.refusals(short, 0), [Refusal::Reserved { reserved_for: large }]);
    world.finish(running);
    assert!(world.runs(large), "no task slipped in before it");
}

#[test]
fn only_gpus_that_are_large_enough_are_kept() {
    let mut world = World::new("1xT4-16GB,1xA100-40GB", PATIENT);
    let running = world.submit(task().gib(30));
    let large = world.submit(task().gib(20));
    world.advance(secs(HOUR));
    let trigger = world.submit(task().gib(40));
    world.cancel(trigger);
    let small = world.submit(task().gib(5));
    assert_eq!(world.gpus(small), [0], "the T4 could never hold 20 GiB");
    let other = world.submit(task().gib(16).gpus(1));
    assert_eq!(world.refusals(other, 1)[0], Refusal::Reserved { reserved_for: large });
    world.finish(running);
    assert_eq!(world.gpus(large), [1]);
    assert_eq!(world.now, at(HOUR));
}

#[test]
fn a_reservation_is_not_in_the_way_of_its_own_task() {
    use Queue::{Backfill, BestEffort, Fair, Fifo, Srsf};
    for queue in [BestEffort, Fair, Fifo, Backfill, Srsf] {
        let policy = Policy { queue, ..PATIENT };
        let mut world = World::new("1xA100-40GB", policy);
        let running = world.submit(task().kind(1).gib(40).secs(100));
        let starving = world.submit(task().kind(2).gib(40).secs(200).priority(-1));
        world.advance(secs(HOUR));
        world.tell(Event::Wake);
        // It asks the same of a GPU and goes before the one that GPUs are kept for.
        let before = world.submit(task().kind(2).gib(40).secs(200));
        world.finish(running);
        // Where ranks decide, the one that ranks better would preempt the other.
        let (first, second) = if queue == Srsf { (before, starving) } else { (starving, before) };
        assert!(world.runs(first), "{queue:?}: GPU 0 is empty");
        world.finish(first);
        assert!(world.runs(second), "{queue:?}");
    }
}

#[test]
fn a_task_that_ran_out_of_memory_does_not_starve() {
    let mut world = World::new("1xA100-40GB", PATIENT);
    let dies = world.submit(task().kind(1).gib(10));
    let mut small = world.submit(task().kind(2).gib(10));
    world.oom(dies, gib(35));
    assert!(world.waits(dies), "39 GiB are not to be had");
    for _ in 0..70 {
        world.advance(secs(60));
        let next = world.submit(task().kind(2).gib(10));
        world.finish(small);
        if world.waits(next) {
            break;
        }
        small = next;
    }
    assert!(world.runs(dies), "GPUs are kept for it after an hour");
}
