//! EASY: later tasks may pass only if the head's promised start does not move.

use crate::testkit::{TaskBuilder, World, at, exclusive, mps, secs, task};
use coloc_core::policy::{Gate, Place, Queue};
use coloc_core::{Event, Policy};
use coloc_model::{GpuId, Share, TaskId};

const EASY: Policy = exclusive(Queue::Backfill);

#[test]
fn a_short_task_passes_a_gang_that_waits() {
    let mut world = World::new("2xA100-40GB", EASY);
    let running = world.submit(task().secs(100));
    let [gang, short, long] =
        world.submit_all([task().gpus(2).secs(50), task().secs(100), task().secs(101)]);
    assert!(world.waits(gang));
    assert!(world.runs(short), "over when the gang can start");
    assert!(world.waits(long), "one second too long");
    world.advance(secs(100));
    world.finish(running);
    world.finish(short);
    assert!(world.runs(gang));
}

#[test]
fn a_gang_that_lacks_gpus_in_service_stops_nobody() {
    let mut world = World::new("2xA100-40GB", EASY);
    world.tell(Event::GpuDrained { gpu: GpuId(0), drained: true });
    let gang = world.submit(task().gpus(2).secs(50));
    let endless = world.submit(task());
    assert!(world.waits(gang));
    assert_eq!(world.gpus(endless), [1], "the gang cannot start, whichever task waits");
    world.tell(Event::GpuDrained { gpu: GpuId(0), drained: false });
    let next = world.submit(task());
    assert!(world.waits(next), "now it can");
    world.finish(endless);
    assert!(world.runs(gang));
}

#[test]
fn a_promise_counts_on_no_drained_gpu() {
    let mut world = World::new("3xA100-40GB", EASY);
    let running = world.submit_all([task().secs(100), task().secs(200)]);
    world.tell(Event::GpuDrained { gpu: GpuId(2), drained: true });
    let head = world.submit(task().secs(50));
    let behind = world.submit(task().secs(60));
    assert!(world.waits(head) && world.waits(behind));
    world.finish(running[0]);
    assert_eq!(world.gpus(head), [0]);
}

#[test]
fn a_task_of_unknown_length_does_not_pass() {
    let mut world = World::new("2xA100-40GB", EASY);
    world.submit(task().secs(100));
    let [gang, endless] = world.submit_all([task().gpus(2).secs(50), task()]);
    assert!(world.waits(gang) && world.waits(endless));
}

#[test]
fn a_long_task_passes_where_it_is_not_in_the_way() {
    let mut world = World::new("3xA100-40GB", EASY);
    let [a, _b] = world.submit_all([task().secs(100), task().secs(1000)]);
    let gang = world.submit(task().gpus(2).secs(50));
    // One GPU is free, one at 100 s, one at 1000 s: the gang needs the first two.
    let long = world.submit(task().secs(500));
    assert!(world.waits(long));
    let short = world.submit(task().secs(99));
    assert_eq!(world.gpus(short), [2]);
    world.advance(secs(100));
    world.finish(a);
    world.finish(short);
    assert_eq!(world.gpus(gang), [0, 2]);
}

#[test]
fn on_another_node_nobody_is_in_the_way() {
    let mut world = World::new("2xA100-40GB,1xA100-40GB", EASY);
    world.submit(task().secs(100));
    let gang = world.submit(task().gpus(2).secs(50));
    let [in_the_way, aside] = world.submit_all([task().secs(1000), task().secs(1000)]);
    // First fit offers GPU 1 to the first of them, which the gang needs.
    assert!(world.waits(gang));
    let passed = [in_the_way, aside].into_iter().filter(|&id| world.runs(id)).count();
    assert!(passed <= 1);
    for id in [in_the_way, aside].into_iter().filter(|&id| world.runs(id)) {
        assert_eq!(world.gpus(id), [2]);
    }
}

#[test]
fn a_head_that_counts_gpus_only_takes_them_from_any_node() {
    let policy = Policy::plain(Queue::Backfill, Place::Any, Share::Exclusive);
    let mut world = World::new("2x1xA100-40GB", policy);
    let running = world.submit(task().secs(100));
    let [gang, short, long] =
        world.submit_all([task().gpus(2).secs(50), task().secs(60), task().secs(200)]);
    assert!(world.runs(short) && world.waits(long));
    world.advance(secs(60));
    world.finish(short);
    world.advance(secs(40));
    world.finish(running);
    assert_eq!(world.gpus(gang), [0, 1]);
}

#[test]
fn a_small_task_passes_where_memory_for_the_head_is_left() {
    let mut world = World::new("1xA100-40GB", mps(Queue::Backfill, Place::FirstFit));
    let [running, _] = world.submit_all([task().gib(20).secs(100), task().gib(10).secs(1000)]);
    // At 100 s 30 GiB are free: enough for 25 and 5, not for 25 and 6.
    let head = world.submit(task().gib(25).secs(50));
    let [wide, narrow] = world.submit_all([task().gib(6).secs(500), task().gib(5).secs(500)]);
    assert!(world.waits(head) && world.waits(wide) && world.runs(narrow));
    world.advance(secs(100));
    world.finish(running);
    assert!(world.runs(head));
}

