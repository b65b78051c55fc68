//! A task that needs an empty GPU is not overtaken for ever.

use super::CONTRACT;
use crate::testkit::{World, secs, task};
use coloc_core::Refusal;

#[test]
fn a_gpu_is_emptied_for_the_unknown_after_some_were_started_before_it() {
    let mut world = World::new("1xA100-40GB", CONTRACT);
    let mut running = vec![world.submit(task().declares(20))];
    let unknown = world.submit(task());
    assert!(world.waits(unknown));
    for round in 0..40 {
        let next = world.submit(task().declares(20));
        if !world.runs(next) {
            let kept = Refusal::Reserved { reserved_for: unknown };
            assert!(world.refusals(next, 0).contains(&kept), "round {round}");
            running.into_iter().for_each(|id| world.finish(id));
            assert!(world.runs(unknown));
            return;
        }
        world.advance(secs(10));
        world.finish(running.remove(0));
        running.push(next);
    }
    panic!("it was overtaken 40 times");
}

#[test]
fn who_learns_of_its_kind_meanwhile_needs_no_empty_gpu() {
    let mut world = World::new("2xA100-40GB", CONTRACT);
    let [first, filler] = world.submit_all([task().kind(1), task().declares(30)]);
    let sibling = world.submit(task().kind(1));
    assert!(world.waits(sibling) && world.runs(filler));
    world.trains(first, crate::testkit::gib(5));
    assert!(world.runs(sibling));
}
