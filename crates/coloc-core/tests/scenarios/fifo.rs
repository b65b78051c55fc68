//! In order of arrival; the head blocks all tasks behind it.

use crate::testkit::{World, exclusive, mps, secs, task};
use coloc_core::policy::{Place, Queue};
use coloc_model::TaskState;

#[test]
fn tasks_start_in_order_of_arrival() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let [first, second, third] = world.submit_all([task(), task(), task()]);
    assert!(world.runs(first) && world.waits(second) && world.waits(third));
    world.finish(first);
    assert!(world.runs(second) && world.waits(third));
    world.finish(second);
    assert!(world.runs(third));
}

#[test]
fn the_head_blocks_a_task_that_would_fit() {
    let mut world = World::new("1xA100-40GB", mps(Queue::Fifo, Place::FirstFit));
    let [large, larger, small] = world.submit_all([task().gib(30), task().gib(20), task().gib(1)]);
    assert!(world.runs(large));
    assert!(world.waits(larger) && world.waits(small), "only the head is considered");
    world.finish(large);
    assert!(world.runs(larger) && world.runs(small));
}

#[test]
fn a_head_that_was_refused_starts_when_the_gpu_it_needs_is_free() {
    let mut world = World::new("3xA100-40GB", mps(Queue::Fifo, Place::FirstFit));
    let [a, b, c] = world.submit_all([task().gib(30); 3]);
    let head = world.submit(task().gib(20));
    world.finish(c);
    assert_eq!(world.gpus(head), [2]);
    assert!(world.runs(a) && world.runs(b));
}

#[test]
fn whoever_leaves_the_queue_makes_way() {
    let mut world = World::new("1xA100-40GB", mps(Queue::Fifo, Place::FirstFit));
    let [_, head, small] = world.submit_all([task().gib(30), task().gib(20), task().gib(1)]);
    world.cancel(head);
    assert!(world.runs(small));
    assert_eq!(world.state(head), TaskState::Cancelled);
}

#[test]
fn a_task_that_no_node_can_hold_fails_at_once() {
    let mut world = World::new("2x2xA100-40GB", exclusive(Queue::Fifo));
    let [wide, none, fine] = world.submit_all([task().gpus(3), task().gpus(0), task().gpus(2)]);
    assert_eq!(world.state(wide), TaskState::Failed);
    assert_eq!(world.state(none), TaskState::Failed);
    assert!(world.runs(fine));
}

#[test]
fn order_of_arrival_holds_within_one_moment_and_over_time() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let mut expected = vec![world.submit(task())];
    for _ in 0..3 {
        expected.extend(world.submit_all([task(), task()]));
        world.advance(secs(5));
    }
    for &id in &expected {
        world.finish(id);
    }
    let launched: Vec<_> = world.launches.iter().map(|&(_, id)| id).collect();
    assert_eq!(launched, expected);
}
