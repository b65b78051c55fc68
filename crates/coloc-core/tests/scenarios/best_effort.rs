//! Tasks that do not fit are skipped; what is expected to be short may go first.

use crate::testkit::{World, mps, task};
use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};

const SKIPPING: Policy = mps(Queue::BestEffort, Place::FirstFit);

#[test]
fn a_task_that_does_not_fit_is_skipped() {
    let mut world = World::new("1xA100-40GB", SKIPPING);
    let [large, larger, small] = world.submit_all([task().gib(30), task().gib(20), task().gib(10)]);
    assert!(world.runs(large) && world.waits(larger) && world.runs(small));
    world.finish(large);
    assert!(world.runs(larger));
}

#[test]
fn among_those_that_fit_arrival_decides() {
    let mut world = World::new("1xA100-40GB", SKIPPING);
    let running = world.submit(task().gib(40));
    let [first, second, third] = world.submit_all([task().gib(15), task().gib(20), task().gib(15)]);
    world.finish(running);
    assert!(world.runs(first) && world.runs(second) && world.waits(third));
}

#[test]
fn a_whole_backlog_of_one_kind_starts_one_by_one() {
    let mut world = World::new("2xA100-40GB", SKIPPING);
    let kind = task().kind(1).gib(40);
    let [a, b, c, d, e] = world.submit_all([kind; 5]);
    world.finish(b);
    assert!(world.runs(c) && world.waits(d));
    world.finish(a);
    assert!(world.runs(d) && world.waits(e));
    world.finish(d);
    assert_eq!(world.gpus(e), [0]);
}

#[test]
fn tasks_that_differ_only_in_expected_activity_are_not_taken_for_one_another() {
    use coloc_core::policy::Gate;
    let gate = Gate::Expected { limit: 1.0 };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..SKIPPING });
    world.submit(task().gib(1).sm(0.6));
    let same = task().kind(1).gib(1);
    let [busy, calm] = world.submit_all([same.sm(0.9), same.sm(0.2)]);
    assert!(world.waits(busy), "0.6 + 0.9 is too much");
    assert!(world.runs(calm), "0.6 + 0.2 is not");
}
