//! Multi-GPU tasks get all of their GPUs at once, on one node unless the policy only counts.

use crate::testkit::{World, exclusive, mps, task};
use coloc_core::Policy;
use coloc_core::policy::{Place, Queue};
use coloc_model::Share;

#[test]
fn a_gang_waits_until_one_node_has_room_for_all_of_it() {
    let mut world = World::new("2x2xA100-40GB", exclusive(Queue::BestEffort));
    let [a, b, c] = world.submit_all([task(), task(), task()]);
    world.finish(b);
    let gang = world.submit(task().gpus(2));
    assert!(world.waits(gang), "GPUs 1 and 3 are free, on two nodes");
    world.finish(c);
    assert_eq!(world.gpus(gang), [2, 3]);
    assert!(world.runs(a));
}

#[test]
fn any_takes_free_gpus_of_any_node() {
    let policy = Policy::plain(Queue::Fifo, Place::Any, Share::Exclusive);
    let mut world = World::new("2x2xA100-40GB", policy);
    let [_, b, _] = world.submit_all([task(), task(), task()]);
    world.finish(b);
    let gang = world.submit(task().gpus(2));
    assert_eq!(world.gpus(gang), [1, 3]);
    let [wide, too_wide] = world.submit_all([task().gpus(4), task().gpus(5)]);
    assert!(world.waits(wide));
    assert!(!world.waits(too_wide));
}

#[test]
fn a_gang_needs_its_memory_on_each_gpu() {
    let mut world = World::filled(
        mps(Queue::BestEffort, Place::FirstFit),
        [task().gib(35), task().gib(20), task().gib(10)],
    );
    let [fits, does_not] = world.submit_all([task().gpus(2).gib(15), task().gpus(2).gib(16)]);
    assert_eq!(world.gpus(fits), [1, 2]);
    assert!(world.waits(does_not));
}

#[test]
fn each_gpu_of_a_gang_is_booked_and_returned() {
    let mut world = World::new("4xA100-40GB", mps(Queue::Fifo, Place::FirstFit));
    let gang = world.submit(task().gpus(3).gib(10));
    let booked = |world: &World| [0, 1, 2, 3].map(|gpu| world.booked(gpu).gib());
    assert_eq!(booked(&world), [10.0, 10.0, 10.0, 0.0]);
    world.finish(gang);
    assert_eq!(booked(&world), [0.0; 4]);
}

#[test]
fn the_best_node_is_the_one_whose_worst_gpu_is_best() {
    // Free GiB per GPU: node 0 has 30 and 5, node 1 has 20 and 15, node 2 has 12 and 12.
    let fillers = [10, 35, 20, 25, 28, 28].map(|gib| task().gib(gib));
    let newcomer = task().gpus(2).gib(4);
    for (place, expected) in
        [(Place::Magm, [2, 3]), (Place::FirstFit, [0, 1]), (Place::BestFit, [4, 5])]
    {
        let policy = mps(Queue::Fifo, place);
        let mut world = World::filled_nodes("3x2xA100-40GB", policy, fillers);
        let gang = world.submit(newcomer);
        let mut gpus = world.gpus(gang);
        gpus.sort_unstable();
        assert_eq!(gpus, expected, "{place:?}");
    }
}

#[test]
fn a_gang_that_was_refused_may_join_an_improved_gpu_with_others_of_its_node() {
    let policy = mps(Queue::BestEffort, Place::FirstFit);
    let fillers = [1, 10, 30, 30].map(|gib| task().gib(gib));
    let mut world = World::filled_nodes("2x2xA100-40GB", policy, fillers);
    let blocker = world.submit(task().gib(39));
    let [gang, wider] = world.submit_all([task().gpus(2).gib(20), task().gpus(2).gib(35)]);
    assert!(world.waits(gang) && world.waits(wider));
    world.finish(blocker);
    assert_eq!(world.gpus(gang), [0, 1]);
    assert!(world.waits(wider));
}

#[test]
fn a_wide_gang_takes_a_whole_large_node() {
    // More GPUs than the index ranks one by one.
    let mut world = World::new("2x12xA100-40GB", mps(Queue::BestEffort, Place::Magm));
    let blocker = world.submit(task().gib(35));
    let [wide, second] = world.submit_all([task().gpus(12).gib(25); 2]);
    assert_eq!(world.gpus(blocker), [0]);
    assert_eq!(world.gpus(wide), Vec::from_iter(12..24));
    assert!(world.waits(second), "GPU 0 has 5 GiB left, those of the second node 15 each");
    world.finish(blocker);
    assert_eq!(world.gpus(second), Vec::from_iter(0..12));
}

#[test]
fn a_gang_asks_for_no_more_than_a_node_of_its_size_has() {
    for place in [Place::Magm, Place::Any] {
        let mut world = World::new("2xT4-16GB,1xA100-40GB", mps(Queue::Fifo, place));
        let gang = world.submit(task().gpus(2).gib(40));
        assert!(world.runs(gang), "{place:?}: a sentinel of an estimate must not wait for ever");
    }
}
