//! What counts as evidence that a task has settled, and for which task.

use super::{CONTRACT, LONG};
use crate::testkit::{World, gib, secs, task};
use coloc_core::Event;
use coloc_core::policy::{Place, Queue};
use coloc_core::{Policy, SettlingCounts};
use coloc_model::{Bytes, GpuId};

fn after(world: &mut World, span: u64) -> Bytes {
    world.advance(secs(span));
    world.booked(0)
}

#[test]
fn activity_of_a_gpu_is_that_of_the_only_task_on_it() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().at_most(30));
    world.observe(id, gib(4));
    world.observe_gpu(0, 0.0, gib(4));
    assert_eq!(after(&mut world, LONG), gib(30), "it loads");
    world.observe_gpu(0, 0.6, gib(4));
    assert_eq!(after(&mut world, LONG), gib(4).scale(1.05));
}

#[test]
fn activity_that_may_be_a_neighbours_is_no_evidence() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let [id, neighbour] = world.submit_all([task().at_most(20), task().at_most(20)]);
    world.observe(id, gib(2));
    world.observe(neighbour, gib(2));
    world.observe_gpu(0, 0.9, gib(4));
    assert_eq!(after(&mut world, 3600), gib(40));
    // Per process it can be told.
    world.observe_at_work(id, gib(2), 0.3);
    assert_eq!(after(&mut world, LONG), gib(2).scale(1.05) + gib(20));
    // And of the one that is left alone.
    world.finish(id);
    world.observe_gpu(0, 0.5, gib(2));
    assert_eq!(after(&mut world, LONG), gib(2).scale(1.05));
}

#[test]
fn a_stranger_on_the_gpu_may_be_the_busy_one() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    world.tell(Event::ForeignSeen { gpu: GpuId(0), used: Bytes::from_mib(600) });
    let id = world.submit(task().at_most(30));
    world.observe(id, gib(4));
    world.observe_gpu(0, 0.9, gib(5));
    assert_eq!(after(&mut world, 3600), gib(30));
}

#[test]
fn progress_in_the_log_is_evidence() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let [id, neighbour] = world.submit_all([task().at_most(20), task().at_most(20)]);
    world.observe(id, gib(2));
    for _ in 0..60 {
        world.advance(secs(10));
        world.tell(Event::Progressed(id));
    }
    world.tell(Event::Wake);
    assert_eq!(world.booked(0), gib(2).scale(1.05) + gib(20));
    assert!(world.runs(neighbour));
}

#[test]
fn memory_that_still_grows_is_no_plateau() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().at_most(30));
    for step in 1..=10 {
        world.observe_at_work(id, gib(step), 0.5);
        world.advance(secs(25));
        assert_eq!(world.booked(0), gib(30), "at {step} GiB");
    }
    assert_eq!(after(&mut world, LONG), gib(10).scale(1.05));
}

#[test]
fn a_gang_settles_when_its_largest_member_has() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let gang = world.submit(task().gpus(2).at_most(30));
    // What is seen of a gang is the most that it holds on any of its GPUs.
    world.observe(gang, gib(8));
    world.observe_gpu(0, 0.5, gib(8));
    world.observe_gpu(1, 0.0, gib(1));
    world.advance(secs(LONG));
    assert_eq!((world.booked(0), world.booked(1)), (gib(30), gib(30)), "one of them waits");
    world.observe_gpu(1, 0.5, gib(1));
    world.advance(secs(LONG));
    let enough = gib(8).scale(1.05);
    assert_eq!((world.booked(0), world.booked(1)), (enough, enough));
}

#[test]
fn who_outgrows_what_was_left_gets_what_there_is_and_is_counted() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let grower = world.submit(task().kind(1).at_most(30));
    world.trains(grower, gib(10));
    let neighbour = world.submit(task().declares(25));
    assert!(world.runs(neighbour));
    world.observe_at_work(grower, gib(14), 0.5);
    assert_eq!(world.booked(0), gib(40), "the bound holds again, as far as there is room");
    let counts = world.scheduler.settling();
    assert_eq!(counts, SettlingCounts { settled: 1, outgrown: 1, ..counts });
    world.observe_at_work(grower, gib(20), 0.5);
    assert_eq!(world.booked(0), gib(40), "the neighbour keeps what it was promised");
    // Such tasks grow: the next one keeps more.
    world.finish(neighbour);
    world.finish(grower);
    let growth = world.scheduler.beliefs().late_growth(coloc_model::SignatureId(1));
    assert!(growth > 0.39, "{growth}");
}

#[test]
fn who_outgrew_what_was_left_settles_again() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let grower = world.submit(task().at_most(30));
    world.trains(grower, gib(10));
    world.observe_at_work(grower, gib(14), 0.5);
    assert_eq!(world.booked(0), gib(30));
    // Nothing is seen of it any more but that it goes on.
    assert_eq!(after(&mut world, LONG), gib(14).scale(1.4), "and its kind grows by two fifths");
}

#[test]
fn preemption_starts_the_evidence_anew() {
    let policy = Policy { queue: Queue::Srtf, place: Place::FirstFit, ..CONTRACT };
    let mut world = World::new("1xA100-40GB", policy);
    let long = world.submit(task().at_most(30).secs(100_000));
    world.trains(long, gib(2));
    assert_eq!(world.booked(0), gib(2).scale(1.05));
    let short = world.submit(task().gib(39).secs(10));
    assert!(world.runs(short) && !world.runs(long));
    world.finish(short);
    assert!(world.runs(long));
    let promised = world.scheduler.promised(long).expect("it runs");
    assert_eq!((promised.settled, promised.bytes), (false, gib(2).scale(1.03)), "its own history");
}

#[test]
fn a_preempted_task_of_which_nothing_is_known_awaits_nothing() {
    let policy = Policy { queue: Queue::Srtf, place: Place::FirstFit, ..CONTRACT };
    let mut world = World::new("1xA100-40GB", policy);
    let long = world.submit(task().kind(1).secs(100_000));
    let of_its_kind = world.submit(task().kind(1).secs(100_000));
    assert_eq!(world.scheduler.awaits(of_its_kind), Some(long), "it runs alone");
    let short = world.submit(task().kind(9).gib(39).secs(10));
    assert!(world.runs(short) && world.waits(long));
    assert_eq!([long, of_its_kind].map(|task| world.scheduler.awaits(task)), [None, None]);
}

#[test]
fn what_a_monitor_cannot_see_is_no_evidence() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task());
    world.observe_at_work(id, gib(6), 0.5);
    world.tell(Event::GpuUnseen(GpuId(0)));
    assert_eq!(after(&mut world, LONG), gib(40), "the last sighting counts for nothing by now");
    world.observe_at_work(id, gib(6), 0.5);
    assert_eq!(after(&mut world, LONG), gib(6).scale(1.1));
}
