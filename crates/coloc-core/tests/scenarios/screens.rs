//! Which GPUs may take a task: one rule, one test.

use crate::testkit::{World, at, gib, mib, mps, secs, share, task};
use coloc_core::policy::{Gate, Knowledge, MemoryBasis, Place, Queue};
use coloc_core::screen::Measure;
use coloc_core::{Event, Policy, Refusal};
use coloc_model::{GpuId, Millis, Share, Task, TaskId, UserId};

const PLAIN: Policy = mps(Queue::BestEffort, Place::FirstFit);

/// A policy's only GPU with a task on it, and a second task.
fn second_beside_first(policy: Policy) -> (World, TaskId) {
    let mut world = World::new("1xA100-40GB", policy);
    world.submit(task().gib(10));
    let second = world.submit(task().gib(10));
    (world, second)
}

#[test]
fn the_ledger_counts_what_was_promised_not_what_is_used() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    world.submit(task().gib(30));
    world.observe_gpu(0, 0.1, gib(1));
    let second = world.submit(task().gib(11));
    let refusal = Refusal::Memory { need: gib(11), available: gib(10) };
    assert_eq!(world.refusals(second, 0), [refusal]);
    assert_eq!(refusal.short_of(), Some(gib(1)));
    let exact = world.submit(task().gib(10));
    assert!(world.runs(exact));
}

#[test]
fn a_task_runs_on_the_models_that_it_names_and_on_no_other() {
    for queue in [Queue::BestEffort, Queue::Fifo, Queue::Backfill, Queue::Srsf] {
        for place in [Place::FirstFit, Place::Exclusive, Place::Consolidate] {
            let policy = Policy::plain(queue, place, Share::Exclusive);
            let mut world = World::new("1xV100-32GB,1xA100-40GB", policy);
            let first = world.submit(task().kind(1).gib(1).on(&["A100-40GB"]));
            let waits = world.submit(task().kind(1).gib(1).on(&["A100-40GB", "T4-16GB"]));
            assert_eq!((world.gpus(first), world.runs(waits)), (vec![1], false));
            assert!(world.refusals(waits, 0).contains(&Refusal::Kind), "{queue:?} {place:?}");
            // One of the same kind that may run elsewhere is not held up by it, unless it has to wait its turn.
            if queue == Queue::BestEffort {
                let third = world.submit(task().kind(1).gib(1).on(&["V100-32GB"]));
                assert_eq!(world.gpus(third), [0], "{place:?}");
            }
            world.finish(first);
            assert_eq!(world.gpus(waits), [1], "{queue:?} {place:?}");
        }
    }
}

#[test]
fn a_task_that_names_models_that_are_not_there_is_refused() {
    let world = World::new("2xV100-32GB,1xA100-40GB", PLAIN);
    let refused = |task: Task| world.scheduler.check(&task).map_err(|error| error.to_string());
    assert_eq!(refused(task().gpus(2).on(&["V100-32GB"]).build(0)), Ok(()));
    let why = "task 0 needs 2 GPUs of kinds that it runs on, it can have at most 1; add GPUs of another kind";
    assert_eq!(refused(task().gpus(2).on(&["A100-40GB"]).build(0)), Err(why.to_owned()));
    assert!(refused(task().on(&["T4-16GB"]).build(0)).is_err());
    assert!(refused(task().on(&[]).build(0)).is_err());
}

#[test]
fn a_task_asks_for_no_more_than_the_models_that_it_names_have() {
    // One of its kind held more than they have, on another model.
    let policy =
        Policy { learn: true, ..Policy::plain(Queue::Fifo, Place::FirstFit, Share::Exclusive) };
    let mut world = World::new("1xV100-32GB,1xA100-40GB", policy);
    let large = world.submit(task().kind(1).gib(20).on(&["A100-40GB"]));
    let small = world.submit(task().kind(1).gib(20).on(&["V100-32GB"]));
    let behind = world.submit(task().kind(1).gib(20).on(&["V100-32GB"]));
    world.oom(large, gib(38));
    world.finish(small);
    assert_eq!(
        world.gpus(behind),
        [0],
        "it is tried with what there is, and keeps no other task waiting"
    );
}

#[test]
fn a_client_more_than_mps_takes_waits_for_one_to_go() {
    for (fleet, limit) in [("1xA100-40GB", 48), ("1xP100-16GB", 16)] {
        let mut world = World::new(fleet, PLAIN);
        let first = world.submit(task().mib(100));
        for _ in 1..limit {
            let next = world.submit(task().mib(100));
            assert!(world.runs(next));
        }
        let last = world.submit(task().mib(100));
        let full = Refusal::MpsClients { clients: limit, limit };
        assert_eq!(world.refusals(last, 0), [full]);
        world.finish(first);
        assert!(world.runs(last));
    }
    // Every process counts, whosesoever it is; streams take as many as there is memory for.
    let mut world = World::new("1xA100-40GB", PLAIN);
    world.tell(Event::ClientsSeen { gpu: GpuId(0), beside: 60, limit: 60 });
    let waits = world.submit(task().gib(1));
    assert_eq!(world.refusals(waits, 0), [Refusal::MpsClients { clients: 60, limit: 60 }]);
    world.tell(Event::ClientsSeen { gpu: GpuId(0), beside: 59, limit: 60 });
    assert!(world.runs(waits));
    let mut streams = World::new("1xA100-40GB", Policy { share: Share::Streams, ..PLAIN });
    streams.tell(Event::ClientsSeen { gpu: GpuId(0), beside: 60, limit: 60 });
    let runs = streams.submit(task().gib(1));
    assert!(streams.runs(runs));
}

