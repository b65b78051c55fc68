//! Bringing back tasks that ran out of memory.

use crate::testkit::{Restart, World, gib, mib, mps, share, task};
use coloc_core::policy::{OnOom, Place, Queue, Recovery};
use coloc_core::{Policy, Refusal};
use coloc_model::{Share, TaskState};

const PLAIN: Policy = mps(Queue::BestEffort, Place::FirstFit);

const fn recovering(on_oom: OnOom, retries: u32, stops_others: bool) -> Policy {
    Policy { recovery: Recovery { on_oom, retries, stops_others }, ..PLAIN }
}

const GROW: Policy = recovering(OnOom::Grow { margin: share(0.1) }, 3, false);

#[test]
fn a_task_may_be_left_to_fail() {
    let mut world = World::new("1xA100-40GB", recovering(OnOom::Fail, 3, false));
    let id = world.submit(task().gib(1));
    world.oom(id, gib(2));
    assert_eq!(world.state(id), TaskState::OutOfMemory);
}

#[test]
fn a_failure_that_is_not_for_want_of_memory_is_final() {
    for on_oom in [OnOom::Exclusive, OnOom::Grow { margin: share(0.1) }] {
        let mut world = World::new("1xA100-40GB", recovering(on_oom, 9, true));
        let id = world.submit(task().gib(1));
        world.fail(id);
        assert_eq!(world.state(id), TaskState::Failed);
        assert_eq!(world.launches.len(), 1);
    }
}

#[test]
fn exclusive_recovery_waits_for_an_empty_gpu() {
    let mut world = World::new("1xA100-40GB", recovering(OnOom::Exclusive, 3, false));
    let [victim, other] = world.submit_all([task().gib(1), task().gib(1)]);
    world.oom(victim, gib(2));
    assert_eq!(world.state(victim), TaskState::Recovering);
    assert_eq!(world.refusals(victim, 0), [Refusal::Occupied { tasks: 1 }]);
    world.finish(other);
    assert!(world.runs(victim));
    let newcomer = world.submit(task().gib(1));
    assert!(world.runs(newcomer), "CARMA lets others join a task that was brought back");
}

#[test]
fn grow_asks_for_what_was_wanted_and_a_margin() {
    let mut world = World::filled(GROW, [task().gib(30), task().gib(15)]);
    let id = world.submit(task().gib(10));
    assert_eq!(world.gpus(id), [0]);
    world.oom(id, gib(20));
    assert_eq!(world.gpus(id), [1], "22 GiB are on GPU 1 only");
    assert_eq!(world.booked(1), gib(37));
}

#[test]
fn grow_remembers_the_most_that_was_wanted() {
    let mut world = World::filled(GROW, [task().gib(25)]);
    let id = world.submit(task().gib(1));
    world.oom(id, gib(10));
    assert!(world.runs(id));
    world.oom(id, gib(5));
    assert_eq!(world.booked(0), gib(36), "25 and still 11");
}

#[test]
fn the_last_try_is_alone() {
    let mut world = World::new("2xA100-40GB", GROW);
    let [id, other] = world.submit_all([task().gib(1), task().gib(1)]);
    world.oom(id, gib(2));
    world.oom(id, gib(3));
    assert_eq!(world.gpus(id), [0], "twice beside the other");
    world.oom(id, gib(4));
    assert_eq!(world.gpus(id), [1], "then alone");
    let joining = world.submit(task().gib(1));
    assert_eq!(world.gpus(joining), [0]);
    assert_eq!(world.booked(1), gib(40));
    world.oom(id, gib(41));
    assert_eq!(world.state(id), TaskState::OutOfMemory, "three retries and no more");
    assert!(world.runs(other));
}

#[test]
fn the_last_try_is_on_a_gpu_that_is_large_enough() {
    let mut world = World::new("1xT4-16GB,1xA100-40GB", GROW);
    let id = world.submit(task().gib(1));
    for wanted in [2, 3, 20] {
        world.oom(id, gib(wanted));
    }
    assert_eq!(world.gpus(id), [1], "it is known to want 20 GiB");
}

#[test]
fn exclusive_placement_learns_from_a_death_too() {
    let policy = Policy { place: Place::Exclusive, ..GROW };
    let mut world = World::new("1xT4-16GB,1xA100-40GB", policy);
    let id = world.submit(task());
    assert_eq!(world.gpus(id), [0]);
    world.oom(id, gib(20));
    assert_eq!(world.gpus(id), [1], "another try on the T4 would be the same death");
}

#[test]
fn retries_are_counted() {
    for retries in [0, 1, 2, 5] {
        let mut world = World::new("1xA100-40GB", recovering(OnOom::Exclusive, retries, false));
        let id = world.submit(task().gib(1));
        while world.runs(id) {
            world.oom(id, gib(2));
        }
        assert_eq!(world.launches.len() as u32, retries + 1);
        assert_eq!(world.state(id), TaskState::OutOfMemory);
    }
}

#[test]
fn recovered_tasks_go_first() {
    let mut world = World::new("1xA100-40GB", GROW);
    let [victim, large] = world.submit_all([task().gib(10), task().gib(30)]);
    let waiting = world.submit(task().gib(20));
    world.oom(victim, mib(10_500));
    assert!(world.waits(victim));
    world.finish(large);
    assert!(world.runs(victim) && world.runs(waiting));
    let order: Vec<_> = world.launches.iter().map(|&(_, id)| id).collect();
    assert_eq!(order, [victim, large, victim, waiting]);
}

#[test]
fn a_waiting_recovered_task_does_not_stop_others() {
    let mut world = World::new("1xA100-40GB", GROW);
    let [victim, _] = world.submit_all([task().gib(10), task().gib(30)]);
    world.oom(victim, gib(20));
    let small = world.submit(task().gib(5));
    assert!(world.waits(victim) && world.runs(small));
    let explained = world.scheduler.explain(world.now, victim).expect("it waits");
    assert!(!explained.stopped_by_recovery);
}

#[test]
fn unless_the_policy_says_that_it_does() {
    let policy = recovering(OnOom::Exclusive, 3, true);
    let mut world = World::new("1xA100-40GB", policy);
    let [victim, other] = world.submit_all([task().gib(10), task().gib(30)]);
    world.oom(victim, gib(20));
    let small = world.submit(task().gib(5));
    assert!(world.waits(small));
    let explained = world.scheduler.explain(world.now, small).expect("it waits");
    assert!(explained.stopped_by_recovery);
    assert_eq!(explained.ahead, 1);
    world.finish(other);
    assert!(world.runs(victim) && world.runs(small));
}

#[test]
fn a_task_that_came_back_is_before_all_others_after_a_restart_too() {
    let policy = Policy { queue: Queue::Srtf, share: Share::Exclusive, ..GROW };
    let policy = Policy { place: Place::Exclusive, ..policy };
    for restarts in [false, true] {
        let mut world = World::new("1xA100-40GB", policy);
        let died = world.submit(task().gib(1).secs(1000));
        world.oom(died, gib(2));
        if restarts {
            world.restart(Restart::Journal, false);
        }
        let shorter = world.submit(task().gib(1).secs(10));
        assert!(world.runs(died) && world.waits(shorter), "it has no rank: restarts {restarts}");
        world.finish(died);
        assert!(world.runs(shorter));
    }
}
