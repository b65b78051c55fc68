//! When the scheduler asks to be woken: never too late, and not for nothing.

use crate::testkit::{World, at, exclusive, gib, mps, secs, share, task};
use coloc_core::policy::{Gate, Pace, Place, Queue};
use coloc_core::{Event, Policy};

const PLAIN: Policy = mps(Queue::BestEffort, Place::FirstFit);

#[test]
fn nothing_implicit_needs_no_wake_up() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    world.submit_all([task(), task()]);
    assert_eq!(world.next_wake(), None);
}

#[test]
fn the_end_of_a_settle_time() {
    let mut world = World::new("1xA100-40GB", Policy { settle: Some(secs(30)), ..PLAIN });
    world.submit(task().gib(1));
    assert_eq!(world.next_wake(), None, "no task waits for it");
    world.advance(secs(10));
    world.submit(task().gib(1));
    assert_eq!(world.next_wake(), Some(at(30)));
}

#[test]
fn the_end_of_a_pace() {
    let pace = Pace { idle: secs(30), shared: secs(60) };
    let mut world = World::new("1xA100-40GB", Policy { pace, ..PLAIN });
    let [a, b, c] = world.submit_all([task().gib(1); 3]);
    assert!(world.runs(a) && world.waits(b));
    assert_eq!(world.next_wake(), Some(at(30)), "after a launch on an idle GPU");
    world.advance(secs(30));
    assert!(world.runs(b) && world.waits(c));
    assert_eq!(world.next_wake(), Some(at(90)), "after one beside others");
    world.advance(secs(60));
    assert!(world.runs(c));
}

#[test]
fn a_pace_holds_back_whatever_happens() {
    let pace = Pace { idle: secs(30), shared: secs(60) };
    let mut world = World::new("2xA100-40GB", Policy { pace, ..exclusive(Queue::Fifo) });
    let [a, b] = world.submit_all([task(), task()]);
    world.advance(secs(10));
    world.finish(a);
    assert!(world.waits(b));
    world.advance(secs(20));
    assert!(world.runs(b));
}

#[test]
fn a_hot_gpu_that_cools_down() {
    let gate = Gate::Risk { sm: share(0.8), occupancy: share(0.4), dram: share(1.0) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    let hot = world.submit(task().gib(1));
    world.observe_gpu(0, 1.0, gib(1));
    world.advance(secs(100));
    let waiting = world.submit(task().gib(1));
    assert_eq!(world.next_wake(), None, "as long as it is hot, only an event helps");
    world.advance(secs(10));
    world.observe_gpu(0, 0.0, gib(0));
    world.finish(hot);
    assert!(world.waits(waiting), "its window is still full of hot samples");
    let wake = world.next_wake().expect("it will have cooled down");
    // All of the weights but the 95th percentile's are gone within half a window.
    assert!(at(110) < wake && wake <= at(125), "{wake:?}");
    world.advance(wake.since(world.now));
    assert!(world.runs(waiting));
}

#[test]
fn the_wake_up_is_the_first_second_at_which_the_gate_opens() {
    let gate = Gate::Risk { sm: share(0.8), occupancy: share(0.4), dram: share(1.0) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    let hot = world.submit(task().gib(1));
    world.observe_gpu(0, 1.0, gib(1));
    world.advance(secs(100));
    let waiting = world.submit(task().gib(1));
    world.observe_gpu(0, 0.0, gib(0));
    world.finish(hot);
    let wake = world.next_wake().expect("it will have cooled down");
    while world.now + secs(1) < wake {
        world.now = world.now + secs(1);
        world.tell(Event::Wake);
        assert!(world.waits(waiting), "at {:?}, before {wake:?}", world.now);
    }
}

#[test]
fn the_end_of_a_tumbling_window() {
    let gate = Gate::TumblingMean { limit: share(0.8), window: secs(90) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    let hot = world.submit(task().gib(1));
    world.observe_gpu(0, 1.0, gib(1));
    world.advance(secs(200));
    let waiting = world.submit(task().gib(1));
    world.observe_gpu(0, 0.0, gib(0));
    world.finish(hot);
    assert_eq!(world.next_wake(), Some(at(270)));
    world.advance(secs(70));
    assert!(world.runs(waiting), "mean of 180..270 s is 0.22");
}

#[test]
fn a_task_settles_after_a_minute() {
    let mut world = World::new("1xA100-40GB", Policy { learn: true, ..PLAIN });
    world.submit(task().gib(1));
    assert_eq!(world.next_wake(), Some(at(60)));
    world.advance(secs(60));
    assert_eq!(world.next_wake(), None);
}

#[test]
fn wake_ups_come_to_an_end() {
    // A gate that stays shut must not have the scheduler woken over and over.
    let gate = Gate::TumblingMean { limit: share(0.5), window: secs(90) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.submit(task().gib(1));
    world.observe_gpu(0, 1.0, gib(1));
    world.advance(secs(100));
    world.submit(task().gib(1));
    world.advance(secs(1000));
    assert_eq!(world.next_wake(), None);
}

#[test]
fn a_gpu_that_is_seen_to_cool_down_is_used() {
    let gate = Gate::Risk { sm: share(0.8), occupancy: share(0.4), dram: share(1.0) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..mps(Queue::Fifo, Place::Magm) });
    world.submit(task().gib(1));
    world.observe_gpu(0, 1.0, gib(1));
    world.advance(secs(100));
    let waiting = world.submit(task().gib(1));
    world.observe_gpu(0, 0.1, gib(1));
    world.advance(secs(3600));
    assert!(world.runs(waiting));
}