#[test]
fn expected_activity_counts_like_memory() {
    let gate = Gate::Expected { limit: 1.0 };
    let policy = Policy { gate, ..mps(Queue::Backfill, Place::FirstFit) };
    let mut world = World::new("1xA100-40GB", policy);
    world.submit(task().gib(1).sm(0.5).secs(100));
    let head = world.submit(task().gib(1).sm(0.7).secs(50));
    let [busy, calm] =
        world.submit_all([task().gib(1).sm(0.4).secs(500), task().gib(1).sm(0.3).secs(500)]);
    assert!(world.waits(head));
    assert!(world.waits(busy), "0.7 + 0.4 would keep the head out at 100 s");
    assert!(world.runs(calm), "0.7 + 0.3 would not");
}

/// Plays a trace of (arrival, GPUs, run time) to its end; tasks run exactly as long as declared.
/// Says when each started.
fn play(fleet: &str, policy: Policy, tasks: &[(u64, u32, u64)]) -> Vec<u64> {
    let mut world = World::new(fleet, policy);
    let mut ends: Vec<(u64, TaskId)> = Vec::new();
    let mut starts = vec![None; tasks.len()];
    let mut next = 0;
    while next < tasks.len() || !ends.is_empty() {
        ends.sort_unstable();
        let end = ends.first().map_or(u64::MAX, |&(end, _)| end);
        let arrival = tasks.get(next).map_or(u64::MAX, |task| task.0);
        let now = end.min(arrival);
        world.advance(at(now).since(world.now));
        if end <= arrival {
            world.finish(ends.remove(0).1);
        } else {
            let (_, gpus, span) = tasks[next];
            let built: TaskBuilder = task().gpus(gpus).secs(span);
            world.submit(built);
            next += 1;
        }
        for (started, id) in world.launches.drain(..) {
            starts[id.index()] = Some((started.secs()) as u64);
            ends.push((started.secs() as u64 + tasks[id.index()].2, id));
        }
    }
    starts.into_iter().map(|start| start.expect("every task starts")).collect()
}

#[test]
fn passing_shortens_the_queue_without_delaying_the_head() {
    let tasks = [(0, 1, 100), (1, 2, 50), (2, 1, 90), (3, 1, 200)];
    let fifo = play("2xA100-40GB", exclusive(Queue::Fifo), &tasks);
    let easy = play("2xA100-40GB", EASY, &tasks);
    assert_eq!(fifo, [0, 100, 150, 150]);
    assert_eq!(easy, [0, 100, 2, 150]);
}

mod promises {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// When durations are exact, the head starts no later than if no task passed it from then on:
        /// here, the second task under plain FIFO.
        #[test]
        fn the_first_head_starts_when_fifo_would_start_it(
            rest in prop::collection::vec((0u64..40, 1u32..=4, 1u64..120), 1..14),
        ) {
            // The first task occupies part of the node, the second needs all of it.
            let mut tasks = vec![(0, 2, 60), (0, 4, 30)];
            let mut arrival = 0;
            for (gap, gpus, span) in rest {
                arrival += gap;
                tasks.push((arrival, gpus, span));
            }
            for (fleet, policy) in [
                ("4xA100-40GB", EASY),
                ("2x4xA100-40GB", EASY),
                ("2x2xA100-40GB", Policy::plain(Queue::Backfill, Place::Any, Share::Exclusive)),
            ] {
                let fifo = play(fleet, Policy { queue: Queue::Fifo, ..policy }, &tasks);
                let easy = play(fleet, policy, &tasks);
                prop_assert!(easy[1] <= fifo[1], "{fleet}: {} after {}", easy[1], fifo[1]);
            }
        }
    }
}

#[test]
fn a_head_that_waits_for_a_mig_instance_keeps_its_promise() {
    let policy = Policy::plain(Queue::Backfill, Place::FirstFit, Share::Mig);
    let mut world = World::new("1xA100-40GB", policy);
    let running = world.submit(task().gib(15).sm(0.1).secs(100));
    let head = world.submit(task().gib(30).secs(50));
    let small = world.submit(task().gib(4).sm(0.1).secs(500));
    assert!(world.waits(head) && world.waits(small));
    world.advance(secs(100));
    world.finish(running);
    assert!(world.runs(head));
}

#[test]
fn a_head_that_waits_for_another_user_to_leave_keeps_its_promise() {
    let policy = Policy { same_user: true, ..mps(Queue::Backfill, Place::FirstFit) };
    let mut world = World::new("1xA100-40GB", policy);
    let running = world.submit(task().user(1).gib(5).secs(100));
    let head = world.submit(task().user(2).gib(5).secs(50));
    let same = world.submit(task().user(1).gib(5).secs(500));
    assert!(world.waits(head) && world.waits(same));
    world.advance(secs(100));
    world.finish(running);
    assert!(world.runs(head));
}

#[test]
fn nobody_passes_a_head_whose_start_nobody_can_foresee() {
    let mut world = World::new("2xA100-40GB", exclusive(Queue::Backfill));
    let endless = world.submit(task());
    let gang = world.submit(task().gpus(2).secs(50));
    let single = world.submit(task().secs(100_000));
    world.finish(endless);
    assert!(world.runs(gang) && world.waits(single));
}
