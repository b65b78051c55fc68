//! What runs teach of their kind.

use super::CONTRACT;
use crate::testkit::{World, gib, secs, task};
use coloc_model::{Basis, SignatureId};

const KIND: SignatureId = SignatureId(1);

#[test]
fn the_first_of_a_kind_runs_alone_and_its_siblings_use_what_it_showed() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let array: Vec<_> = (0..3).map(|_| world.submit(task().kind(1))).collect();
    assert!(world.runs(array[0]) && world.waits(array[1]));
    let told = world.scheduler.explain(world.now, array[1]).expect("it waits");
    assert_eq!((told.basis, told.awaits), (Basis::Unknown, Some(array[0])));
    world.trains(array[0], gib(4));
    assert!(world.runs(array[1]) && world.runs(array[2]), "as soon as it has settled");
    let promised = world.scheduler.promised(array[1]).expect("it runs");
    assert_eq!((promised.basis, promised.bytes), (Basis::History, gib(4).scale(1.03)));
}

#[test]
fn how_long_a_kind_loads_is_learned_once_a_run() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().kind(1));
    world.observe_at_work(id, gib(1), 0.0);
    world.advance(secs(300));
    assert_eq!(world.scheduler.beliefs().warm_up(KIND), None, "it has not settled");
    world.trains(id, gib(4));
    assert_eq!(world.scheduler.beliefs().warm_up(KIND), Some(secs(300)));
    // It grows late and settles again: that is no warm-up.
    world.trains(id, gib(9));
    assert_eq!(world.scheduler.beliefs().warm_up(KIND), Some(secs(300)));
}

#[test]
fn siblings_that_run_alone_get_company_too() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let [first, second] = world.submit_all([task().kind(1), task().kind(1)]);
    world.observe(second, gib(1));
    world.trains(first, gib(4));
    assert_eq!(world.booked(1), gib(4).scale(1.03), "what is known of one is known of the other");
    let other = world.submit(task().declares(38));
    assert!(world.waits(other));
    let other = world.submit(task().declares(35));
    assert!(world.runs(other));
}

#[test]
fn only_runs_that_settled_or_completed_teach() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    for round in 0..3 {
        let id = world.submit(task().kind(1).gib(20));
        world.observe_at_work(id, gib(1), 0.5);
        world.advance(secs(5));
        match round {
            0 => world.fail(id),
            1 => {
                world.oom(id, gib(39));
                world.cancel(id);
                world.stopped(id);
            }
            _ => {
                world.cancel(id);
                world.stopped(id);
            }
        }
        assert_eq!(world.scheduler.beliefs().peak(KIND), None, "round {round}");
    }
    let id = world.submit(task().kind(1).gib(20));
    world.observe(id, gib(1));
    world.finish(id);
    assert_eq!(world.scheduler.beliefs().peak(KIND).map(|seen| seen.exact), Some(gib(1)));
}

#[test]
fn a_run_that_failed_after_it_had_settled_teaches() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let id = world.submit(task().kind(1).gib(20));
    world.trains(id, gib(3));
    world.fail(id);
    assert_eq!(world.scheduler.beliefs().peak(KIND).map(|seen| seen.exact), Some(gib(3)));
}

#[test]
fn a_peak_that_was_wrong_falls_again() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    for round in 0..10 {
        let id = world.submit(task().kind(1));
        world.observe(id, if round == 0 { gib(30) } else { gib(2) });
        world.finish(id);
    }
    assert_eq!(world.scheduler.beliefs().peak(KIND).map(|seen| seen.exact), Some(gib(2)));
}
