//! What tasks were promised, until and after they were seen.

use crate::testkit::{World, gib, mib, mps, secs, task};
use coloc_core::Policy;
use coloc_core::policy::{Knowledge, MemoryBasis, Place, Queue};
use coloc_model::Bytes;

const PLAIN: Policy = mps(Queue::BestEffort, Place::FirstFit);
const LEARNING: Policy = Policy { learn: true, ..PLAIN };

#[test]
fn a_young_task_is_booked_with_what_it_was_promised() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().gib(20));
    world.observe(id, gib(5));
    world.advance(secs(59));
    assert_eq!(world.booked(0), gib(20));
}

#[test]
fn memory_that_was_never_used_goes_back_once_a_task_has_settled() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let [id, waiting] = world.submit_all([task().gib(30), task().gib(20)]);
    world.observe(id, mib(10_000));
    world.advance(secs(60));
    assert!(world.runs(waiting), "30 GiB shrank to what was seen and a twentieth");
    assert_eq!(world.booked(0), mib(10_500) + gib(20));
}

#[test]
fn a_task_nobody_saw_keeps_its_promise() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    world.submit(task().gib(30));
    world.advance(secs(600));
    assert_eq!(world.booked(0), gib(30));
}

#[test]
fn a_task_that_uses_what_it_was_promised_keeps_it() {
    let mut world = World::new("1xA100-40GB", LEARNING);
    let id = world.submit(task().gib(30));
    world.observe(id, gib(29));
    world.advance(secs(60));
    assert_eq!(world.booked(0), gib(30));
}

#[test]
fn without_learning_promises_stand() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    let id = world.submit(task().gib(30));
    world.observe(id, gib(1));
    world.advance(secs(600));
    assert_eq!(world.booked(0), gib(30));
}

#[test]
fn who_holds_more_than_promised_is_booked_with_it() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    let id = world.submit(task().gib(5));
    world.observe(id, gib(12));
    assert_eq!(world.booked(0), gib(12));
    // The most that was seen counts, not the last.
    world.observe(id, gib(3));
    assert_eq!(world.booked(0), gib(12));
}

#[test]
fn but_others_keep_their_promises() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    let [greedy, other] = world.submit_all([task().gib(5), task().gib(30)]);
    world.observe(greedy, gib(12));
    assert_eq!(world.booked(0), gib(40), "10 of its 12 fit into the books");
    world.finish(other);
    world.observe(greedy, gib(12));
    assert_eq!(world.booked(0), gib(12));
}

#[test]
fn a_gang_is_rebooked_on_all_of_its_gpus() {
    let mut world = World::new("2xA100-40GB", LEARNING);
    let gang = world.submit(task().gpus(2).gib(30));
    world.observe(gang, mib(10_000));
    world.advance(secs(60));
    assert_eq!([world.booked(0), world.booked(1)], [mib(10_500); 2]);
    world.observe(gang, gib(20));
    assert_eq!([world.booked(0), world.booked(1)], [gib(20); 2]);
}

#[test]
fn without_knowledge_the_minimum_is_promised() {
    let knowledge = Knowledge::Unknown { min_free: gib(8) };
    let mut world = World::new("1xA100-40GB", Policy { knowledge, ..PLAIN });
    world.submit(task());
    assert_eq!(world.booked(0), gib(8));
}

#[test]
fn the_books_never_show_more_than_the_device_has() {
    let memory = MemoryBasis::Reported { reserve: Bytes::ZERO };
    let mut world = World::new("1xA100-40GB", Policy { memory, ..PLAIN });
    // The device reports nothing in use, so all three are let in.
    let ids = world.submit_all([task().gib(30); 3]);
    assert!(ids.iter().all(|&id| world.runs(id)));
    assert_eq!(world.booked(0), gib(40));
    ids.into_iter().for_each(|id| world.finish(id));
    assert_eq!(world.booked(0), Bytes::ZERO);
}
