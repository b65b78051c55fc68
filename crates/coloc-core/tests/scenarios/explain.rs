//! Why is my task waiting? Every GPU, every rule that fails, and by how much.

use crate::testkit::{World, exclusive, gib, mps, secs, task};
use coloc_core::policy::{Gate, Place, Queue};
use coloc_core::preset::MemoryKnowledge;
use coloc_core::screen::Measure;
use coloc_core::{Policy, Preset, Refusal};
use coloc_model::{GpuId, TaskState, UserId};

const PLAIN: Policy = mps(Queue::BestEffort, Place::FirstFit);

#[test]
fn every_rule_that_fails_is_named_with_its_amount() {
    let policy = Policy {
        gate: Gate::Expected { limit: 1.0 },
        settle: Some(secs(30)),
        max_tasks: Some(1),
        same_user: true,
        ..PLAIN
    };
    let mut world = World::new("1xA100-40GB", policy);
    world.submit(task().user(1).gib(30).sm(0.9));
    let waiting = world.submit(task().user(2).gib(20).sm(0.3));
    world.advance(secs(10));
    let refusals = [
        Refusal::Settling { left: secs(20) },
        Refusal::Crowded { limit: 1 },
        Refusal::OtherUser { user: UserId(1) },
        Refusal::Memory { need: gib(20), available: gib(10) },
        Refusal::Busy { measure: Measure::ExpectedWithTask, value: 1.2, limit: 1.0 },
    ];
    assert_eq!(world.refusals(waiting, 0), refusals);
    let words = refusals.map(|refusal| refusal.to_string());
    assert_eq!(
        words,
        [
            "settling after a launch for 20.0 s more",
            "has 1 tasks, the most allowed",
            "in use by user 1",
            "needs 20.0 GiB, 10.0 GiB available: 10.0 GiB short",
            "expected SM demand with this task 1.20 with a limit of 1.00",
        ]
    );
}

#[test]
fn gpus_answer_one_by_one() {
    let fillers = [30, 36, 10].map(|gib| task().gib(gib));
    let mut world = World::filled(PLAIN, fillers);
    let gang = world.submit(task().gpus(2).gib(20));
    let explained = world.scheduler.explain(world.now, gang).expect("it waits");
    assert_eq!((explained.willing(), explained.gpus, explained.need), (1, 2, gib(20)));
    let short: Vec<_> = explained
        .verdicts
        .iter()
        .map(|verdict| verdict.refusals.first().and_then(Refusal::short_of))
        .collect();
    assert_eq!(short, [Some(gib(10)), Some(gib(16)), None]);
}

#[test]
fn who_is_ahead_is_counted() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Fifo));
    let [running, first, second] = world.submit_all([task(), task(), task()]);
    let ahead = |world: &World, id| world.scheduler.explain(world.now, id).map(|e| e.ahead);
    assert_eq!(ahead(&world, running), None, "it does not wait");
    assert_eq!(ahead(&world, first), Some(0));
    assert_eq!(ahead(&world, second), Some(1));
    world.cancel(second);
    assert_eq!(ahead(&world, second), None, "it is gone");
}

#[test]
fn by_rank_whoever_goes_first_is_ahead_not_whoever_came_first() {
    let mut world = World::new("1xA100-40GB", exclusive(Queue::Srtf));
    let [_, longer, shorter] = world.submit_all([10, 30, 20].map(|secs| task().secs(secs)));
    let ahead = |id| world.scheduler.explain(world.now, id).map(|explained| explained.ahead);
    assert_eq!((ahead(longer), ahead(shorter)), (Some(1), Some(0)));
    assert_eq!(world.scheduler.waiting().collect::<Vec<_>>(), [shorter, longer]);
}

#[test]
fn a_recovered_task_is_ahead_of_the_main_queue() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    let [victim, _] = world.submit_all([task().gib(10), task().gib(30)]);
    let waiting = world.submit(task().gib(30));
    world.oom(victim, gib(20));
    let explain = |id| world.scheduler.explain(world.now, id).expect("it waits");
    assert_eq!((explain(victim).ahead, explain(victim).state), (0, TaskState::Recovering));
    assert_eq!((explain(waiting).ahead, explain(waiting).state), (1, TaskState::Pending));
    assert_eq!(explain(victim).need, gib(22), "what it will be given");
}

#[test]
fn a_pass_keeps_counts() {
    let mut world = World::new("3xA100-40GB", Policy { max_tasks: Some(1), ..PLAIN });
    world.submit_all([task().gib(1); 3]);
    assert_eq!(world.scheduler.last_pass().started, 1);
    world.submit(task().gib(1));
    let pass = world.scheduler.last_pass();
    let crowded = Refusal::Crowded { limit: 1 };
    // In the order of the variants, `Crowded` is the fifth.
    assert_eq!(
        (pass.started, pass.refused),
        (0, [0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    );
    assert_eq!(pass.nearest_miss, Some((GpuId(0), crowded)));
}

#[test]
fn memory_is_no_reason_where_idle_gpus_are_taken_blindly() {
    let carma = Preset::CarmaV2.policy(MemoryKnowledge::Estimate);
    let mut world = World::new("2xA100-40GB", carma);
    // The head wants two GPUs, one is idle. The task behind it would start there at once.
    let [_, head, behind] =
        world.submit_all([task().gib(39), task().gpus(2).gib(39), task().gib(40)]);
    world.advance(secs(60));
    assert!(world.waits(head) && world.waits(behind));
    assert_eq!(world.refusals(behind, 1), []);
    let refusals = world.refusals(head, 1);
    assert!(matches!(refusals[..], [Refusal::Memory { .. }]), "{refusals:?}");
}

#[test]
fn a_pass_keeps_the_nearest_miss() {
    let tasks = [30, 36, 25].map(|size| task().gib(size));
    let mut world = World::filled(mps(Queue::Fifo, Place::FirstFit), tasks);
    world.submit(task().gib(20));
    let miss = Refusal::Memory { need: gib(20), available: gib(15) };
    assert_eq!(world.scheduler.last_pass().nearest_miss, Some((GpuId(2), miss)));
}