#[test]
fn reported_memory_does_not_see_what_a_young_task_will_take() {
    let memory = MemoryBasis::Reported { reserve: mib(512) };
    let mut world = World::new("1xA100-40GB", Policy { memory, ..PLAIN });
    world.submit(task().gib(30));
    world.observe_gpu(0, 0.1, gib(1));
    let second = world.submit(task().gib(30));
    assert!(world.runs(second), "39 GiB look free");
    world.observe_gpu(0, 0.1, gib(30));
    let third = world.submit(task().gib(10));
    let available = mib(10 * 1024 - 512);
    assert_eq!(world.refusals(third, 0), [Refusal::Memory { need: gib(10), available }]);
}

#[test]
fn a_margin_is_added_to_estimates() {
    let knowledge = Knowledge::Estimated { margin: gib(2) };
    let mut world = World::new("1xA100-40GB", Policy { knowledge, ..PLAIN });
    world.submit(task().gib(20));
    assert_eq!(world.booked(0), gib(22));
    let [wide, narrow] = world.submit_all([task().gib(17), task().gib(16)]);
    assert_eq!(
        world.refusals(wide, 0)[0],
        Refusal::Memory { need: gib(19), available: Default::default() },
        "the narrow one took the rest"
    );
    assert!(world.runs(narrow));
}

#[test]
fn without_knowledge_some_memory_must_be_free() {
    let knowledge = Knowledge::Unknown { min_free: gib(15) };
    let mut world = World::new("1xA100-40GB", Policy { knowledge, ..PLAIN });
    // The estimate is there, but the policy must not look at it.
    let [a, b, c] = world.submit_all([task().gib(1); 3]);
    assert!(world.runs(a) && world.runs(b));
    let refusal = Refusal::Memory { need: gib(15), available: gib(10) };
    assert_eq!(world.refusals(c, 0), [refusal]);
}

#[test]
fn nobody_asks_for_more_than_the_largest_gpu() {
    let mut world = World::new("1xA100-40GB", PLAIN);
    let [giant, other] = world.submit_all([task().gib(100), task().gib(1)]);
    assert!(world.runs(giant) && world.waits(other), "it asks for a whole device");
}

