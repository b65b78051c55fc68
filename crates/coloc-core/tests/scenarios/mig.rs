//! MIG: instances of the board's sizes, at its legal places.

use crate::testkit::{World, gib, mib, task};
use coloc_core::policy::{Place, Queue};
use coloc_core::{Event, Policy, Refusal};
use coloc_model::mig::{Instance, Layout, MigTable};
use coloc_model::{GpuId, Share, TaskId};

const MIG: Policy = Policy::plain(Queue::BestEffort, Place::FirstFit, Share::Mig);

fn instance(world: &World, task: TaskId) -> Instance {
    world.placement(task).slots[0].instance.expect("a MIG instance")
}

#[test]
fn a_task_gets_the_smallest_instance_with_its_memory() {
    let cases = [(4, 1, 4864), (8, 1, 9856), (15, 3, 19_968), (30, 7, 40_192)];
    for (need, compute, memory) in cases {
        let mut world = World::new("1xA100-40GB", MIG);
        let id = world.submit(task().gib(need).sm(0.1));
        let got = instance(&world, id);
        assert_eq!((got.compute, got.memory), (compute, mib(memory)), "{need} GiB");
        assert_eq!(world.booked(0), mib(memory), "what an instance has, no other task gets");
    }
}

#[test]
fn a_busy_task_gets_enough_slices_where_there_are_any() {
    let mut world = World::new("1xA100-40GB", MIG);
    // 0.35 of a board are 37.8 SMs: three slices of 14.
    let first = world.submit(task().gib(4).sm(0.35));
    assert_eq!(instance(&world, first).compute, 3);
    let second = world.submit(task().gib(4).sm(0.35));
    assert_eq!(instance(&world, second).compute, 3);
    // One slice is left, but the two take all memory slices.
    let third = world.submit(task().gib(4).sm(0.35));
    assert!(world.waits(third));
}

#[test]
fn seven_small_ones_fit_and_an_eighth_does_not() {
    let mut world = World::new("1xA100-40GB", MIG);
    let ids = world.submit_all([task().gib(4).sm(0.1); 8]);
    let mut starts: Vec<u8> = ids[..7].iter().map(|&id| instance(&world, id).start).collect();
    starts.sort_unstable();
    assert_eq!(starts, [0, 1, 2, 3, 4, 5, 6]);
    let refusal = Refusal::NoInstance { need: gib(4), largest: gib(0) };
    assert_eq!(world.refusals(ids[7], 0), [refusal]);
    world.finish(ids[3]);
    assert!(world.runs(ids[7]));
}

#[test]
fn slots_matter_not_only_sums() {
    let mut world = World::new("1xA100-40GB", MIG);
    let [small, half] = world.submit_all([task().gib(4).sm(0.1), task().gib(15).sm(0.1)]);
    // The small one lies high, so the low half is free for a large one.
    assert_eq!((instance(&world, small).start, instance(&world, half).start), (6, 0));
    let other_half = world.submit(task().gib(15).sm(0.1));
    assert_eq!(
        world.refusals(other_half, 0),
        [Refusal::NoInstance { need: gib(15), largest: mib(9856) }]
    );
    world.finish(small);
    assert_eq!(instance(&world, other_half).start, 4);
}

#[test]
fn who_needs_all_of_a_board_gets_the_largest_instance() {
    let mut world = World::new("1xA100-40GB", MIG);
    let whole = world.submit(task().gib(40));
    assert_eq!(instance(&world, whole).memory, mib(40_192));
    let mut world = World::new("1xA100-40GB", MIG);
    world.submit(task().gib(4));
    let whole = world.submit(task().gib(40));
    assert!(world.waits(whole));
}

#[test]
fn a_task_that_must_be_alone_gets_a_whole_board() {
    for policy in
        [MIG, Policy { place: Place::Exclusive, ..MIG }, Policy { place: Place::Any, ..MIG }]
    {
        let mut world = World::new("1xA100-40GB", policy);
        let lone = world.submit(task().gib(30).exclusive());
        assert_eq!(instance(&world, lone).memory, mib(40_192), "{:?}", policy.place);
        let other = world.submit(task().gib(1));
        assert!(world.waits(other));
    }
}

#[test]
fn a_policy_of_empty_gpus_gives_whole_boards() {
    let policy = Policy { place: Place::Exclusive, ..MIG };
    let mut world = World::new("1xA100-40GB", policy);
    let id = world.submit(task().gib(30));
    assert_eq!(instance(&world, id).memory, mib(40_192));
}

#[test]
fn the_last_resort_is_a_whole_board() {
    let mut world = World::new("1xA100-40GB", MIG);
    let id = world.submit(task().gib(1).sm(0.1));
    for _ in 0..3 {
        world.oom(id, gib(5));
    }
    assert_eq!(instance(&world, id).memory, mib(40_192));
}

#[test]
fn slices_of_others_are_worked_around_and_come_back() {
    let mut world = World::new("1xA100-40GB", MIG);
    let gpu = GpuId(0);
    world.tell(Event::SlicesSeen { gpu, taken: Layout::of(3, 4, 4) });
    let [half, other_half] = world.submit_all([task().gib(15).sm(0.1); 2]);
    assert_eq!(instance(&world, half).start, 0);
    assert_eq!(
        world.refusals(other_half, 0),
        [Refusal::NoInstance { need: gib(15), largest: gib(0) }]
    );
    world.tell(Event::SlicesSeen { gpu, taken: Layout::default() });
    assert_eq!(instance(&world, other_half).start, 4);
}

#[test]
fn a_gpu_that_cannot_be_partitioned_now_takes_nobody_however_little_is_known_of_them() {
    let mut world = World::new("1xA100-40GB", MIG);
    let full = Layout::full(&MigTable::A100_40);
    world.tell(Event::SlicesSeen { gpu: GpuId(0), taken: full });
    let [unknown, alone] = world.submit_all([task(), task().exclusive()]);
    assert!(world.waits(unknown) && world.waits(alone));
    world.tell(Event::SlicesSeen { gpu: GpuId(0), taken: Layout::default() });
    assert!(world.runs(unknown));
}