#[test]
fn the_first_gate_reads_the_mean_of_the_last_full_window() {
    let gate = Gate::TumblingMean { limit: share(0.8), window: secs(90) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.observe_gpu(0, 0.9, gib(0));
    world.advance(secs(100));
    let task_in_second_window = world.submit(task().gib(1));
    let busy = Refusal::Busy { measure: Measure::MeanSm, value: 0.9, limit: 0.8 };
    assert_eq!(world.refusals(task_in_second_window, 0), [busy]);
    // It calms down at once, but the decision keeps reading the old window until the next is full.
    world.observe_gpu(0, 0.0, gib(0));
    world.advance(secs(79));
    assert!(world.waits(task_in_second_window));
    world.advance(secs(1));
    assert!(world.runs(task_in_second_window), "mean of 90..180 s is 0.1");
    assert_eq!(world.now, at(180));
}

#[test]
fn a_mean_at_the_limit_passes() {
    let gate = Gate::TumblingMean { limit: share(0.5), window: secs(90) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.observe_gpu(0, 0.5, gib(0));
    world.advance(secs(90));
    let id = world.submit(task().gib(1));
    assert!(world.runs(id));
}

/// Whether a GPU that has shown this for a minute takes another task.
fn passes_risk_gate(sm: f64, occupancy_limit: f64, dram_limit: f64) -> bool {
    let gate =
        Gate::Risk { sm: share(0.8), occupancy: share(occupancy_limit), dram: share(dram_limit) };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.observe_gpu(0, sm, gib(0));
    world.advance(secs(60));
    let id = world.submit(task().gib(1));
    world.runs(id)
}

#[test]
fn the_second_gate_needs_sm_and_either_of_the_others() {
    // Occupancy is half of the SM activity, DRAM a quarter.
    assert!(!passes_risk_gate(0.8, 0.40, 0.9), "SM and occupancy at their limits");
    assert!(!passes_risk_gate(0.8, 0.90, 0.2), "SM and DRAM at their limits");
    assert!(passes_risk_gate(0.8, 0.41, 0.21), "SM alone");
    assert!(passes_risk_gate(0.79, 0.1, 0.1), "SM below its limit");
}

#[test]
fn the_expected_gate_closes_a_gpu_that_would_be_too_full() {
    let gate = Gate::Expected { limit: 1.2 };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.submit(task().gib(1).sm(0.5));
    let too_much = world.submit(task().gib(1).sm(0.75));
    let value = Refusal::Busy { measure: Measure::ExpectedWithTask, value: 1.25, limit: 1.2 };
    assert_eq!(world.refusals(too_much, 0), [value]);
    let fits = world.submit(task().gib(1).sm(0.5));
    assert!(world.runs(fits));
    let calm = world.submit(task().gib(1).sm(0.2));
    assert!(world.runs(calm), "the limit is the only rule");
}

#[test]
fn the_expected_gate_reads_the_device_too() {
    let gate = Gate::Expected { limit: 1.2 };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    world.submit(task().gib(1).sm(0.3));
    // A foreign process computes there, or the task asks for more than was believed.
    world.advance(secs(1));
    world.observe_gpu(0, 0.9, gib(1));
    world.advance(secs(120));
    world.observe_gpu(0, 0.9, gib(1));
    let newcomer = world.submit(task().gib(1).sm(0.5));
    let value = Refusal::Busy { measure: Measure::ExpectedWithTask, value: 1.4, limit: 1.2 };
    assert_eq!(world.refusals(newcomer, 0), [value]);
}

#[test]
fn an_empty_gpu_is_never_too_full() {
    let gate = Gate::Expected { limit: 0.2 };
    let mut world = World::new("1xA100-40GB", Policy { gate, ..PLAIN });
    let id = world.submit(task().gib(1).sm(0.9));
    assert!(world.runs(id));
}

#[test]
fn a_gpu_settles_after_a_launch() {
    let settle = Some(secs(30));
    let (mut world, second) = second_beside_first(Policy { settle, ..PLAIN });
    assert_eq!(world.refusals(second, 0), [Refusal::Settling { left: secs(30) }]);
    world.advance(Millis(29_999));
    assert_eq!(world.refusals(second, 0), [Refusal::Settling { left: Millis(1) }]);
    world.advance(Millis(1));
    assert!(world.runs(second));
}

#[test]
fn a_gpu_that_emptied_has_nothing_left_to_settle() {
    let settle = Some(secs(30));
    let mut world = World::new("1xA100-40GB", Policy { settle, ..PLAIN });
    let [first, second] = world.submit_all([task().gib(10), task().gib(10)]);
    world.advance(secs(5));
    world.finish(first);
    assert!(world.runs(second));
}

#[test]
fn a_gpu_has_settled_when_its_youngest_task_is_gone() {
    let settle = Some(secs(30));
    let mut world = World::new("1xA100-40GB", Policy { settle, ..PLAIN });
    let old = world.submit(task().gib(1));
    world.advance(secs(100));
    let young = world.submit(task().gib(1));
    world.advance(secs(5));
    world.finish(old);
    let next = world.submit(task().gib(1));
    assert_eq!(world.refusals(next, 0), [Refusal::Settling { left: secs(25) }]);
    world.finish(young);
    assert!(world.runs(next));
}

#[test]
fn so_many_tasks_and_no_more() {
    let max_tasks = Some(2);
    let mut world = World::new("1xA100-40GB", Policy { max_tasks, ..PLAIN });
    let [first, second, third] = world.submit_all([task().gib(1); 3]);
    assert!(world.runs(second));
    assert_eq!(world.refusals(third, 0), [Refusal::Crowded { limit: 2 }]);
    world.finish(first);
    assert!(world.runs(third));
}

#[test]
fn users_do_not_mix_where_they_must_not() {
    let mut world = World::new("1xA100-40GB", Policy { same_user: true, ..PLAIN });
    let mine = task().kind(1).gib(1).user(1);
    let [first, other, again] = world.submit_all([mine, mine.user(2), mine]);
    assert!(world.runs(again), "a refusal of one user does not block another");
    assert_eq!(world.refusals(other, 0), [Refusal::OtherUser { user: UserId(1) }]);
    world.finish(first);
    assert!(world.waits(other));
    world.finish(again);
    assert!(world.runs(other));
}

#[test]
fn an_exclusive_task_wants_an_empty_gpu_and_keeps_it() {
    let mut world = World::new("2xA100-40GB", PLAIN);
    let [_, lone, third] =
        world.submit_all([task().gib(1), task().gib(1).exclusive(), task().gib(1)]);
    assert_eq!(world.gpus(lone), [1]);
    assert_eq!(world.gpus(third), [0]);
    let second_lone = world.submit(task().exclusive());
    assert_eq!(world.refusals(second_lone, 0), [Refusal::Occupied { tasks: 2 }]);
    assert_eq!(
        world.refusals(second_lone, 1)[0],
        Refusal::HeldAlone { holder: lone, until_settled: false }
    );
    let large = world.submit(task().gib(39));
    assert_eq!(
        world.refusals(large, 1)[0],
        Refusal::HeldAlone { holder: lone, until_settled: false }
    );
}
